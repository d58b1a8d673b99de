"""A table of records without their payloads: what sorting needs in memory, about 60 bytes a record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.commands._intake import Batch, Source, pieces, ranges
from tarviz.formats import _hot

_WIDE = 64  # bytes; longer keys are kept one by one
_BITS = 62
_CHUNK = 2 << 20  # bytes gathered at once


@dataclass
class Table:
    """Records in the order they were read: where their bytes are, and the key of each."""

    sources: list[Source] = field(default_factory=list)
    keys: Any = field(default_factory=list)  # an array behind `finish`
    _columns: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    _wide: bool = False

    def add(self, source: Source, batch: Batch, keep: NDArray[np.bool_] | None = None) -> None:
        """The records of a batch of `source`, or some of them."""
        if not self.sources or self.sources[-1] is not source:
            self.sources.append(source)
        block = batch.block
        begin, end, row = pieces(batch)
        first = block.rows[:-1]
        owner = np.searchsorted(first, row, side="right") - 1
        apart = np.ones(len(begin), np.bool_)  # pieces that do not go on where the one before ended
        apart[1:] = (begin[1:] != end[:-1]) | (owner[1:] != owner[:-1])
        at = np.flatnonzero(apart)
        begin, end, owner = begin[at], end[np.append(at[1:] - 1, len(end) - 1)], owner[at]
        bits = np.left_shift(np.int64(1), np.minimum(block.ext, _BITS).astype(np.int64))
        kept = np.ones(len(batch), np.bool_) if keep is None else keep
        names = np.array(block.keys, object)[kept].tolist()
        self._wide = self._wide or max(map(len, names), default=0) > _WIDE
        self._put("keys", np.array(names, object if self._wide else "S"))
        self._put("begin", begin[kept[owner]])
        self._put("end", end[kept[owner]])
        self._put("count", np.bincount(owner, minlength=len(batch)).astype(np.int32)[kept])
        self._put("fields", np.bitwise_or.reduceat(bits, first)[kept])
        self._put("hash", _hashes(names))
        self._put("source", np.full(len(names), len(self.sources) - 1, np.int32))

    def _put(self, name: str, column: NDArray[Any]) -> None:
        self._columns.setdefault(name, []).append(column)

    def __len__(self) -> int:
        return sum(map(len, self._columns.get("hash", ())))

    def finish(self) -> None:
        """Columns in one piece each."""
        empty = {"keys": "S1", "count": "i4", "source": "i4", "hash": "u8"}
        for name in ("keys", "begin", "end", "count", "fields", "hash", "source"):
            parts = self._columns.pop(name, None) or [np.zeros(0, empty.get(name, "i8"))]
            if name == "keys" and self._wide:
                parts = [part.astype(object) for part in parts]
            setattr(self, name, np.concatenate(parts))
            del parts
        self.first = np.cumsum(self.count, dtype=np.int64) - self.count

    begin: NDArray[np.int64] = field(init=False)
    end: NDArray[np.int64] = field(init=False)
    count: NDArray[np.int32] = field(init=False)
    fields: NDArray[np.int64] = field(init=False)
    hash: NDArray[np.uint64] = field(init=False)
    source: NDArray[np.int32] = field(init=False)
    first: NDArray[np.int64] = field(init=False)

    def apart(self) -> list[list[int]]:
        """Records that are pieces of one: same shard, same key, no field in common. Each list is in file order."""
        order = np.argsort(self.hash, kind="stable")
        same = np.flatnonzero(self.hash[order][1:] == self.hash[order][:-1])
        found: list[list[int]] = []
        last: dict[tuple[int, bytes], tuple[list[int], int]] = {}
        for at in np.unique(np.concatenate((order[same], order[same + 1]))).tolist():
            place = int(self.source[at]), bytes(self.keys[at])
            group, fields = last.get(place, ([], -1))
            if fields & int(self.fields[at]):
                group, fields = [], 0
                found.append(group)
            group.append(at)
            last[place] = group, fields | int(self.fields[at])
        return [group for group in found if len(group) > 1]

    def runs(
        self, order: NDArray[np.int64], parts: dict[int, list[int]]
    ) -> Iterator[tuple[Source, NDArray[np.int64], NDArray[np.int64], int]]:
        """Bytes to copy, in this order of records: source, begins, ends, records; `parts` adds to a record those that belong to it."""
        if parts:
            order = np.array([at for record in order.tolist() for at in (record, *parts.get(record, ()))], np.int64)
        size = np.concatenate(([0], np.cumsum(self.end - self.begin)))
        low = 0
        while low < len(order):
            part = order[low : low + 65536]
            total = np.cumsum(size[self.first[part] + self.count[part]] - size[self.first[part]])
            stop = max(int(np.searchsorted(total, _CHUNK, side="right")), 1)
            change = np.flatnonzero(self.source[part[:stop]] != self.source[part[0]])
            stop = min(stop, int(change[0])) if len(change) else stop
            part = part[:stop]
            rows = np.repeat(self.first[part] - np.concatenate(([0], np.cumsum(self.count[part])[:-1])), self.count[part])
            rows = rows + np.arange(len(rows))
            yield self.sources[int(self.source[part[0]])], *ranges(self.begin[rows], self.end[rows]), len(part)
            low += stop


def _hashes(names: list[bytes]) -> NDArray[np.uint64]:
    if not names:
        return np.zeros(0, np.uint64)
    width = max(map(len, names))
    if width <= 512:
        table = np.array(names, f"S{width}").view(np.uint8).reshape(len(names), width)
        return _hot.hashes(table)
    return np.concatenate([_hot.hashes(np.frombuffer(name, np.uint8)[None]) for name in names])


def mixed(hashed: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Random numbers out of hashes of keys and a seed, the same on every machine.

    Source: the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
    """
    z = hashed + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & (2**64 - 1))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def ascending(values: Any, *, reverse: bool = False) -> NDArray[np.int64]:
    """The stable order of an array or a list of bytes."""
    if isinstance(values, Sequence) or values.dtype == object:
        found = sorted(range(len(values)), key=values.__getitem__, reverse=reverse)
        return np.array(found, np.int64)
    if not reverse:
        return np.argsort(values, kind="stable")
    order: NDArray[np.int64] = len(values) - 1 - np.argsort(values[::-1], kind="stable")[::-1]
    return order
