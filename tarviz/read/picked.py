"""Records of a shard by their numbers: neighbours in one read, several reads under way where the shard is far away."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from tarviz import stores
from tarviz.formats.index import ShardIndex
from tarviz.model.errors import ChangedError
from tarviz.model.in_order import in_order
from tarviz.model.types import URL, Record
from tarviz.read import stream
from tarviz.read.index import IndexedRecord
from tarviz.read.options import ReadOptions
from tarviz.read.report import ReadReport
from tarviz.stores import Stat

_NEAR = 64 << 10  # bytes between records that are read along rather than left out
_LARGE = 8 << 20  # bytes of one read
_AT_ONCE = 8  # reads under way


def picked(url: URL, index: ShardIndex | None, numbers: Sequence[int], options: ReadOptions, report: ReadReport) -> Iterator[Record]:
    """The records of these numbers, which ascend. Without an index, or in a compressed shard, all up to the last are read.

    `ChangedError` where the shard is no longer the one that was indexed.
    """
    if index is None or index.packed or index.members.sparse or _largest(index, numbers) > options.rules().max_member_bytes:
        yield from _streamed(url, numbers, options, report)
        return
    report.opened = Stat(url, index.identity["size"], index.identity["etag"], index.identity["mtime"])
    runs = list(_runs(index, numbers))
    if stores.is_local(url) or len(runs) == 1:
        for run in runs:
            yield from _records(url, index, run, _read(url, index, run), report)
        return

    def read(run: list[int]) -> tuple[list[int], bytes]:
        return run, _read(url, index, run)

    with (
        ThreadPoolExecutor(min(_AT_ONCE, len(runs)), "tarviz-pick") as pool,
        closing(in_order(iter(runs), read, pool, _AT_ONCE)) as found,
    ):
        for run, data in found:
            yield from _records(url, index, run, data, report)


def _largest(index: ShardIndex, numbers: Sequence[int]) -> int:
    return max((end - begin for begin, end in map(index.span, numbers)), default=0)


def _runs(index: ShardIndex, numbers: Sequence[int]) -> Iterator[list[int]]:
    """Numbers whose records are read together."""
    run: list[int] = []
    first = last = 0
    for number in numbers:
        begin, end = index.span(number)
        if run and (begin > last + _NEAR or end - first > _LARGE):
            yield run
            run = []
        if not run:
            first = begin
        run.append(number)
        last = end
    if run:
        yield run


def _read(url: URL, index: ShardIndex, run: list[int]) -> bytes:
    begin, end = index.span(run[0])[0], index.span(run[-1])[1]
    try:
        data = stores.of(url).read(url, begin, end - begin, etag=index.identity.get("etag"))
    except ChangedError as error:
        raise error.at(hint="The shard changed since it was indexed; index it again.") from None
    last = int(index.rows[run[-1] + 1]) - 1
    if begin + len(data) < int(index.members.data[last] + index.members.size[last]):
        raise ChangedError("the shard is shorter than when it was indexed.", shard=url, offset=begin, hint="Index it again.")
    return data


def _records(url: URL, index: ShardIndex, run: list[int], data: bytes, report: ReadReport) -> Iterator[Record]:
    begin = index.span(run[0])[0]
    report.bytes += len(data)
    report.records += len(run)
    for number in run:
        yield IndexedRecord(url, index, number, data, begin)


def _streamed(url: URL, numbers: Sequence[int], options: ReadOptions, report: ReadReport) -> Iterator[Record]:
    if not numbers:
        return
    wanted = iter(numbers)
    number = next(wanted)
    with closing(stream.blocks(url, options, report=report, start=numbers[0], stop=numbers[-1] + 1)) as blocks:
        for record in itertools.chain.from_iterable(blocks):
            if record.index == number:
                yield record
                if (after := next(wanted, None)) is None:
                    return
                number = after
    raise ChangedError("the shard has fewer records than when it was indexed.", shard=url, hint="Index it again.")
