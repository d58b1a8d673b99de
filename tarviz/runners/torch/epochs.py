"""Which epoch an iteration is, agreed upon by the worker processes of a loader without a word between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_ROWS = 256  # workers that are told apart
_NEXT, _PIN, _TABLE = 0, 1, 2
_WIDTH = 3  # iteration, its first epoch, the epoch behind it

SIZE = _TABLE + _ROWS * _WIDTH
"""How many int64 the memory needs that parent and workers share."""


class Epochs:
    """Counts epochs in memory that a parent and its workers share.

    Every worker of a loader takes part in every iteration once. A worker whose iteration nobody has noted yet takes the epoch behind
    all that are noted, and notes it in its own row; the others find it there, or come to the same result: no lock is needed.
    """

    def __init__(self, memory: NDArray[np.int64]) -> None:
        self._memory = memory

    @classmethod
    def begun(cls, memory: NDArray[np.int64], epoch: int) -> Epochs:
        """A count that begins with `epoch`."""
        made = cls(memory)
        made.go_on(epoch)
        return made

    @property
    def next(self) -> int:
        """The epoch of the next iteration, where none is pinned."""
        table = self._memory[_TABLE:].reshape(_ROWS, _WIDTH)
        return max(int(self._memory[_NEXT]), int(table[:, 2].max()))

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
        """Let the next iteration be of this epoch, and those behind it of later ones."""
        self._memory[_TABLE:] = 0
        self._memory[_NEXT], self._memory[_PIN] = epoch, -1

    def begin(self, passes: int) -> int:
        """The epoch of an iteration in the process of the loader, which has so many passes."""
        if self.pinned is not None:
            return self.pinned
        epoch = self.next
        self._memory[_NEXT] = epoch + passes
        return epoch

    def begin_in(self, worker: int, iteration: int, passes: int) -> int:
        """The epoch of the iteration `iteration` (any number above 0) in one of the workers."""
        if self.pinned is not None:
            return self.pinned
        table = self._memory[_TABLE:].reshape(_ROWS, _WIDTH)
        row = table[worker % _ROWS]
        own = int(row[1]) if int(row[0]) == iteration else -1
        others = table[(table[:, 0] == iteration) & (table[:, 1] > own)]
        epoch = int(others[0, 1]) if len(others) else self.next
        row[1], row[2] = epoch, epoch + passes
        row[0] = iteration
        return epoch
