"""The records of one shard as rows that may still be arriving: columns of what was scanned so far, and the bytes that are kept.

A row is named by one number, shard × 2³² + record, which JavaScript can hold; it stays the same while shards grow.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats.index import ShardIndex
from tarviz.formats.member_table import picked
from tarviz.model.errors import ChangedError, Fault, LimitError
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Block, Members, Record, to_text
from tarviz.stores import Stat
from tarviz.widgets.browse.rows.spill import Spill

RECORD_BITS = 32
_RECORD = (1 << RECORD_BITS) - 1
BLOCKS_KEPT = 48 << 20
_LARGEST = 1 << 30  # bytes of a sparse member


def row_id(shard: int, record: int) -> int:
    """The number that names a row.

    >>> split_id(row_id(3, 17))
    (3, 17)
    """
    return shard << RECORD_BITS | record


def split_id(row: int) -> tuple[int, int]:
    """(shard, record) of a row's number."""
    return row >> RECORD_BITS, row & _RECORD


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Records `first`…`first + len` of a shard as columns; record *r* of it owns the members `rows[r]:rows[r + 1]`."""

    first: int
    members: Members
    rows: NDArray[np.int64]
    ext: NDArray[np.int32]
    exts: Sequence[str]
    hash: NDArray[np.uint64]
    sets: list[tuple[tuple[str, ...], int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows) - 1

    def keys(self, low: int, high: int) -> list[bytes]:
        """Keys of the records `low`…`high`, counted from the segment's first."""
        rows = self.rows[low : min(high, len(self))]
        names = self.members.name[rows].tolist()
        return [ShardIndex.key_of(name, self.exts[code]) for name, code in zip(names, self.ext[rows].tolist(), strict=True)]


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
        at = self.record - self.segment.first
        return to_text(self.segment.keys(at, at + 1)[0])

    @property
    def sizes(self) -> dict[str, int]:
        """Extension → payload size in bytes."""
        exts = self.segment.exts
        codes, sizes = self.segment.ext[self.low : self.high].tolist(), self.segment.members.size[self.low : self.high].tolist()
        return {exts[code]: size for code, size in zip(codes, sizes, strict=True)}

    @property
    def fields(self) -> list[str]:
        return [self.segment.exts[code] for code in self.segment.ext[self.low : self.high].tolist()]

    @property
    def pending(self) -> bool:
        return self.record in self.shard.pending

    def load(self) -> Record:
        """The record itself, its members read in one range."""
        members = picked(self.segment.members, np.arange(self.low, self.high))
        begin, end = int(members.start[0]), int((members.data + members.size).max())
        if members.sparse:
            return self._expanded(members)
        data = memoryview(self.shard.read(begin, end - begin))
        return self._block(data, begin, members.data - begin, members)[0]

    def _expanded(self, members: Members) -> Record:
        if too_long := members.size[members.size > _LARGEST].tolist():
            raise LimitError(f"A field has {too_long[0]:,} bytes; at most {_LARGEST:,} are read at once.", shard=self.shard.url)
        data = b"".join(map(self.payload, range(self.low, self.high)))
        return self._block(memoryview(data), 0, np.cumsum([0, *members.size[:-1]]), members)[0]

    def payload(self, at: int) -> bytes:
        """The bytes of the member at a place in the segment's columns; a sparse one is unfolded."""
        offset, size = int(self.segment.members.data[at]), int(self.segment.members.size[at])
        if at not in self.segment.members.sparse:
            return self.shard.read(offset, size) if size else b""
        payload = bytearray(size)
        for place, length in self.segment.members.sparse[at]:
            payload[place : place + length] = self.shard.read(offset, length)
            offset += length
        return bytes(payload)

    def _block(self, data: memoryview, base: int, offset: NDArray[np.int64], members: Members) -> Block:
        at = self.record - self.segment.first
        return Block(
            shard=self.shard.url,
            data=data,
            base=base,
            first=self.record,
            keys=self.segment.keys(at, at + 1),
            rows=np.array([0, self.high - self.low]),
            offset=offset,
            size=members.size,
            ext=self.segment.ext[self.low : self.high],
            exts=tuple(self.segment.exts),
            members=members,
            pending=0 if self.pending else -1,
        )

    def member(self, ext: str) -> int:
        """The member's place in the segment's columns. `KeyError` where the record has no such field."""
        for at in range(self.low, self.high):
            if self.segment.exts[int(self.segment.ext[at])] == ext:
                return at
        raise KeyError(ext)


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
    firsts: list[int] = field(default_factory=list)
    count: int = 0
    pending: tuple[int, ...] = ()
    faults: list[Fault] = field(default_factory=list)
    scanned: int = 0
    changed: int = 0
    stale: bool = False
    held: OrderedDict[int, memoryview] = field(default_factory=OrderedDict)
    spill: Spill | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    __repr__ = redacted_repr

    @property
    def finished(self) -> bool:
        return self.state in ("done", "damaged", "missing", "unreachable")

    @property
    def local(self) -> bool:
        return stores.is_local(self.url)

    def add(self, segment: Segment) -> None:
        """Append the records of a segment that begins where the last one ended."""
        if len(segment):
            self.swap([*self.segments, segment])
            self.count = segment.first + len(segment)

    def swap(self, segments: list[Segment]) -> None:
        """Other columns of the same records."""
        with self._lock:
            self.segments, self.firsts = segments, [segment.first for segment in segments]

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
                self.held.popitem(last=False)

    def row(self, record: int) -> Row:
        """`IndexError` where the shard has no such record (yet)."""
        if not 0 <= record < self.count:
            raise IndexError(f"record {record} of {self.count}")
        with self._lock:
            segment = self.segments[bisect_right(self.firsts, record) - 1]
        at = record - segment.first
        return Row(self, record, segment, int(segment.rows[at]), int(segment.rows[at + 1]))

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the tar (inflated where it is compressed). `ChangedError` when the shard is no longer the one scanned."""
        if (kept := self._kept(offset, length)) is not None:
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

    def _kept(self, offset: int, length: int) -> bytes | None:
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
