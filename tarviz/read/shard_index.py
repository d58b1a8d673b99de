"""Indexes of shards: built from headers alone, kept under the cache folder, read record by record.

A cached index belongs to one version of one object (URL, size, etag or time); another version has another file,
so an old index is never used for new bytes.
"""

from __future__ import annotations

import hashlib
import json
import logging
import mmap
import os
import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, overload

import numpy as np

from tarviz import stores
from tarviz.formats.compression import kind
from tarviz.formats.header_scan import BLOCK
from tarviz.formats.index import ShardIndex
from tarviz.formats.member_table import joined
from tarviz.formats.records import Grouper, cut_at
from tarviz.formats.tar import Scanner
from tarviz.model.config import options as configured
from tarviz.model.errors import ChangedError, DataError, Fault, TarvizError, redact
from tarviz.model.types import URL, Block, Key, Member, Members, Record, rich_form, to_bytes, to_text
from tarviz.read.stream import ReadOptions, ReadReport, Shard, adjacent_blocks
from tarviz.stores import Stat

_LOG = logging.getLogger(__name__)
_WINDOW = 64 << 10
_LARGEST = 4 << 20
_SMALLEST = 4 << 10
_FAR = 16 << 10  # bytes from header to header from which on each is read by itself
_LARGE = 1 << 20  # bytes of a member from which a request of its own costs less than its payload, over a net
_AT_ONCE = 256


def header_runs(url: URL, scanner: Scanner, report: ReadReport) -> Iterator[Members]:
    """Members of every type as `scanner` finds them; ends at the archive's end or where `scanner.error` is set."""
    stat = stores.of(url).stat(url) if url != "-" else Stat(url, ranges=False)
    if stat.ranges and stat.size is not None and _is_worth_it(url, stat):
        yield from _around_payloads(url, stat, scanner, report)
    else:
        yield from _through_stream(url, scanner, report)


def _is_worth_it(url: URL, stat: Stat) -> bool:
    """Whether reading headers alone costs less than reading everything: always on this machine, over a net where members are large."""
    store, local = stores.of(url), stores.is_local(url)
    head = store.read(url, 0, 6 if local else _SMALLEST, etag=stat.etag)
    if kind(head[:6]) is not None:
        return False
    if local:
        return True
    scanner = Scanner(url, strict=False)
    found = scanner.scan(memoryview(head), 0, final=False)
    return len(found) > 0 and scanner.at >= _LARGE * len(found)


def _around_payloads(url: URL, stat: Stat, scanner: Scanner, report: ReadReport) -> Iterator[Members]:
    """Read windows that hold headers, seeking over payloads in between; where payloads are large, read single headers."""
    store, size, window, local = stores.of(url), stat.size or 0, _WINDOW, stores.is_local(url)
    while not scanner.ended and scanner.error is None:
        base = min(scanner.at, size)
        data = store.read(url, base, max(window, scanner.wants - base), etag=stat.etag)
        report.bytes += len(data)
        found = scanner.scan(memoryview(data), base, final=base + len(data) >= size)
        yield found
        span = scanner.at - base
        dense = span <= 2 * len(data)  # small payloads: reading on costs less than another call
        window = min(window * 2, _LARGEST) if dense else max(window // 2, _SMALLEST)
        while local and len(found) and span > _FAR * len(found) and scanner.error is None and not scanner.ended:
            found, span = _single_headers(url, stat, scanner, report), _FAR * _AT_ONCE
            if len(found):
                yield found
            if len(found) < _AT_ONCE:
                window = _SMALLEST
                break
        while scanner.ended and not scanner.trailing(memoryview(data), base):
            base += len(data)
            if base >= size or any(note.code == "W_TRAILING" for note in scanner.notes[-1:]):
                break
            data = store.read(url, base, _LARGEST, etag=stat.etag)


def _single_headers(url: URL, stat: Stat, scanner: Scanner, report: ReadReport) -> Members:
    """The members of up to `_AT_ONCE` regular headers, each read by itself; none where the next one needs care."""
    table = np.empty((_AT_ONCE, BLOCK), np.uint8)
    view, at = memoryview(table.reshape(-1).data), scanner.at
    places: list[int] = []
    fd = os.open(stores.local_path(url), os.O_RDONLY | os.O_CLOEXEC)
    try:
        for row in range(0, len(view), BLOCK):
            if os.preadv(fd, (view[row : row + BLOCK],), at) < BLOCK or view[row + 257 : row + 262].tobytes() != b"ustar":
                break
            try:
                length = int(view[row + 124 : row + 135].tobytes(), 8)
            except ValueError:
                break
            stop = at + BLOCK + ((length + BLOCK - 1) & -BLOCK)
            if length < 0 or stop > (stat.size or 0):
                break
            places.append(at)
            at = stop
    finally:
        os.close(fd)
    stores.of(url).read(url, 0, 1, etag=stat.etag)  # ChangedError when the file is another by now
    report.bytes += len(places) * BLOCK
    return scanner.take(table[: len(places)], np.array(places, np.int64))


def _through_stream(url: URL, scanner: Scanner, report: ReadReport) -> Iterator[Members]:
    """Read everything once, keeping no more than the headers of one member."""
    with closing(Shard(url)) as shard:
        buffer, filled, base, final = bytearray(_LARGEST), 0, 0, False
        while True:
            while filled < len(buffer) and not final:
                try:
                    count = shard.readinto(memoryview(buffer)[filled:])
                except DataError as error:
                    if scanner.ended:
                        scanner.error = error
                        return
                    yield scanner.scan(memoryview(buffer)[:filled], base)
                    scanner.error = error
                    return
                final, filled = count == 0, filled + count
                report.bytes += count
            data = memoryview(buffer)[:filled].toreadonly()
            if scanner.ended and not scanner.trailing(data, base):
                begin = base + filled
            else:
                yield scanner.scan(data, base, final=final)
                begin = base + filled if scanner.ended else min(scanner.at, base + filled)
                if scanner.ended and scanner.at < base + filled:
                    scanner.trailing(data, base)
            if final or scanner.error is not None:
                if shard.trailing is not None:
                    text = f"bytes that are no {shard.compression} follow at compressed byte {shard.trailing}."
                    scanner.notes.append(Fault("W_TRAILING", text, url))
                return
            left = bytes(data[begin - base :])
            if begin == scanner.at and scanner.wants - begin > len(buffer):  # a header that does not fit, no payload to pass over
                buffer = bytearray(-(-(scanner.wants - begin) // 512) * 512)
            buffer[: len(left)] = left
            base, filled = begin, len(left)


def shard_index(url: URL, options: ReadOptions, *, cache: bool = True, may_stream: bool = True) -> ShardIndex | None:
    """The index of one shard, from the cache or built now; None when `may_stream` is false and only reading it all would do.

    A damaged shard has the index of what stands before the damage, with `error` set.
    """
    stat = stores.of(url).stat(url) if url != "-" else Stat(url, ranges=False)
    if cache and (found := cached_index(stat, options)) is not None:
        return found
    if not may_stream and not (stores.is_local(url) and kind(stores.of(url).read(url, 0, 6)) is None):
        return None
    built = _build(url, options)
    return keep_index(stat, options, built) if cache else replace(built, identity=_identity(stat))


def cached_index(stat: Stat, options: ReadOptions) -> ShardIndex | None:
    """The index kept of just this version of a shard, or None."""
    place = _cache_file(stat, options)
    return None if place is None else _cached(place, _identity(stat))


def keep_index(stat: Stat, options: ReadOptions, index: ShardIndex) -> ShardIndex:
    """The index with its identity, kept under the cache folder where the shard's version is known."""
    index = replace(index, identity=_identity(stat))
    if (place := _cache_file(stat, options)) is not None:
        _keep(place, index)
    return index


def _identity(stat: Stat) -> dict[str, Any]:
    return {"url": redact(stat.url), "size": stat.size, "etag": stat.etag, "mtime": stat.mtime}


def _build(url: URL, options: ReadOptions) -> ShardIndex:
    report = ReadReport()
    scanner = Scanner(url, strict=False, concatenated=options.concatenated)
    grouper = Grouper(url, options.key_split, options.duplicates)
    members = joined(list(header_runs(url, scanner, report)))
    error = scanner.error
    grouped = grouper.group(members)
    pending = -1
    if error is not None and len(grouped):
        cut_off = "need" in error.details and int(grouped.members.start[-1]) == int(members.start[-1])
        grouped = cut_at(grouped, 0, len(grouped) - 1) if cut_off else grouped
        pending = -1 if "need" in error.details else len(grouped) - 1
    elif any(note.code in ("W_NO_EOF", "W_TRUNCATED_PADDING") for note in scanner.notes):
        pending = len(grouped) - 1
    settled, problem = grouper.settle(grouped, len(grouped)) if len(grouped) else (grouped, None)
    notes = scanner.notes + grouper.notes
    for record, first_at in grouper.returns(settled):
        row = int(settled.rows[record])
        offset = int(settled.members.start[row])
        text = f"the key was at byte {first_at} and comes again at byte {offset}."
        notes.append(Fault("W_SPLIT_RECORD", text, url, to_text(bytes(settled.keys[record])), settled.members[row].name, offset))
    found = error or problem
    return ShardIndex(
        settled.members,
        settled.rows,
        settled.ext,
        tuple(grouper.exts),
        settled.key_hash,
        {},
        [note.to_dict() for note in notes[:1000]],
        found.at(shard=url).to_dict() if found is not None else None,
        pending,
        kind(stores.of(url).read(url, 0, 6)) if url != "-" else None,
    )


def _cache_file(stat: Stat, options: ReadOptions) -> Path | None:
    if stat.size is None or not (stat.etag or stat.mtime):
        return None
    choices = {"key_split": options.key_split, "duplicates": options.duplicates, "concatenated": options.concatenated}
    words = json.dumps({**_identity(stat), "url": stat.url, **choices}, sort_keys=True)
    name = hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()[:40]
    return configured().cache_dir / "index" / f"{name}.tvi"


def _cached(place: Path, identity: dict[str, Any]) -> ShardIndex | None:
    try:
        with place.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        index = ShardIndex.load(memoryview(data))
    except (OSError, ValueError, DataError):
        return None  # absent, unreadable or cut: built again
    return index if index.identity == identity else None


def _keep(place: Path, index: ShardIndex) -> None:
    """Write an index beside its final name, then rename; a cache that cannot be written is no error."""
    temporary = place.with_name(f".{place.name}.tmp-{secrets.token_hex(8)}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            file.writelines(index.dump())
        temporary.replace(place)
    except OSError as error:
        _LOG.info("index not cached: %s", error)
        with suppress(OSError):
            temporary.unlink()


def _chosen(url: URL, options: ReadOptions, index: ShardIndex) -> ShardIndex:
    from tarviz.read.chosen import numbers, subset

    return subset(index, numbers(url, options))


class Index(Sequence[Record]):
    """The records of shards by number (over all shards, from 0) and by key; each is read when it is asked for.

    `len(index)`, `index[17]`, `index["train/n00000017"]`, `index.keys()`. Building reads headers only; it is then
    kept in the cache folder. Reading a record of a plain tar reads that record's bytes and no others; in a
    compressed shard everything before it is inflated. `ChangedError` when the shard changed since it was indexed.
    """

    def __init__(
        self,
        urls: list[URL],
        options: ReadOptions | None = None,
        *,
        cache: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.urls = list(urls)
        self.options = ReadOptions(strict=False) if options is None else options
        if self.options.where or self.options.keys:
            from tarviz.read.chosen import resolved

            self.options = resolved(self.urls, self.options)
        self.shards: list[ShardIndex] = []
        for number, url in enumerate(self.urls):
            built = shard_index(url, self.options, cache=cache)
            assert built is not None  # may_stream is true
            if built.error is not None and self.options.strict:
                raise _as_error(built.error, url)
            self.shards.append(_chosen(url, self.options, built) if self.options.where else built)
            if progress is not None:
                progress(number + 1, len(self.urls))
        self._starts = list(accumulate((len(shard) for shard in self.shards), initial=0))
        self._limit = self.options.cut().max_member_bytes

    def __len__(self) -> int:
        return self._starts[-1]

    def locate(self, number: int) -> tuple[int, int]:
        """(shard, record in that shard) of record `number`."""
        shard = bisect_right(self._starts, number) - 1
        return shard, number - self._starts[shard]

    def find(self, key: str) -> int | None:
        """The number of the first record of this key."""
        for shard, first in zip(self.shards, self._starts, strict=False):
            record = shard.find(to_bytes(key))
            if record is not None:
                return first + record
        return None

    @overload
    def __getitem__(self, at: int | str) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> list[Record]: ...
    def __getitem__(self, at: int | str | slice) -> Record | list[Record]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        if isinstance(at, str):
            number = self.find(at)
            if number is None:
                raise KeyError(at)
            return self[number]
        number = at.__index__()
        if not -len(self) <= number < len(self):
            raise IndexError(f"record {number} of {len(self)}")
        shard, record = self.locate(number % len(self))
        return read_record(self.urls[shard], self.shards[shard], record, self.options, self._limit)

    def keys(self) -> Iterator[str]:
        """Every key, in record order."""
        for shard in self.shards:
            for low in range(0, len(shard), 4096):
                yield from (to_text(key) for key in shard.keys(low, low + 4096))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.find(key) is not None

    def fields(self) -> dict[str, int]:
        """Extension → number of records that have it, over all shards."""
        total: dict[str, int] = {}
        for shard in self.shards:
            for ext, count in shard.fields().items():
                total[ext] = total.get(ext, 0) + count
        return total

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What the scans met, errors of damaged shards included."""
        found = [fault for shard in self.shards for fault in shard.warnings]
        return found + [shard.error for shard in self.shards if shard.error is not None]

    def __repr__(self) -> str:
        fields = ", ".join(f"{ext} ×{count}" for ext, count in self.fields().items())
        return f"<Index of {len(self)} records in {len(self.urls)} shard(s): {fields}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return rich_form(self)


class IndexedRecord(Record):
    """A record read through an index: its bytes, and columns only where they are asked for."""

    __slots__ = ("_begin", "_data", "_index", "_url")

    def __init__(self, url: URL, index: ShardIndex, record: int, data: bytes, begin: int) -> None:
        self._row = record
        self._url = url
        self._index = index
        self._data = memoryview(data)
        self._begin = begin

    def __getitem__(self, ext: str) -> memoryview:
        index = self._index
        for row in range(int(index.rows[self._row]), int(index.rows[self._row + 1])):
            if index.exts[index.ext[row]] == ext:
                start = int(index.members.data[row]) - self._begin
                return self._data[start : start + int(index.members.size[row])]
        raise KeyError(ext)

    @property
    def key(self) -> Key:
        return Key(to_text(self._index.key(self._row)))

    @property
    def shard(self) -> str:
        return self._url

    @property
    def index(self) -> int:
        return self._index.number(self._row)

    @property
    def pending(self) -> bool:
        return self._index.pending == self._row

    def __iter__(self) -> Iterator[str]:
        low, high = self._index.rows[self._row], self._index.rows[self._row + 1]
        return (self._index.exts[code] for code in self._index.ext[low:high].tolist())

    def __len__(self) -> int:
        return int(self._index.rows[self._row + 1] - self._index.rows[self._row])

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(self._index.members.part(int(self._index.rows[self._row]), int(self._index.rows[self._row + 1])))

    def block(self) -> Block:
        """A block holding just this record."""
        index, low, high = self._index, int(self._index.rows[self._row]), int(self._index.rows[self._row + 1])
        members = index.members.part(low, high)
        return Block(
            shard=self._url,
            data=self._data,
            base=self._begin,
            first=self.index,
            keys=[index.key(self._row)],
            rows=np.array([0, high - low]),
            offset=members.data - self._begin,
            size=members.size,
            ext=index.ext[low:high],
            exts=index.exts,
            members=members,
            pending=0 if self.pending else -1,
        )


def read_record(url: URL, index: ShardIndex, record: int, options: ReadOptions, limit: int | None = None) -> Record:
    """Record `record` of a shard, read through its index. `limit`: the most bytes a member may have."""
    low, high = int(index.rows[record]), int(index.rows[record + 1])
    begin, end = int(index.members.start[low]), int(index.members.end[high - 1])
    limit = options.cut().max_member_bytes if limit is None else limit
    if index.packed or index.members.sparse or end - begin > limit:
        number = index.number(record)
        for block in adjacent_blocks(url, options, ReadReport(), number, number + 1):
            return block[0]
        raise ChangedError("the shard has fewer records than when it was indexed.", shard=url, hint="Index it again.")
    try:
        data = stores.of(url).read(url, begin, end - begin, etag=index.identity.get("etag"))
    except ChangedError as error:
        raise error.at(hint="The shard changed since it was indexed; index it again.") from None
    if begin + len(data) < int(index.members.data[high - 1] + index.members.size[high - 1]):
        raise ChangedError("the shard is shorter than when it was indexed.", shard=url, offset=begin, hint="Index it again.")
    return IndexedRecord(url, index, record, data, begin)


def _as_error(found: dict[str, Any], url: URL) -> TarvizError:
    places = {name: found[name] for name in ("key", "member", "offset", "records_before", "hint") if name in found}
    return DataError(str(found.get("message", "damaged")), code=str(found.get("code")), shard=url, **places)
