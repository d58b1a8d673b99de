"""The records of one shard as rows that may still be arriving: columns of what was scanned so far, and the bytes that are kept.

A row is named by one number, shard × 2³² + record, which JavaScript can hold; it stays the same while shards grow.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats.index import ShardIndex
from tarviz.model.errors import ChangedError, Fault, LimitError
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Block, Record, to_text
from tarviz.stores import Stat
from tarviz.widgets.browse.rows.spill import Spill

RECORD_BITS = 32
_RECORD = (1 << RECORD_BITS) - 1
BLOCKS_KEPT = 48 << 20
_LARGEST = 1 << 30  # bytes of a sparse member
_FIRST = attrgetter("first")
Ids = TypeVar("Ids", int, NDArray[np.int64])


def row_id(shard: int, record: int) -> int:
    """The number that names a row.

    >>> split_id(row_id(3, 17))
    (3, 17)
    """
    return shard << RECORD_BITS | record


def split_id(row: Ids) -> tuple[Ids, Ids]:
    """(shard, record) of a row's number, or of many."""
    return row >> RECORD_BITS, row & _RECORD


def places(ids: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where in `ids`, in any order, each of the wanted ones stands; −1 for one that does not.

    >>> places(np.array([5, 3, 9]), np.array([3, 4, 9])).tolist()
    [1, -1, 2]
    """
    if not len(ids):
        return np.full(len(wanted), -1)
    order = np.argsort(ids)
    at = order[np.searchsorted(ids, wanted, sorter=order).clip(max=len(ids) - 1)]
    return np.where(ids[at] == wanted, at, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Records `first`…`first + len` of a shard, and the index of these."""

    first: int
    index: ShardIndex
    sets: list[tuple[tuple[str, ...], int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True, slots=True)
class Row:
    """One record as the grid knows it: where its members are, none of them read. `fields` in file order."""

    shard: ShardRows
    record: int
    segment: Segment
    low: int
    high: int

    @property
    def id(self) -> int:
        return row_id(self.shard.number, self.record)

    @property
    def key(self) -> str:
        return to_text(self.index.key(self.record - self.segment.first))

    @property
    def index(self) -> ShardIndex:
        """What its members are columns of, from `low` to `high`."""
        return self.segment.index

    @property
    def sizes(self) -> dict[str, int]:
        """Extension → payload size in bytes."""
        return dict(zip(self.fields, self.index.members.size[self.low : self.high].tolist(), strict=True))

    @property
    def fields(self) -> list[str]:
        return [self.index.exts[code] for code in self.index.ext[self.low : self.high].tolist()]

    @property
    def pending(self) -> bool:
        return self.record in self.shard.pending

    def load(self) -> Record:
        """The record itself, its members read in one range."""
        at = self.record - self.segment.first
        members = self.index.members.part(self.low, self.high)
        if members.sparse:
            base, offset, data = 0, np.cumsum([0, *members.size[:-1]]), self._expand(members.size)
        else:
            base, end = int(members.start[0]), int((members.data + members.size).max())
            offset, data = members.data - base, self.shard.read(base, end - base)
        block = self.index.block(self.shard.url, at, at + 1, memoryview(data), base)
        return replace(block, first=self.record, offset=offset, pending=0 if self.pending else -1)[0]

    def _expand(self, sizes: NDArray[np.int64]) -> bytes:
        if too_long := sizes[sizes > _LARGEST].tolist():
            raise LimitError(f"A field has {too_long[0]:,} bytes; at most {_LARGEST:,} are read at once.", shard=self.shard.url)
        return b"".join(map(self.payload, range(self.low, self.high)))

    def payload(self, at: int) -> bytes:
        """The bytes of the member at a place in the index; a sparse one is unfolded."""
        members = self.index.members
        offset, size = int(members.data[at]), int(members.size[at])
        if at not in members.sparse:
            return self.shard.read(offset, size) if size else b""
        payload = bytearray(size)
        for place, length in members.sparse[at]:
            payload[place : place + length] = self.shard.read(offset, length)
            offset += length
        return bytes(payload)

    def member(self, ext: str) -> int:
        """The member's place in the index. `KeyError` where the record has no such field."""
        if ext not in (fields := self.fields):
            raise KeyError(ext)
        return self.low + fields.index(ext)


@dataclass(eq=False)
class ShardRows:
    """One shard and what is known of it. `state`: waiting, scanning, paused, done, damaged, missing, unreachable."""

    number: int
    url: URL
    stat: Stat | None = None
    state: str = "waiting"
    compression: str = ""
    cached: bool = False
    segments: list[Segment] = field(default_factory=list)
    count: int = 0
    pending: tuple[int, ...] = ()
    faults: list[Fault] = field(default_factory=list)
    scanned: int = 0
    changed: int = 0
    stale: bool = False
    held: dict[int, memoryview] = field(default_factory=dict)
    spill: Spill | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    __repr__ = redacted_repr

    @property
    def finished(self) -> bool:
        return self.state in ("done", "damaged", "missing", "unreachable")

    @cached_property
    def local(self) -> bool:
        return stores.is_local(self.url)

    def add(self, segment: Segment) -> None:
        """Append the records of a segment that begins where the last one ended."""
        if len(segment):
            self.segments = [*self.segments, segment]
            self.count = segment.first + len(segment)

    def keep(self, block: Block) -> None:
        """Hold a block that was streamed, so that its payloads need not be fetched again; the oldest go."""
        data = block.data
        if block.members.sparse:  # unfolded payloads stand after the tar's own bytes
            data = data[: int(block.members.end.max()) - block.base]
        if self.spill is not None and self.spill.put(block.base, data):
            return
        with self._lock:
            self.held[block.base] = data
            while sum(map(len, self.held.values())) > BLOCKS_KEPT and len(self.held) > 1:
                del self.held[next(iter(self.held))]

    def row(self, record: int) -> Row:
        """`IndexError` where the shard has no such record (yet)."""
        if not 0 <= record < self.count:
            raise IndexError(f"record {record} of {self.count}")
        segments = self.segments
        segment = segments[bisect_right(segments, record, key=_FIRST) - 1]
        low, high = segment.index.rows[record - segment.first :][:2].tolist()
        return Row(self, record, segment, low, high)

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the tar (inflated where it is compressed). `ChangedError` when the shard is no longer the one scanned."""
        if (kept := self._from_blocks(offset, length)) is not None:
            return kept
        if self.spill is not None and (data := self.spill.get(offset, length)) is not None:
            return data
        if self.compression:
            raise LimitError(
                "This part of the compressed shard is no longer kept.", shard=self.url, hint="Inflate it for fast access (tarviz cat)."
            )
        assert self.stat is not None
        data = stores.of(self.url).read(self.url, offset, length, etag=self.stat.etag)
        if len(data) < length:
            raise ChangedError("the shard is shorter than when it was scanned.", shard=self.url, offset=offset)
        return data

    def _from_blocks(self, offset: int, length: int) -> bytes | None:
        """The bytes out of the blocks that are held, where these hold all of them."""
        with self._lock:
            held = sorted(self.held.items())
        pieces: list[memoryview] = []
        at, end = offset, offset + length
        for base, data in held:
            if base <= at < base + len(data):
                pieces.append(data[at - base : end - base])
                at += len(pieces[-1])
                if at == end:
                    return b"".join(pieces)
        return None

    def close(self) -> None:
        with self._lock:
            self.held.clear()
        if self.spill is not None:
            self.spill.close()
