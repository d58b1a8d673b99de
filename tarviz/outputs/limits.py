"""How much one output holds before the next one begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.tar_header import TAR_END


@dataclass(frozen=True, slots=True)
class Limits:
    """What an output holds at most: `count` records, `size` bytes, its last `ending` bytes included; None: no limit."""

    count: int | None = None
    size: int | None = None
    ending: int = len(TAR_END)

    def fit(self, ends: NDArray[np.int64], first: int, records: int, size: int) -> int:
        """Up to which record an output of `records` and `size` bytes takes those from `first`; an empty one takes one of any size.

        `ends` is where each record ends, in bytes from the first of them.

        >>> Limits(count=4).fit(np.array([512, 1024, 1536]), 0, 2, 1024), Limits(size=2560).fit(np.array([512, 1024, 1536]), 1, 0, 0)
        (2, 3)
        """
        last = len(ends)
        if self.size is not None:
            room = self.size - self.ending - size
            last = int(np.searchsorted(ends, (int(ends[first - 1]) if first else 0) + room, side="right"))
        if self.count is not None:
            last = min(last, first + self.count - records)
        return max(last, first + (records == 0))
