"""Polygons cut at a picture's frame, their areas, and the box around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]


def clip(corners: Sequence[Point], width: float, height: float) -> list[Point]:
    """The part of a polygon that lies in the frame 0…`width`, 0…`height`; [] where none does. One side after the other is cut off
    (Sutherland, Hodgman 1974, doi 10.1145/360767.360802), so pieces that fall apart stay joined along the frame.

    >>> clip([(-1, 0), (1, 0), (1, 2), (-1, 2)], 4, 1)
    [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]
    """
    made = [(float(x), float(y)) for x, y in corners]
    for axis, limit, side in ((0, 0.0, 1), (0, float(width), -1), (1, 0.0, 1), (1, float(height), -1)):
        before, made = made, []
        for at, here in enumerate(before):
            last = before[at - 1]
            inside, was = (here[axis] - limit) * side >= 0, (last[axis] - limit) * side >= 0
            if inside != was:
                made.append(_crossing(last, here, axis, limit))
            if inside:
                made.append(here)
    return made


def _crossing(a: Point, b: Point, axis: int, limit: float) -> Point:
    """Where the line from `a` to `b` meets the side; exactly on it."""
    way = (limit - a[axis]) / (b[axis] - a[axis])
    other = a[1 - axis] + way * (b[1 - axis] - a[1 - axis])
    return (limit, other) if axis == 0 else (other, limit)


def area(corners: Sequence[Point]) -> float:
    """The area of a polygon, whichever way round its corners go.

    >>> area([(0, 0), (2, 0), (2, 3), (0, 3)])
    6.0
    """
    return abs(sum(corners[at - 1][0] * y - x * corners[at - 1][1] for at, (x, y) in enumerate(corners))) / 2


def hull(corners: Sequence[Point], width: float, height: float) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of the points, none of them outside of the frame.

    >>> hull([(-3, 1), (2, 9)], 10, 5)
    (0.0, 1.0, 2.0, 5.0)
    """
    across = [min(max(float(x), 0.0), float(width)) for x, _ in corners]
    down = [min(max(float(y), 0.0), float(height)) for _, y in corners]
    return min(across), min(down), max(across), max(down)
