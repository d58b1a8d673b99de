"""What many Examples of one layout are made of, as columns: literal bytes, numbers as varints, payloads, and the bytes before a payload."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.features import TAGS, varint
from tarviz.model.types import Buffer

Ints: TypeAlias = NDArray[np.int64]


class NumberColumn(NamedTuple):
    """Values to write as varints, and the least and the most of them."""

    values: NDArray[Any]
    low: int
    high: int

    @classmethod
    def of(cls, values: NDArray[Any]) -> NumberColumn:
        return cls(values, int(values.min()), int(values.max()))

    @property
    def width(self) -> Any:
        """Bytes that each takes: int where it is the same for all, else int64 [records]."""
        low, high = width_of(self.low), width_of(self.high)
        if low == high:
            return high
        width = np.full(len(self.values), low, np.int64)
        for bits in range(7 * low, 7 * high, 7):
            width += self.values >= (1 << bits)
        return width

    def around(self, more: int) -> NumberColumn:
        """What a message of `more` bytes, the number, and as many bytes as the number says, amounts to."""
        low, high = width_of(self.low), width_of(self.high)
        return NumberColumn(self.values + (more + self.width), self.low + more + low, self.high + more + high)


def width_of(number: int) -> int:
    return (number.bit_length() + 6) // 7 or 1


class Payloads(NamedTuple):
    """Places in the block's data."""

    begin: Ints
    size: Ints


class BufferColumn(NamedTuple):
    """A buffer for each record; `long`: not to be copied."""

    buffers: Iterable[Buffer]
    long: bool = False


# What an Example is made of, in order, for many records at once: literal bytes, numbers, payloads, or ready bytes of each.
Item: TypeAlias = "bytes | NumberColumn | Payloads | list[bytes]"


def bytes_features(size: NumberColumn, payloads: Payloads | list[bytes]) -> tuple[list[Item], NumberColumn]:
    """Items and sizes of bytes features with one payload each."""
    listed = size.around(1)
    return [TAGS["bytes"], listed, b"\x0a", size, payloads], listed.around(1)


def int64_features(values: Ints) -> tuple[list[Item], NumberColumn]:
    """Items and sizes of int64 features with one number each."""
    number = NumberColumn.of(values.view(np.uint64))
    low, high = width_of(number.low), width_of(number.high)
    packed = np.full(len(values), 0, np.int64) + number.width
    inner, listed, whole = (NumberColumn(packed + more, low + more, high + more) for more in (0, 2, 4))
    return [TAGS["int64"], listed, b"\x0a", inner, number], whole


def lengths(values: Sequence[bytes]) -> NumberColumn:
    return NumberColumn.of(np.fromiter(map(len, values), np.int64, len(values)))


def choose(item: Item, chosen: Ints) -> Item:
    if isinstance(item, NumberColumn):
        return NumberColumn.of(item.values[chosen])
    if isinstance(item, Payloads):
        return Payloads(item.begin[chosen], item.size[chosen])
    return item if isinstance(item, bytes) else [item[at] for at in chosen.tolist()]


class Head:
    """The bytes before a payload, for many records: a template, and the columns in which they differ."""

    def __init__(self) -> None:
        self.template = bytearray()
        self._tables: list[tuple[int, NDArray[np.uint8]]] = []
        self._numbers: dict[int, list[tuple[int, NDArray[Any]]]] = {}  # by width

    def literal(self, data: bytes) -> None:
        self.template += data

    def number(self, numbers: NumberColumn) -> None:
        if numbers.low < numbers.high:
            self._numbers.setdefault(width_of(numbers.high), []).append((len(self.template), numbers.values))
        self.template += varint(numbers.low)

    def table(self, table: NDArray[np.uint8]) -> None:
        self._tables.append((len(self.template), table))
        self.template += bytes(table.shape[1])

    def rows(self, count: int) -> Iterable[bytes]:
        """The bytes of each record."""
        if not self._tables and not self._numbers:
            return repeat(bytes(self.template), count)
        rows = np.frombuffer(self.template * count, np.uint8).reshape(count, -1)
        for at, table in self._tables:
            rows[:, at : at + table.shape[1]] = table
        for width, numbers in self._numbers.items():
            values = np.array([each for _, each in numbers], np.uint64)
            for place in range(width):
                digits = (values >> np.uint64(7 * place)).astype(np.uint8)
                if place < width - 1:
                    digits |= np.uint8(128)
                for (at, _), column in zip(numbers, digits, strict=True):
                    rows[:, at + place] = column
        made: list[bytes] = rows.view(f"V{rows.shape[1]}").ravel().tolist()
        return made
