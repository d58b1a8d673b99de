"""Records of a shard by their numbers: neighbours in one read, several reads under way where the shard is far away."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np

from tarviz import stores
from tarviz.formats.index import ShardIndex
from tarviz.model.errors import ChangedError
from tarviz.model.in_order import in_order
from tarviz.model.types import URL, Record
from tarviz.read import stream
from tarviz.read.chosen import near
from tarviz.read.index import IndexedRecord, read_together
from tarviz.read.options import ReadOptions
from tarviz.read.report import ReadReport
from tarviz.stores import Stat

_NEAR = 64 << 10  # bytes between records that are read along rather than left out
_LARGE = 8 << 20  # bytes of one read
_AT_ONCE = 8  # reads under way


def pick(url: URL, index: ShardIndex | None, numbers: Sequence[int], options: ReadOptions, report: ReadReport) -> Iterator[Record]:
    """The records of these numbers, which ascend. Without an index, or in a compressed shard, all up to the last are read.

    `ChangedError` where the shard is no longer the one that was indexed.
    """
    most = options.rules().max_member_bytes
    if index is None or index.packed or index.members.sparse or any(end - begin > most for begin, end in map(index.span, numbers)):
        yield from _stream(url, numbers, options, report)
        return
    report.opened = Stat(url, index.identity["size"], index.identity["etag"], index.identity["mtime"])
    runs = [run.tolist() for run in near(index, np.array(numbers, np.int64), _NEAR, _LARGE)]
    read = functools.partial(read_together, url, index, store=stores.of(url))
    if stores.is_local(url) or len(runs) < 2:
        yield from _count(map(read, runs), report)
        return
    with (
        ThreadPoolExecutor(_AT_ONCE, "tarviz-pick") as pool,
        closing(in_order(iter(runs), read, pool, _AT_ONCE)) as found,
    ):
        yield from _count(found, report)


def _count(reads: Iterable[tuple[int, list[IndexedRecord]]], report: ReadReport) -> Iterator[Record]:
    for size, records in reads:
        report.bytes += size
        report.records += len(records)
        yield from records


def _stream(url: URL, numbers: Sequence[int], options: ReadOptions, report: ReadReport) -> Iterator[Record]:
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
