"""Records chosen by a condition or by their keys before anything is read: only their bytes are read then.

The condition is understood by `tarviz.table`, which is looked up in the registry when there is one; here are the records it
chose, by number, and how they are read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats.index import ShardIndex
from tarviz.formats.member_table import pick
from tarviz.model import plugins
from tarviz.model.errors import ChangedError, UsageError
from tarviz.model.types import URL, Block
from tarviz.read.options import ReadOptions
from tarviz.read.report import ReadReport
from tarviz.read.shard import adjacent_blocks
from tarviz.read.shard_index import is_sound, shard_index
from tarviz.stores import Stat

_GAP = 32 << 10  # bytes between two records that are read along
_AT_ONCE = 4 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """The records of shards that a condition chose: per shard their numbers, ascending, and the version they were chosen in."""

    where: str
    rows: Mapping[str, NDArray[np.int64]]
    versions: Mapping[str, Mapping[str, Any]]
    streams: frozenset[str] = frozenset()
    """What is read but once: its records are asked while they come."""
    condition: Any = None
    """What is asked of them: a `tarviz.table.streamed.StreamCondition`."""

    def __repr__(self) -> str:
        return repr(self.where)

    def at_place(self, url: str, place: str) -> Chosen:
        """The same for a shard whose bytes lie elsewhere for a while."""
        if url in self.streams:
            return replace(self, streams=self.streams | {place})
        return Chosen(self.where, {**self.rows, place: self.rows[url]}, {**self.versions, place: version(URL(place))})


def version(url: URL) -> dict[str, Any]:
    """Which bytes a shard holds now."""
    return version_of(stores.of(url).stat(url) if url != "-" else Stat(url, ranges=False))


def version_of(stat: Stat) -> dict[str, Any]:
    """Which bytes a shard held when it was asked."""
    return {"size": stat.size, "etag": stat.etag, "mtime": stat.mtime}


def resolve(urls: Sequence[URL], options: ReadOptions) -> ReadOptions:
    """The options with the records chosen over all of `urls`; as they are where nothing is to be chosen."""
    if isinstance(options.where, Chosen) or not (options.where or options.keys):
        return options
    return replace(options, where=plugins.load("table", "choice").choose(list(dict.fromkeys(urls)), options), keys=())


def numbers(url: URL, options: ReadOptions) -> NDArray[np.int64]:
    """The numbers of the chosen records of one shard. `ChangedError` when it is not the shard they were chosen in."""
    return _numbers(url, options)[0]


def _numbers(url: URL, options: ReadOptions) -> tuple[NDArray[np.int64], Mapping[str, Any]]:
    """The numbers, and the version of the shard that they are of."""
    choice = resolve([url], options).where
    assert isinstance(choice, Chosen)
    if url in choice.streams:
        raise UsageError("the records of a stream cannot be counted before they are read.", shard=url, hint="Write it to a file first.")
    if url not in choice.rows:
        choice = plugins.load("table", "choice").choose([url], replace(options, where=choice.where))
    now = version(url)
    if now != choice.versions[url]:
        raise ChangedError("the shard was replaced after its records were chosen.", shard=url, hint="Begin again.")
    return choice.rows[url], now


def blocks(url: URL, options: ReadOptions, report: ReadReport, start: int = 0, stop: int | None = None) -> Generator[Block, None, None]:
    """The chosen records among `start`…`stop` of one shard, as blocks of neighbours; a block's `first` is its number in the shard."""
    if isinstance(options.where, Chosen) and url in options.where.streams:
        yield from _ask_stream(url, options, report, start, stop)
        return
    rows, now = _numbers(url, options)
    report.opened = Stat(url, **now)
    rows = rows[np.searchsorted(rows, start) : None if stop is None else np.searchsorted(rows, stop)]
    index = sound_index(url, options)
    everything = replace(options, where="")
    report.shards += index is not None or not len(rows)
    if not len(rows):
        return
    if index is not None:
        for block in _around(url, index, rows, now["etag"]):
            report.records += len(block)
            report.bytes += len(block.data)
            yield block
        return
    with closing(adjacent_blocks(url, everything, report)) as run:
        for block in run:
            report.records -= len(block)
            for low, high in runs(rows[np.searchsorted(rows, block.first) : np.searchsorted(rows, block.first + len(block))] - block.first):
                report.records += high - low
                yield block.part(low, high)
            if block.first + len(block) > rows[-1] and url != "-":
                break  # what lies after the last one is not read
            del block


def _ask_stream(url: URL, options: ReadOptions, report: ReadReport, start: int, stop: int | None) -> Generator[Block, None, None]:
    """The records of a stream that fit, each block asked when it comes."""
    assert isinstance(options.where, Chosen)
    condition = options.where.condition
    with closing(adjacent_blocks(url, replace(options, where=""), report, start, stop)) as run:
        for block in run:
            rows = condition.fits(block)
            report.records += len(rows) - len(block)
            for low, high in runs(rows):
                yield block.part(low, high)
            del block
    if url == "-":
        condition.end(report, url)


def sound_index(url: URL, options: ReadOptions) -> ShardIndex | None:
    """The index of a plain shard without a fault, of which single records can be read; None for any other."""
    if not stores.is_local(url) or options.group != "adjacent" or (isinstance(options.where, Chosen) and url in options.where.streams):
        return None
    index = shard_index(url, options, may_stream=False)
    return index if index is not None and is_sound(index, options) else None


def runs(rows: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ascending numbers as runs of neighbours.

    >>> list(runs(np.array([1, 2, 5])))
    [(1, 3), (5, 6)]
    """
    if not len(rows):
        return
    cuts = np.flatnonzero(np.diff(rows) != 1) + 1
    begins, ends = rows[np.concatenate(([0], cuts))], rows[np.concatenate((cuts - 1, [len(rows) - 1]))] + 1
    yield from zip(begins.tolist(), ends.tolist(), strict=True)


def near(index: ShardIndex, rows: NDArray[np.int64], gap: int, most: int) -> Iterator[NDArray[np.int64]]:
    """Ascending records as they are read together: `gap` bytes between two neighbours at most, `most` bytes where it is not one alone."""
    begin, end = index.members.start[index.rows[rows]].tolist(), index.members.end[index.rows[rows + 1] - 1].tolist()
    low = 0
    for high in range(1, len(rows) + 1):
        if high == len(rows) or begin[high] - end[high - 1] > gap or end[high] - begin[low] > most:
            yield rows[low:high]
            low = high


def subset(index: ShardIndex, rows: NDArray[np.int64]) -> ShardIndex:
    """An index of just these records, numbered anew."""
    counts = index.rows[rows + 1] - index.rows[rows]
    ends = np.cumsum(counts)
    members = np.repeat(index.rows[rows] - (ends - counts), counts) + np.arange(int(ends[-1]) if len(ends) else 0)
    return ShardIndex(
        pick(index.members, members),
        np.concatenate(([0], ends)).astype(np.int64),
        index.ext[members],
        index.exts,
        index.hash[rows],
        index.identity,
        index.warnings,
        index.error,
        pending=tuple(np.flatnonzero(np.isin(rows, index.pending)).tolist()),
        packed=index.packed,
        numbers=rows,
    )


def _around(url: URL, index: ShardIndex, rows: NDArray[np.int64], etag: str) -> Iterator[Block]:
    """Blocks of neighbours, those that lie near each other read at once."""
    for some in near(index, rows, _GAP, _AT_ONCE):
        base = index.span(some.item(0))[0]
        data = memoryview(stores.of(url).read(url, base, index.span(some.item(-1))[1] - base, etag=etag))
        for first, stop in runs(some):
            place, reach = index.span(first)[0], index.span(stop - 1)[1]
            yield index.block(url, first, stop, data[place - base : reach - base], place)
