"""Records as points: where each lies, and which lie inside a line that was drawn around some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tarviz.model.errors import UsageError

MOST_CORNERS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Sorted:
    """Points from low to high (`by_height`, with `x` and `y`) and by their rows (`by_id`, with `ids`)."""

    by_height: NDArray[np.int64]
    by_id: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    ids: NDArray[np.int64]

    def crossings(self, line: NDArray[np.float64]) -> NDArray[np.bool_]:
        """From low to high, which points an odd number of edges lies to the right of.

        Each edge concerns the points at its height alone, which lie together: corners cost little, however many points there are.
        """
        found = np.zeros(len(self.y), np.bool_)
        for (x0, y0), (x1, y1) in zip(line, np.roll(line, -1, axis=0), strict=True):
            if y0 == y1:
                continue
            first, stop = np.searchsorted(self.y, (min(y0, y1), max(y0, y1)))
            found[first:stop] ^= self.x[first:stop] < x0 + (self.y[first:stop] - y0) * ((x1 - x0) / (y1 - y0))
        return found


@dataclass(frozen=True, eq=False)
class MapPoints:
    """Records as points: `ids` int64 [n] are rows of a browser, `xy` float32 [n, 2] their places, each axis from −1 to 1.

    `low` and `high` are the values at −1 and 1, `axes` what they are of; `note` says how the places came about.
    """

    ids: NDArray[np.int64]
    xy: NDArray[np.float32]
    low: tuple[float, float]
    high: tuple[float, float]
    axes: tuple[str, str]
    note: str = ""

    @classmethod
    def of(cls, ids: NDArray[np.int64], values: ArrayLike, axes: Sequence[str], note: str = "") -> MapPoints:
        """Points of values [n, 2]; what is not finite has no place and is left out.

        >>> MapPoints.of(np.arange(3), [[0, 5], [10, 6], [np.nan, 7]], ("a", "b")).xy.tolist()
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

    def shuffle(self) -> MapPoints:
        """The same points in an order by chance: any first part of them is a fair sample, and none lies over all others."""
        order = np.random.default_rng(0).permutation(len(self))
        return replace(self, ids=self.ids[order], xy=self.xy[order])

    def inside(self, corners: ArrayLike) -> NDArray[np.bool_]:
        """Which points lie inside a polygon of corners [m, 2] (places, −1 to 1), by even and odd; `UsageError` below three corners.

        >>> MapPoints.of(np.arange(2), [[0, 0], [1, 1]], ("a", "b")).inside([(0, 0), (2, 0), (2, 2), (0, 2)]).tolist()
        [False, True]
        """
        line = np.asarray(corners, np.float64).reshape(-1, 2)
        if not 3 <= len(line) <= MOST_CORNERS or not np.isfinite(line).all():
            raise UsageError(f"A line around points has 3 to {MOST_CORNERS:,} corners, not {len(line)}.")
        found = np.zeros(len(self), np.bool_)
        found[self.sorted.by_height] = self.sorted.crossings(line)
        return found

    def rows_inside(self, corners: ArrayLike) -> NDArray[np.int64]:
        """The ids of the points inside, ascending."""
        found = self.inside(corners)
        return self.sorted.ids[found[self.sorted.by_id]]

    def among(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which points are of these rows."""
        found = np.zeros(len(self), np.bool_)
        if len(self):
            places = self.sorted
            at = np.searchsorted(places.ids, ids).clip(0, len(self) - 1)
            found[places.by_id[at[places.ids[at] == ids]]] = True
        return found

    @cached_property
    def sorted(self) -> Sorted:
        """The points in the orders that questions need, made once."""
        by_height, by_id = np.argsort(self.xy[:, 1], kind="stable"), np.argsort(self.ids, kind="stable")
        x, y = self.xy[by_height].T.astype(np.float64)
        return Sorted(by_height, by_id, np.ascontiguousarray(x), np.ascontiguousarray(y), self.ids[by_id])
