"""Records as points: where each lies, and which lie inside a line that was drawn around some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tarviz.model.errors import UsageError

MOST_CORNERS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Records as points: `ids` int64 [n] are rows of a browser, `xy` float32 [n, 2] their places, each axis from −1 to 1.

    `low` and `high` are the values at −1 and 1, `axes` what they are of; `note` says how the places came about.
    """

    ids: NDArray[np.int64]
    xy: NDArray[np.float32]
    low: tuple[float, float]
    high: tuple[float, float]
    axes: tuple[str, str]
    note: str = ""
    _by_height: list[NDArray[np.int64]] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, ids: NDArray[np.int64], values: ArrayLike, axes: Sequence[str], note: str = "") -> Points:
        """Points of values [n, 2]; what is not finite has no place and is left out.

        >>> Points.of(np.arange(3), [[0, 5], [10, 6], [np.nan, 7]], ("a", "b")).xy.tolist()
        [[-1.0, -1.0], [1.0, 1.0]]
        """
        found = np.asarray(values, np.float64).reshape(-1, 2)
        good = np.isfinite(found).all(axis=1)
        ids, found = ids[good], found[good]
        low = found.min(axis=0) if len(found) else np.zeros(2)
        high = found.max(axis=0) if len(found) else np.ones(2)
        places = (found - low) / np.where(high > low, (high - low) / 2, 1) - np.where(high > low, 1, 0)
        return cls(
            ids, places.astype(np.float32), (float(low[0]), float(low[1])), (float(high[0]), float(high[1])), (axes[0], axes[1]), note
        )

    def __len__(self) -> int:
        return len(self.ids)

    def mixed(self, seed: int = 0) -> Points:
        """The same points in an order by chance: any first part of them is a fair sample, and none lies over all others."""
        order = np.random.default_rng(seed).permutation(len(self))
        return Points(self.ids[order], self.xy[order], self.low, self.high, self.axes, self.note)

    def inside(self, corners: ArrayLike) -> NDArray[np.bool_]:
        """Which points lie inside a polygon of corners [m, 2] (places, −1 to 1), by even and odd; `UsageError` below three corners.

        >>> Points.of(np.arange(2), [[0, 0], [1, 1]], ("a", "b")).inside([(0, 0), (2, 0), (2, 2), (0, 2)]).tolist()
        [False, True]
        """
        line = np.asarray(corners, np.float64).reshape(-1, 2)
        if not 3 <= len(line) <= MOST_CORNERS or not np.isfinite(line).all():
            raise UsageError(f"A line around points has 3 to {MOST_CORNERS:,} corners, not {len(line)}.")
        if not self._by_height:
            self._by_height.append(np.argsort(self.xy[:, 1], kind="stable"))
        order = self._by_height[0]
        x, y = self.xy[order, 0].astype(np.float64), self.xy[order, 1].astype(np.float64)
        crossed = np.zeros(len(order), np.bool_)
        # each edge concerns the points at its height alone, which lie together: corners cost little, however many points there are
        for (x0, y0), (x1, y1) in zip(line, np.roll(line, -1, axis=0), strict=True):
            if y0 == y1:
                continue
            first, stop = np.searchsorted(y, (min(y0, y1), max(y0, y1)))
            crossed[first:stop] ^= x[first:stop] < x0 + (y[first:stop] - y0) * ((x1 - x0) / (y1 - y0))
        found = np.zeros(len(order), np.bool_)
        found[order] = crossed
        return found
