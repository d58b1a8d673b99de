"""Which epoch an iteration is, agreed upon by the worker processes of a loader without a word between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_ROWS = 256  # workers that are told apart
_NEXT, _PIN, _BASE, _TABLE = range(4)
_BITS = 32  # of a row: above them the iteration, below them its first epoch, counted from the base, and 1

SIZE = _TABLE + _ROWS
"""How many int64 the memory needs that parent and workers share."""


class Epochs:
    """Counts epochs in memory that a parent and its workers share; an iteration has `passes` of them.

    Every worker of a loader takes part in every iteration once. A worker whose iteration nobody has noted yet takes the epoch after
    all that are noted, and notes it in its own row; the others find it there, or come to the same result. No lock is needed: a row is
    one word, so it is there whole or not at all, and a worker looks at all rows once before it decides.
    """

    def __init__(self, memory: NDArray[np.int64], passes: int) -> None:
        self._memory = memory
        self._passes = passes

    @property
    def next(self) -> int:
        """The epoch of the next iteration, where none is pinned."""
        return self._behind(self._memory[_TABLE:].copy())

    @property
    def pinned(self) -> int | None:
        """The epoch of every iteration until it is let go."""
        pin = int(self._memory[_PIN])
        return None if pin < 0 else pin

    def pin(self, epoch: int | None) -> None:
        """Let every iteration be of this epoch; None: of a new one again."""
        if epoch is not None:
            self.go_on(epoch)
            self._memory[_PIN] = epoch
        elif (pinned := self.pinned) is not None:
            self.go_on(pinned + 1)

    def go_on(self, epoch: int) -> None:
        """Let the next iteration be of this epoch, and those after it of later ones."""
        self._memory[_TABLE:] = 0
        self._memory[_NEXT], self._memory[_PIN], self._memory[_BASE] = epoch, -1, epoch

    def begin(self) -> int:
        """The epoch of an iteration in the process of the loader."""
        if self.pinned is not None:
            return self.pinned
        epoch = self.next
        self._memory[_NEXT] = epoch + self._passes
        return epoch

    def begin_in(self, worker: int, iteration: int) -> int:
        """The epoch of the iteration `iteration` (any number) in one of the workers."""
        if self.pinned is not None:
            return self.pinned
        rows = self._memory[_TABLE:].copy()
        begun = (iteration % (1 << (63 - _BITS))) << _BITS
        own = int(rows[worker % _ROWS])
        mine = own if own >> _BITS == begun >> _BITS else begun  # one numbered alike, before this one
        others = rows[(rows >> _BITS == begun >> _BITS) & (rows > mine)]
        epoch = self._first(int(others.max())) if len(others) else self._behind(rows)
        self._memory[_TABLE + worker % _ROWS] = begun | (epoch - int(self._memory[_BASE]) + 1)
        return epoch

    def _first(self, row: int) -> int:
        return int(self._memory[_BASE]) + (row & ((1 << _BITS) - 1)) - 1

    def _behind(self, rows: NDArray[np.int64]) -> int:
        """The epoch behind all that are noted."""
        firsts = rows[rows > 0] & ((1 << _BITS) - 1)
        return max(int(self._memory[_NEXT]), self._first(int(firsts.max())) + self._passes if len(firsts) else 0)
