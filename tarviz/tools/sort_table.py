"""A table of records without their payloads: what sorting needs in memory, about 60 bytes a record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.formats import header_scan
from tarviz.read.spans import Batch, HeldTar, pieces, ranges

_WIDE = 128  # bytes; longer texts are kept one by one
_BITS = 62
_CHUNK = 2 << 20  # bytes gathered at once
_STRIDE = 1 << 16  # records looked at together


class GrowingArray:
    """An array that grows in place: lists of small arrays would take the memory twice."""

    def __init__(self, dtype: Any) -> None:
        self._data: NDArray[Any] = np.empty(1024, dtype)
        self._count = 0

    def extend(self, values: NDArray[Any]) -> None:
        """Append; strings that are wider widen the column."""
        if values.dtype != self._data.dtype and self._data.dtype.kind == "S":
            if values.dtype == object:
                self._data = self._data.astype(object)
            elif values.dtype.itemsize > self._data.dtype.itemsize:
                self._data = self._data.astype(f"S{-(-values.dtype.itemsize // 8) * 8}")
        stop = self._count + len(values)
        if stop > len(self._data):
            self._data.resize(stop + len(self._data), refcheck=False)
        self._data[self._count : stop] = values
        self._count = stop

    def array(self) -> NDArray[Any]:
        """What was appended, as a view."""
        return self._data[: self._count]


class SortTable:
    """Records in the order they were read: the key of each, and where its bytes are."""

    def __init__(self) -> None:
        self.sources: list[HeldTar] = []
        self._columns = {
            "key": GrowingArray("S8"),
            "hash": GrowingArray(np.uint64),
            "fields": GrowingArray(np.int64),
            "source": GrowingArray(np.int32),
            "count": GrowingArray(np.int32),
            "begin": GrowingArray(np.int64),
            "end": GrowingArray(np.int64),
        }

    def add(self, source: HeldTar, batch: Batch, keep: NDArray[np.bool_] | None = None) -> None:
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
        keys = block.keys if keep is None else [key for key, there in zip(block.keys, keep.tolist(), strict=True) if there]
        self._put("key", texts(keys))
        self._put("hash", hashes(keys))
        self._put("fields", np.bitwise_or.reduceat(bits, first)[kept])
        self._put("source", np.full(len(keys), len(self.sources) - 1))
        self._put("count", np.bincount(owner, minlength=len(batch))[kept])
        self._put("begin", begin[kept[owner]])
        self._put("end", end[kept[owner]])

    def _put(self, name: str, values: NDArray[Any]) -> None:
        self._columns[name].extend(values)

    @property
    def keys(self) -> NDArray[Any]:
        """The keys: an array of bytes, of objects where some are long."""
        return self._columns["key"].array()

    @property
    def hash(self) -> NDArray[np.uint64]:
        """A 64-bit hash of each key."""
        return self._columns["hash"].array()

    def apart(self) -> list[list[int]]:
        """Records that are pieces of one: same shard, same key, no field in common. Each list is in file order."""
        order = np.argsort(self.hash, kind="stable")
        ranked = self.hash[order]
        same = np.flatnonzero(ranked[1:] == ranked[:-1])
        del ranked
        again = np.unique(np.concatenate((order[same], order[same + 1])))
        del order
        source, fields, keys = (self._columns[name].array() for name in ("source", "fields", "key"))
        found: list[list[int]] = []
        last: dict[tuple[int, bytes], tuple[list[int], int]] = {}
        for at in again.tolist():
            place = int(source[at]), bytes(keys[at])
            group, seen = last.get(place, ([], -1))
            if seen & int(fields[at]):
                group, seen = [], 0
                found.append(group)
            group.append(at)
            last[place] = group, seen | int(fields[at])
        return [group for group in found if len(group) > 1]

    def runs(
        self, order: NDArray[np.int64], parts: dict[int, list[int]]
    ) -> Iterator[tuple[list[HeldTar], NDArray[np.int64], NDArray[np.int64], int]]:
        """Bytes to copy, in this order of records: source of each piece, begins, ends, number of records.

        `parts` adds to a record those that belong to it.
        """
        if parts:
            order = np.array([at for record in order.tolist() for at in (record, *parts.get(record, ()))], np.int64)
        source, count, begin, end = (self._columns[name].array() for name in ("source", "count", "begin", "end"))
        first = np.cumsum(count, dtype=np.int64) - count
        for low in range(0, len(order), _STRIDE):
            part = order[low : low + _STRIDE]
            owner = np.repeat(np.arange(len(part)), count[part])
            rows = np.repeat(first[part] - (np.cumsum(count[part]) - count[part]), count[part]) + np.arange(len(owner))
            a, b, where = begin[rows], end[rows], source[part][owner]
            cut = np.searchsorted(np.cumsum(b - a), np.arange(_CHUNK, int((b - a).sum()) + _CHUNK, _CHUNK))
            stops = np.unique(np.minimum(cut + 1, len(rows))).tolist()
            for begins, stop in zip([0, *stops], stops, strict=False):
                yield from self._run(a[begins:stop], b[begins:stop], where[begins:stop], owner[begins:stop])

    def _run(
        self, begin: NDArray[np.int64], end: NDArray[np.int64], where: NDArray[np.int32], owner: NDArray[np.int64]
    ) -> Iterator[tuple[list[HeldTar], NDArray[np.int64], NDArray[np.int64], int]]:
        records = len(np.unique(owner))
        if not (where != where[0]).any():
            yield [self.sources[where.item(0)]], *ranges(begin, end), records
        else:
            yield [self.sources[at] for at in where.tolist()], begin, end, records


def texts(found: Sequence[bytes]) -> NDArray[Any]:
    """Texts as an array; of objects where a long one would widen all, or one ends with a NUL, which NumPy would take off."""
    wide = max(map(len, found), default=0) > _WIDE or any(text.endswith(b"\0") for text in found)
    return np.array([*found, None], object)[:-1] if wide else np.array(found, "S")


def hashes(keys: Sequence[bytes]) -> NDArray[np.uint64]:
    """A 64-bit hash of each key; the same key has the same hash among any others."""
    if not keys:
        return np.zeros(0, np.uint64)
    width = max(map(len, keys))
    if width > 512:
        return np.concatenate([header_scan.hashes(np.frombuffer(key, np.uint8)[None]) for key in keys])
    return header_scan.hashes(np.array(keys, f"S{width}").view(np.uint8).reshape(len(keys), width))


def mix(hashed: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Random numbers out of hashes of keys and a seed, the same on every machine.

    Source: the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
    """
    z = hashed + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & (2**64 - 1))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def ascending(values: NDArray[Any], *, reverse: bool) -> NDArray[np.int64]:
    """The stable order of an array."""
    if values.dtype == object:
        return np.array(sorted(range(len(values)), key=values.__getitem__, reverse=reverse), np.int64)
    if not reverse:
        return np.argsort(values, kind="stable")
    order: NDArray[np.int64] = len(values) - 1 - np.argsort(values[::-1], kind="stable")[::-1]
    return order
