"""The records that are marked: one set for all pages on the same shards, so that two people can mark together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import UsageError

MOST = 1_000_000
"""Records that can be marked at once: every page holds their numbers."""


class Marks:
    """Numbers of marked rows; `version` grows with every change, which is told to `changed`. Threads may share it.

    >>> marks = Marks()
    >>> marks.change([3, 4, 5], [4]), sorted(marks.rows), marks.version
    (([3, 5], []), [3, 5], 1)
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.rows: set[int] = set()
        self.version = 0
        self.changed = changed
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.rows)

    def change(self, add: Iterable[int], drop: Iterable[int]) -> tuple[list[int], list[int]]:
        """Mark rows and unmark others: those that were not marked before, and those that were. `UsageError` beyond `MOST`."""
        with self._lock:
            gone = set(drop)
            fresh = set(add) - gone - self.rows
            gone &= self.rows
            if len(self.rows) + len(fresh) - len(gone) > MOST:
                raise UsageError(f"At most {MOST:,} records can be marked.", hint="Filter them, then save what is shown.")
            self.rows = (self.rows | fresh) - gone
            self.version += bool(fresh or gone)
        if fresh or gone:
            self.changed()
        return sorted(fresh), sorted(gone)

    def array(self) -> NDArray[np.int64]:
        """The rows, ascending, int64 [n]."""
        return np.array(sorted(self.rows), np.int64)
