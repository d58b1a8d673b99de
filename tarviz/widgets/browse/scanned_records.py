"""Records as rows that may still be arriving: columns of what was scanned so far, and their payloads read in few ranges.

A row is named by one number, shard × 2³² + record, which JavaScript can hold; it stays the same while shards grow.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats import header_scan
from tarviz.formats.index import ShardIndex
from tarviz.formats.member_table import picked
from tarviz.model.errors import ChangedError, DataError, Fault, LimitError, TarvizError
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Block, Members, Record, to_text
from tarviz.stores import Stat

RECORD_BITS = 32
_RECORD = (1 << RECORD_BITS) - 1
BLOCKS_KEPT = 48 << 20
_GAP_LOCAL = 32 << 10
_GAP_REMOTE = 256 << 10
_ONE_READ = 4 << 20


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

    shard: Shard
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
    def index(self) -> int:
        return self.record

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
        return self.shard.pending == self.record

    def load(self) -> Record:
        """The record itself, its members read in one range."""
        members = picked(self.segment.members, np.arange(self.low, self.high))
        begin, end = int(members.start[0]), int((members.data + members.size).max())
        if members.sparse:
            return self._expanded(members)
        data = memoryview(self.shard.read(begin, end - begin))
        return self._block(data, begin, members.data - begin, members)[0]

    def _expanded(self, members: Members) -> Record:
        blobs = payloads([Want(self, ext) for ext in self.fields], limit=1 << 30)
        for blob in blobs:
            if isinstance(blob, TarvizError):
                raise blob
        data = b"".join(blob for blob in blobs if isinstance(blob, bytes))
        return self._block(memoryview(data), 0, np.cumsum([0, *members.size[:-1]]), members)[0]

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
class Shard:
    """One shard and what is known of it. `state`: waiting, scanning, paused, done, damaged, missing."""

    number: int
    url: URL
    stat: Stat | None = None
    state: str = "waiting"
    compression: str = ""
    cached: bool = False
    segments: list[Segment] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    count: int = 0
    pending: int = -1
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
        return self.state in ("done", "damaged", "missing")

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

    def holds(self, offset: int, length: int) -> bool:
        """Whether these bytes can be had without asking the store."""
        return self.spill is not None or self._kept(offset, length) is not None

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


class Spill:
    """The inflated bytes of a compressed shard in a temporary file without a name, up to `limit` bytes."""

    def __init__(self, limit: int = 16 << 30) -> None:
        self._file = tempfile.TemporaryFile(prefix="tarviz-")  # noqa: SIM115 (closed by close)
        self._limit = limit
        self._end = 0
        self._finish = weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()

    def put(self, base: int, data: memoryview) -> bool:
        """Keep bytes that begin at `base` of the tar; False when there is no room."""
        with self._lock:
            if self._file.closed or base + len(data) > self._limit:
                return False
            try:
                os.pwrite(self._file.fileno(), data, base)
            except OSError:
                return False
            self._end = max(self._end, base + len(data))
            return True

    def get(self, offset: int, length: int) -> bytes | None:
        with self._lock:
            if self._file.closed or offset + length > self._end:
                return None
            return os.pread(self._file.fileno(), length, offset)

    def close(self) -> None:
        with self._lock:
            self._finish()


@dataclass(frozen=True, slots=True)
class Want:
    """A payload asked for: one field of one row."""

    row: Row
    ext: str

    def place(self) -> tuple[int, int]:
        at = self.row.member(self.ext)
        return int(self.row.segment.members.data[at]), int(self.row.segment.members.size[at])


def payloads(wants: Iterable[Want], *, limit: int = 64 << 20) -> list[bytes | TarvizError]:
    """The payloads, in the order asked for, neighbours read in one range; an error where one cannot be had.

    A member of more than `limit` bytes is a `LimitError`.
    """
    wanted = list(wants)
    found: list[bytes | TarvizError] = [b""] * len(wanted)
    places: list[tuple[int, int, int, int]] = []
    for number, want in enumerate(wanted):
        try:
            offset, size = want.place()
        except KeyError:
            found[number] = DataError(f"There is no .{want.ext} in this record.", code="E_MISSING_FIELD")
            continue
        at = want.row.member(want.ext)
        if size > limit:
            found[number] = LimitError(f".{want.ext} has {size:,} bytes; at most {limit:,} are read at once.")
        elif at in want.row.segment.members.sparse:
            found[number] = _guarded(_sparse, want, at, size)
        elif size:
            places.append((want.row.shard.number, offset, size, number))
    places.sort()
    at = 0
    while at < len(places):
        shard = wanted[places[at][3]].row.shard
        gap = _GAP_LOCAL if shard.local else _GAP_REMOTE
        stop, end = at + 1, places[at][1] + places[at][2]
        while (
            stop < len(places)
            and places[stop][0] == shard.number
            and places[stop][1] - end <= gap
            and places[stop][1] + places[stop][2] - places[at][1] <= _ONE_READ
        ):
            end = max(end, places[stop][1] + places[stop][2])
            stop += 1
        _read_run(shard, places[at:stop], end, found)
        at = stop
    return found


def _read_run(shard: Shard, run: list[tuple[int, int, int, int]], end: int, found: list[bytes | TarvizError]) -> None:
    begin = run[0][1]
    data = _guarded(shard.read, begin, end - begin)
    for _, offset, size, number in run:
        if isinstance(data, TarvizError):
            # the run may reach past a cut: each alone may still be there
            found[number] = _guarded(shard.read, offset, size) if len(run) > 1 else data
        else:
            found[number] = data[offset - begin : offset - begin + size]


def _guarded(work: Any, *arguments: Any) -> bytes | TarvizError:
    try:
        result: bytes = work(*arguments)
    except TarvizError as error:
        return error
    return result


def _sparse(want: Want, at: int, size: int) -> bytes:
    offset = int(want.row.segment.members.data[at])
    payload = bytearray(size)
    for place, length in want.row.segment.members.sparse[at]:
        payload[place : place + length] = want.row.shard.read(offset, length)
        offset += length
    return bytes(payload)


class Rows:
    """The rows of all shards, in shard and record order, as far as they are known. Thread-safe.

    `version` counts changes; `wait` blocks until the next one.
    """

    def __init__(self, urls: Sequence[URL]) -> None:
        self.shards = [Shard(number, url) for number, url in enumerate(urls)]
        self.changed = threading.Condition()
        self.version = 0

    def touch(self, shard: Shard) -> None:
        """Say that `shard` has changed."""
        with self.changed:
            self.version += 1
            shard.changed = self.version
            self.changed.notify_all()

    @property
    def finished(self) -> bool:
        return all(shard.finished for shard in self.shards)

    def starts(self) -> list[int]:
        """Position of each shard's first record among all, up to the first shard that is not finished; the count last."""
        starts = [0]
        for shard in self.shards:
            starts.append(starts[-1] + shard.count)
            if not shard.finished:
                break
        return starts

    def __len__(self) -> int:
        return self.starts()[-1]

    def row(self, row: int) -> Row:
        """The row of a number. `IndexError` where there is none."""
        shard, record = split_id(row)
        if not 0 <= shard < len(self.shards):
            raise IndexError(f"shard {shard} of {len(self.shards)}")
        return self.shards[shard].row(record)

    def ids(self, start: int, stop: int) -> list[int]:
        """Numbers of the rows at the positions `start`…`stop` of all records."""
        starts = self.starts()
        stop = min(stop, starts[-1])
        ids: list[int] = []
        shard = max(bisect_right(starts, start) - 1, 0)
        while start < stop and shard < len(starts) - 1:
            end = min(stop, starts[shard + 1])
            ids += range(row_id(shard, start - starts[shard]), row_id(shard, end - starts[shard]))
            start, shard = end, shard + 1
        return ids

    def position(self, row: int) -> int | None:
        """Where a row stands among all records; None while the shards before it are not scanned."""
        shard, record = split_id(row)
        starts = self.starts()
        return starts[shard] + record if shard < len(starts) - 1 and record < self.shards[shard].count else None

    def find(self, key: bytes) -> int | None:
        """The number of the first known row of this key."""
        for shard in self.shards:
            for segment in shard.segments:
                at = _find(segment, key)
                if at is not None:
                    return row_id(shard.number, segment.first + at)
        return None

    def close(self) -> None:
        for shard in self.shards:
            shard.close()


def _find(segment: Segment, key: bytes) -> int | None:
    for at in np.flatnonzero(segment.hash == np.uint64(header_scan.hash_one(key))).tolist():
        if segment.keys(at, at + 1)[0] == key:
            return int(at)
    return None
