"""The rows of batches to come, offered for the values that will stand there: a batch is then made without a copy."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tarviz.runners.batch_memory import BatchMemory

_LEAST = 4096  # bytes of a value; less is copied as quickly as a row is offered

Room: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Offers:
    """Memory for the values of some records in a row, by field (`Chain.run`), and whom to tell what a record became that had none."""

    rooms: list[Room]
    saw: Callable[[Mapping[str, Any]], None]


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

    def _saw(self, record: Mapping[str, Any]) -> None:
        """Any thread may say what a record became."""
        if not self._seen:
            found = {name: record[name] for name in self._fields & record.keys() if isinstance(record[name], np.ndarray)}
            self._seen = {name: (value.shape, value.dtype) for name, value in found.items() if value.nbytes >= _LEAST}

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
        return Offers(rooms, self._saw)

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
