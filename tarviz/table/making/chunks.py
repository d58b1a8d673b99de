"""The records of a shard as a table's columns are made of them: keys, sizes, and payloads where they are needed.

A shard of small records is read from front to back; in one with large payloads the headers are read, and of the payloads no more
than is needed: from a file, or over a net by ranges, several in flight.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats.index import ShardIndex
from tarviz.model.errors import ChangedError, DataError, Fault
from tarviz.model.types import URL, Block, Buffer
from tarviz.read import spans
from tarviz.read.headers import headers_alone
from tarviz.read.shard import adjacent_blocks
from tarviz.read.shard_index import refusal, shard_index
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.stores.base import READ, read_at
from tarviz.table.columns import NAMES, ON_REQUEST, Part

_RECORDS = 8192  # records of a chunk that is read around its payloads
_IN_FLIGHT = 8


@dataclass(slots=True, eq=False)
class Chunk:
    """Records `first`… of a shard: record *r* owns the members `rows[r]:rows[r + 1]`. `read(rows, most)` gives payloads' first bytes."""

    first: int
    keys: list[bytes]
    rows: NDArray[np.int64]
    ext: NDArray[np.int32]
    exts: tuple[str, ...]
    size: NDArray[np.int64]
    read: Callable[[NDArray[np.int64], int | None], list[Buffer]]

    def __len__(self) -> int:
        return len(self.keys)

    def members(self, ext: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of one field: the members' rows, and the records they are of."""
        if ext not in self.exts:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        at = np.flatnonzero(self.ext == self.exts.index(ext))
        return at, np.searchsorted(self.rows, at, side="right") - 1


def chunks(url: URL, options: ReadOptions, parts: set[Part], report: ReadReport) -> Iterator[Chunk]:
    """The records of one shard, in order, read the cheapest way that makes `parts`.

    Raises `DataError` after the last record that can be read where the shard is damaged.
    """
    tiers = {part.tier for part in parts}
    if tiers == {"names"} or (not tiers & ON_REQUEST and _roomy(url)):
        index = shard_index(url, options)
        assert index is not None  # may_stream is true
        whole = not options.strict or refusal(url, options, index) is None  # what strict reading refuses has no number here either
        if whole and (tiers == {NAMES.tier} or not (index.packed or index.members.sparse)):
            yield from _around(url, index)
            for fault in index.warnings:
                report.add(Fault(fault["code"], fault["message"], url))
            if index.error is not None:
                raise DataError(index.error["message"], code=index.error["code"], shard=url, offset=index.error.get("offset"))
            return
    with closing(adjacent_blocks(url, options, report)) as run:
        yield from map(chunk_of, run)  # which holds no block while somebody looks at its chunk


def _roomy(url: URL) -> bool:
    """Whether this is a plain tar whose payloads are so large that passing over them pays."""
    if url == "-":
        return False
    if not stores.is_local(url):
        return headers_alone(url, stores.of(url).stat(url))
    return (source := spans.plain(url)) is not None and spans.roomy(source)


def chunk_of(block: Block) -> Chunk:
    """The records of a block that was read."""
    data, offset, size = block.data, block.offset, block.size

    def read(rows: NDArray[np.int64], most: int | None = None) -> list[Buffer]:
        begin, length = offset[rows], size[rows]
        end = begin + (length if most is None else np.minimum(length, most))
        return list(map(data.__getitem__, map(slice, begin.tolist(), end.tolist())))

    return Chunk(block.first, block.keys, block.rows, block.ext, block.exts, size, read)


def _around(url: URL, index: ShardIndex) -> Iterator[Chunk]:
    with _payloads(url, index.identity.get("etag")) as payloads:
        for low in range(0, len(index), _RECORDS):
            high = min(low + _RECORDS, len(index))
            first, last = int(index.rows[low]), int(index.rows[high])
            place, size = index.members.data[first:last], index.members.size[first:last]

            def read(
                rows: NDArray[np.int64], most: int | None = None, place: NDArray[np.int64] = place, size: NDArray[np.int64] = size
            ) -> list[Buffer]:
                wanted = (size[rows] if most is None else np.minimum(size[rows], most)).tolist()
                found = payloads(place[rows].tolist(), wanted)
                if [*map(len, found)] != wanted:
                    raise ChangedError("the file is shorter than its index says.", shard=url, hint="Ask again.")
                return found

            yield Chunk(low, index.keys(low, high), index.rows[low : high + 1] - first, index.ext[first:last], index.exts, size, read)


@contextmanager
def _payloads(url: URL, etag: str | None) -> Iterator[Callable[[list[int], list[int]], list[Buffer]]]:
    """What reads payloads of a plain tar by their places and sizes; far away each by a request of its own, of the version `etag`."""
    if not stores.is_local(url):
        one = partial(stores.of(url).read, url, etag=etag)
        with ThreadPoolExecutor(_IN_FLIGHT, "tarviz-heads") as pool:
            yield lambda places, sizes: list(pool.map(one, places, sizes))
        return
    fd = os.open(stores.local_path(url), READ)
    try:
        yield lambda places, sizes: list(map(partial(read_at, fd), sizes, places))
    finally:
        os.close(fd)
