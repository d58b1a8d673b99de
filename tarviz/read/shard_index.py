"""Indexes of shards: built from headers alone, kept under the cache folder.

A cached index belongs to one version (size, etag or time) of one shard, whichever way its URL is spelled; another version has another
file, so an old index is never used for new bytes.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tarviz import stores
from tarviz.formats.index import ShardIndex
from tarviz.formats.member_table import join
from tarviz.formats.tar import REFUSED_AMID
from tarviz.model.errors import DataError, Fault, TarvizError, redact
from tarviz.model.types import URL, Block
from tarviz.model.urls import digest, identity
from tarviz.read.headers import header_steps, packing
from tarviz.read.options import ReadOptions
from tarviz.read.report import ReadReport
from tarviz.read.rules import Decided
from tarviz.read.shard import Shard, adjacent_blocks
from tarviz.read.sidecar import members_of, tail_of
from tarviz.read.walker import Walker
from tarviz.stores import Stat
from tarviz.stores.cache_files import Temporary, folder_of, is_kept, stem, touch, trim

_FAULTS = 1000  # warnings kept in an index
_LENIENT = ("W_SPLIT_RECORD", *REFUSED_AMID, "W_TRAILING", "W_LONE_ZERO", "W_NO_EOF", "W_TRUNCATED_PADDING")


def shard_index(
    url: URL,
    options: ReadOptions,
    *,
    cache: bool = True,
    may_stream: bool = True,
    sidecars: bool = False,
    look: Callable[[], None] = lambda: None,
) -> ShardIndex | None:
    """The index of one shard, from the cache or built now; None when `may_stream` is false and only reading it all would do.

    A damaged shard has the index of what stands before the damage, with `error` set. With `sidecars`, an index of DALI's beside a
    shard far away is taken in place of reading that, `claimed`; one that does not fit is a warning, `W_SIDECAR`. `look` is called
    between windows of headers, and may raise.
    """
    far = url != "-" and not stores.is_local(url)
    if far and may_stream and not (cache and is_kept("index", url)):
        with closing(Shard(url)) as shard:  # its answer tells the version: nothing has to be asked before
            return _make(shard.stat, options, cache, sidecars, look, shard)
    stat = stores.of(url).stat(url) if url != "-" else Stat(url, ranges=False)
    if cache and (found := cached_index(stat, options)) is not None:
        return found
    if not may_stream and (far or packing(url) is not None):
        try:
            return _by_sidecar(stat, options) if sidecars else None
        except DataError:
            return None
    return _make(stat, options, cache, sidecars, look)


def _make(
    stat: Stat, options: ReadOptions, cache: bool, sidecars: bool, look: Callable[[], None], shard: Shard | None = None
) -> ShardIndex:
    """The index of this version of a shard, which was opened already where it is given."""
    url = stat.url
    doubt: list[dict[str, Any]] = []
    try:
        if sidecars and (claimed := _by_sidecar(stat, options)) is not None:
            return claimed
    except DataError as error:
        doubt.append(Fault("W_SIDECAR", f"{error.message} It is not used. {error.hint}", url).to_dict())
    built = _build(url, options, look, shard)
    built = keep_index(stat, options, built) if cache else replace(built, identity=_identity(stat))
    return replace(built, warnings=doubt + built.warnings) if doubt else built


def _by_sidecar(stat: Stat, options: ReadOptions) -> ShardIndex | None:
    """The index by the members that a file beside the shard names, grouped by the same walk; `DataError` where that does not fit."""
    found = members_of(stat)
    if found is None:
        return None
    place, members = found
    tail = tail_of(stat, members, place)
    walker = replace(options, strict=False, on_error="raise").walker(stat.url, at=int(members.end[-1]), payloads="none")
    walker.add(members)
    built = index_of(walker, list(walker.walk(tail, int(members.end[-1]), final=True)))
    return replace(built, identity=_identity(stat), claimed=redact(place)) if built.error is None else None


def entry(url: URL, options: ReadOptions, start: int) -> tuple[int, int]:
    """Where record `start` begins in a plain tar, and its number; (0, 0) where the shard must be read from the front."""
    index = shard_index(url, options, may_stream=False) if start > 0 else None
    if index is None or index.packed or start > len(index):
        return 0, 0
    if (options.strict or options.on_error == "skip") and not numbers_alike(index, options):
        return 0, 0
    if start == len(index):
        return (int(index.members.end[-1]) if len(index) else 0), start
    return index.span(start)[0], start


def entered_blocks(url: URL, options: ReadOptions, report: ReadReport, start: int, stop: int | None) -> Generator[Block, None, None]:
    """The blocks of records `start`…`stop` of one shard; a plain one is entered in the middle, where its index says."""
    yield from adjacent_blocks(url, options, report, start, stop, entry=entry(url, options, start))


def cached_index(stat: Stat, options: ReadOptions) -> ShardIndex | None:
    """The index kept of just this version of a shard, or None."""
    if (place := _cache_file(stat, options)) is None:
        return None
    try:
        with place.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        index = ShardIndex.load(memoryview(data))
    except (OSError, ValueError, DataError):
        return None  # absent, unreadable or cut: built again
    if index.identity != _identity(stat):
        return None
    touch(place)
    shard = redact(stat.url)  # as it is spelled now: somebody else may have built it
    warnings, error = [{**each, "shard": shard} for each in index.warnings], index.error and {**index.error, "shard": shard}
    return replace(index, warnings=warnings, error=error)


def is_sound(index: ShardIndex, options: ReadOptions) -> bool:
    """Whether an index is of a plain shard without a fault: what is read at the places it names is what reading all of it gives."""
    if index.error or index.warnings or index.pending or index.packed or index.members.sparse or not len(index):
        return False
    return _largest(index) <= options.rules().max_member_bytes


def _largest(index: ShardIndex) -> int:
    """Bytes of the largest member, of a record or of none."""
    return max(int(index.members.size.max(initial=0)), index.beside)


def is_doubtful(index: ShardIndex) -> bool:
    """Whether strict reading may refuse the shard, or a part of it, that the lenient walk of its index only warned of."""
    return bool(index.pending) or any(fault["code"] in _LENIENT for fault in index.warnings)


def numbers_alike(index: ShardIndex, options: ReadOptions) -> bool:
    """Whether reading numbers records as the index does: one that is found in two parts, refused or left out moves those behind it."""
    moved = ("W_SPLIT_RECORD", *(REFUSED_AMID if options.strict else ()))
    if index.error is not None or (options.strict and index.pending) or any(fault["code"] in moved for fault in index.warnings):
        return False
    return options.on_error != "skip" or _largest(index) <= options.rules().max_member_bytes


def refusal(url: URL, options: ReadOptions, index: ShardIndex) -> TarvizError | None:
    """Why not all records of an index may be handed out: what reading strictly, or the damage, ends with first; None: all may."""
    found = _strict_refusal(url, options, index)
    limit, beside = options.rules().max_member_bytes, index.beside
    # A member over the limit ends reading too: in no record of the index, or before what was found, which headers alone tell.
    if beside > limit or (found is not None and int(index.members.size.max(initial=0)) > limit):
        try:
            for _ in adjacent_blocks(url, replace(options, on_error="raise", where="", keys=()), ReadReport()):
                pass
        except TarvizError as error:
            return error
    return found


def _strict_refusal(url: URL, options: ReadOptions, index: ShardIndex) -> TarvizError | None:
    if options.strict and (index.error is not None or is_doubtful(index)):  # strict reading may meet another fault first
        walker = replace(options, on_error="raise", where="", keys=()).walker(url, payloads="none")
        for _ in header_steps(url, walker, ReadReport()):
            pass
        if isinstance(walker.error, TarvizError):
            return walker.error
        if walker.error is not None:
            raise walker.error
    if index.error is None:
        return None
    places = {name: index.error[name] for name in ("key", "member", "offset", "records_before", "hint") if name in index.error}
    return DataError(str(index.error.get("message", "damaged")), code=str(index.error.get("code")), shard=url, **places)


def keep_index(stat: Stat, options: ReadOptions, index: ShardIndex) -> ShardIndex:
    """The index with its identity, kept under the cache folder where the shard's version is known; that it cannot be kept is no error."""
    index = replace(index, identity=_identity(stat))
    if (place := _cache_file(stat, options)) is not None:
        try:
            with Temporary(place.parent) as temporary:
                with open(temporary.file.fileno(), "wb", closefd=False) as file:
                    file.writelines(index.dump())
                temporary.keep(place)
            trim()
        except OSError as error:
            import logging

            logging.getLogger(__name__).info("index not cached: %s", error)
    return index


def _identity(stat: Stat) -> dict[str, Any]:
    return {"url": redact(identity(stat.url)), "size": stat.size, "etag": stat.etag, "mtime": stat.mtime}


def _build(url: URL, options: ReadOptions, look: Callable[[], None], shard: Shard | None) -> ShardIndex:
    walker = replace(options, strict=False, on_error="raise").walker(url, payloads="none")
    walker.patience = 1 << 17
    steps = header_steps(url, walker, ReadReport(), shard)
    found = []
    while True:
        look()
        try:
            found.append(next(steps))
        except StopIteration as end:
            return index_of(walker, found, end.value)


def index_of(walker: Walker, steps: Sequence[Decided], packed: str | None = None) -> ShardIndex:
    """The index of all the steps of a walker that is over. `packed`: the compression that the shard lies in."""
    parts = [step.records for step in steps]
    rows = [np.zeros(1, np.int64)]
    for part in parts:
        rows.append(part.rows[1:] + rows[-1][-1])
    error = walker.error
    if error is not None and not isinstance(error, DataError):
        raise error
    return ShardIndex(
        join([part.members for part in parts]),
        np.concatenate(rows),
        np.concatenate([np.zeros(0, np.int32), *(part.ext for part in parts)]),
        tuple(walker.grouper.exts),
        np.concatenate([np.zeros(0, np.uint64), *(part.key_hash for part in parts)]),
        {},
        [note.to_dict() for note in _first_notes(walker.notes)],
        error.at(shard=walker.scanner.shard).to_dict() if error is not None else None,
        tuple(step.first + step.pending for step in steps if step.pending >= 0),
        packed,
    )


def _first_notes(notes: Sequence[Fault]) -> list[Fault]:
    """The first warnings, and of those behind them the first of each kind that is none of theirs: what they doubt is asked of an index."""
    first = list(notes[:_FAULTS])
    rest = {note.code: note for note in reversed(notes[_FAULTS:])}
    return first + [rest[code] for code in sorted(rest.keys() - {note.code for note in first})]


def _cache_file(stat: Stat, options: ReadOptions) -> Path | None:
    if stat.size is None or not (stat.etag or stat.mtime):
        return None
    choices = {"key_split": options.key_split, "duplicates": options.duplicates, "concatenated": options.concatenated}
    words = json.dumps({**_identity(stat), **choices}, sort_keys=True)
    return folder_of("index") / f"{stem(stat.url)}{digest(words)}.tvi"
