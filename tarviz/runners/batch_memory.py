"""Memory of batches: used again when nobody refers to it any more, its rows offered for the values to come, without a copy."""

from __future__ import annotations

import math
import operator
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

ALIGNED = 64  # bytes; TensorFlow takes over a NumPy buffer, without a copy, only when it is aligned like this
LEAST = 1 << 20  # bytes; less is what malloc keeps anyhow
_SPARE = 6  # pieces that wait to be used again, …
_IDLE = 256 << 20  # … and bytes of those of one size, unless it is one
_OFFERED = 4096  # bytes of a value; less is copied as quickly as a row is offered

Room: TypeAlias = Mapping[str, NDArray[Any]]


def align(raw: NDArray[np.uint8], length: int) -> NDArray[np.uint8]:
    """`length` bytes of `raw` (at least `ALIGNED` longer) from a multiple of `ALIGNED` on, as an array of their own.

    Its views refer to it, not to `raw`, as those of an array do that was made of a buffer: when it goes, nobody holds any of it.
    """
    return np.frombuffer(raw[-raw.ctypes.data % ALIGNED :][:length].data, np.uint8)


class BatchMemory:
    """Arrays for the batches of one data set, in all its passes.

    Fresh memory costs a page fault every 4 KiB, which takes as long as a copy of it; so an array's memory comes back when the array and
    all that was made of it (views, tensors, what holds a buffer of it) are gone, in whatever thread. Threads may share one. What waits
    to be used again is 256 MiB at most of one size, or one array; a copy or a pickle of it begins with nothing.

    >>> memory = BatchMemory()
    >>> first = memory.empty((512, 4096), "uint8")
    >>> place = first.ctypes.data
    >>> row = first[3]
    >>> del first  # a row of it is held
    >>> second = memory.empty((512, 4096), "uint8")
    >>> second.ctypes.data == place
    False
    >>> del row
    >>> memory.empty((512, 4096), "uint8").ctypes.data == place
    True
    """

    def __init__(self) -> None:
        self._spare: deque[NDArray[np.uint8]] = deque(maxlen=_SPARE)

    def __reduce__(self) -> tuple[type[BatchMemory], tuple[()]]:
        return BatchMemory, ()

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array of any contents, aligned to 64 bytes."""
        length = math.prod(shape) * np.dtype(dtype).itemsize
        raw = np.empty(length + ALIGNED, np.uint8) if length < LEAST else self._take(length + ALIGNED)
        memory = align(raw, length)
        if length >= LEAST:
            weakref.finalize(memory, _give, weakref.ref(self), raw).atexit = False  # at exit a thread may still read what nobody gave back
        return memory.view(dtype).reshape(shape)

    def _take(self, size: int) -> NDArray[np.uint8]:
        with suppress(IndexError):  # another thread was quicker
            for _ in range(len(self._spare)):
                raw = self._spare.popleft()
                if len(raw) == size:
                    return raw
                self._spare.append(raw)
        return np.empty(size, np.uint8)

    def give(self, raw: NDArray[np.uint8]) -> None:
        """Let memory wait, where not enough of its size does."""
        with suppress(RuntimeError):  # another thread changes what waits: then this does not
            alike = sum(len(other) == len(raw) for other in tuple(self._spare))
            if not alike or (alike + 1) * len(raw) <= _IDLE:
                self._spare.append(raw)


def _give(memory: weakref.ref[BatchMemory], raw: NDArray[np.uint8]) -> None:
    found = memory()
    if found is not None:
        found.give(raw)


@dataclass(frozen=True, slots=True)
class Offers:
    """Memory for the values of some records in a row, by field (`Chain.run`), and whom to tell what a record became that had none."""

    rooms: list[Room]
    note: Callable[[Mapping[str, Any]], None]


class BatchRows:
    """The rows of the batches of one iteration, of `size` records each. Arrays of `fields` are taken to be as the first one was.

    A value that does not stand where it was offered room (it has another shape, or one before it was left out) is copied.
    """

    def __init__(self, size: int, fields: frozenset[str], memory: BatchMemory) -> None:
        self._size = size
        self._fields = fields
        self._memory = memory
        self._seen: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
        self._next = 0  # the record that is offered room next
        self._columns: deque[dict[str, tuple[NDArray[Any], list[NDArray[Any]]]]] = deque()  # with their rows, of batches to be made

    def _note(self, record: Mapping[str, Any]) -> None:
        """Any thread may say what a record became."""
        if not self._seen:
            found = {name: record[name] for name in self._fields & record.keys() if isinstance(record[name], np.ndarray)}
            self._seen = {name: (value.shape, value.dtype) for name, value in found.items() if value.nbytes >= _OFFERED}

    def offers(self, count: int) -> Offers | None:
        """Room for the next `count` records."""
        if not self._fields:
            return None
        rooms: list[Room] = []
        for _ in range(count):
            row = self._next % self._size
            if row == 0:
                columns = {name: self._memory.empty((self._size, *shape), dtype) for name, (shape, dtype) in self._seen.items()}
                self._columns.append({name: (column, list(column)) for name, column in columns.items()})
            rooms.append({name: rows[row] for name, (_, rows) in self._columns[-1].items()})
            self._next += 1
        return Offers(rooms, self._note)

    def leave_out(self) -> None:
        """A record has no value: those behind it move up, and are offered no room any more."""
        self._fields = frozenset()
        self._columns.clear()

    def begin(self) -> Callable[[list[Any]], NDArray[Any] | None]:
        """For the next batch: a function that gives the array whose first rows the values are, or None where they are no rows."""
        columns = self._columns.popleft() if self._columns else {}

        def whole(values: list[Any]) -> NDArray[Any] | None:
            for column, rows in columns.values():
                if values[0] is rows[0] and all(map(operator.is_, values, rows)):
                    return column[: len(values)]
            return None

        return whole
