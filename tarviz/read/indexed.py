"""Blocks of a shard whose index is in the cache: its bytes are read, its headers need not be looked at again."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from tarviz import stores
from tarviz.formats.index import ShardIndex
from tarviz.model.errors import ChangedError
from tarviz.model.types import URL, Block
from tarviz.read import stream
from tarviz.read.headers import headers_alone
from tarviz.read.options import ReadOptions
from tarviz.read.read_ahead import Feed
from tarviz.read.report import ReadReport
from tarviz.read.shard import Shard, adjacent_blocks
from tarviz.read.shard_index import cached_index, is_sound, shard_index
from tarviz.stores import Stat


def blocks(url: URL, options: ReadOptions, report: ReadReport, start: int = 0, stop: int | None = None) -> Generator[Block, None, None]:
    """Like `stream.blocks`, but uses the cached index of a shard if that is complete.

    It is complete for a plain local tar that had no fault when it was indexed and has not changed since (size and time; the opened
    file is compared again). This saves three quarters of the processor time that small records take.
    """
    found = usable_index(url, options)
    if found is None:
        return stream.blocks(url, options, report=report, start=start, stop=stop)
    index, stat = found
    return _by_index(url, options, report, index, stat, start, len(index) if stop is None else min(stop, len(index)))


def usable_index(url: URL, options: ReadOptions) -> tuple[ShardIndex, Stat] | None:
    """The cached index of a plain local shard without faults, and which version it is of."""
    if not stores.is_local(url) or options.group != "adjacent" or options.where or options.keys:
        return None
    stat = stores.of(url).stat(url)
    index = cached_index(stat, options)
    return (index, stat) if index is not None and is_sound(index, options) else None


@dataclass(frozen=True, slots=True)
class RecordRange:
    """The records `start`…`stop` of a plain shard: its bytes `begin`…`end`, as the index says of version `etag`.

    `last`: nothing but the end of the shard comes after them; `size` is how many bytes reading them counts, that end included.
    """

    start: int
    stop: int
    begin: int
    end: int
    size: int
    etag: str | None
    last: bool


def dividing_index(url: URL, options: ReadOptions) -> ShardIndex | None:
    """The index by which the records of a shard may be shared out: of one without a fault, and had without reading all of it.

    It is that of the cache or of a sidecar, or is made of headers alone. None where there is none of these, where the shard is packed
    or damaged, and where records are chosen.
    """
    if url == "-" or options.group != "adjacent" or options.where or options.keys:
        return None
    may_stream = headers_alone(url, stores.of(url).stat(url))
    index = shard_index(url, options, may_stream=may_stream, sidecars=True)
    return index if index is not None and is_sound(index, options) else None


def range_blocks(url: URL, options: ReadOptions, part: RecordRange, report: ReadReport) -> Generator[Block, None, None]:
    """The blocks of a range, which count as those of the whole shard do; `ChangedError` where the shard is not as the index said."""
    stop, end = part.start, part.begin
    to, entry = None if part.last else part.stop, (part.begin, part.start)
    reading = adjacent_blocks(url, options, report, part.start, to, entry=entry, etag=part.etag)
    with closing(reading) as run:
        for block in run:
            if len(block):
                stop, end = block.first + len(block), int(block.members.end[-1])
            yield block
            del block
    if (stop, end) != (part.stop, part.end):
        what = f"records {part.start} to {part.stop - 1} do not end at byte {part.end}, where the index says"
        raise ChangedError(f"{what}, but record {stop - 1} at byte {end}.", shard=url, hint="Index it again: tarviz index.")


def _by_index(
    url: URL, options: ReadOptions, report: ReadReport, index: ShardIndex, stat: Stat, start: int, stop: int
) -> Generator[Block, None, None]:
    members, rows = index.members, index.rows
    ends = members.end[rows[1:] - 1]
    if start >= stop:
        return
    base = int(members.start[rows[start]])
    with closing(Shard(url, offset=base, etag=stat.etag)) as shard:
        report.opened = shard.stat
        feed = Feed(shard, options.rules().block_size)
        with closing(feed):
            data = feed.more()
            try:
                while True:
                    reach = min(int(np.searchsorted(ends, base + len(data), side="right")), stop)
                    if reach > start:
                        yield index.block(url, start, reach, data, base)
                        report.records += reach - start
                        start = reach
                    if start >= stop:
                        return
                    if feed.broken is not None:
                        raise feed.broken
                    if feed.final:
                        raise ChangedError("the shard is shorter than when it was indexed.", shard=url, offset=base + len(data))
                    begin = int(ends[start - 1]) if start and ends[start - 1] > base else base
                    keep, base = base + len(data) - begin, begin
                    del data
                    data = feed.more(keep, int(ends[start]) - base)
            finally:
                report.bytes += feed.bytes
                report.shards += 1
