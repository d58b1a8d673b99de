"""Point clouds: which arrays are some, a picture of them for a tile, and a thinned copy for a canvas that turns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.looks.tones import table

MOST = 20_000
"""Points that a canvas is given."""

_FEWEST = 24
_TURN, _TILT = 0.7, 0.5  # radians: seen from the side and a little from above


def is_cloud(array: NDArray[Any]) -> bool:
    """Whether an array looks like points: floats [n, 3 … 7], at least 24 of them, longer than wide.

    >>> is_cloud(np.zeros((100, 3), np.float32)), is_cloud(np.zeros((100, 3), np.uint8))
    (True, False)
    """
    return array.ndim == 2 and array.dtype.kind == "f" and 3 <= array.shape[1] <= 7 and len(array) >= _FEWEST


def thinned(array: NDArray[Any], most: int = MOST) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """At most `most` finite points within −1 … 1 as float32 [n, 3], and their colours uint8 [n, 3].

    Colours are the last three columns where there are six or more and they look like some; else the fourth column, or the height.
    """
    array = array[:: max(1, -(-len(array) // most))]
    array = array[np.isfinite(array[:, :3]).all(axis=1)].astype(np.float32)
    if not len(array):
        return np.zeros((0, 3), np.float32), np.zeros((0, 3), np.uint8)
    low, high = array[:, :3].min(axis=0), array[:, :3].max(axis=0)
    places = (array[:, :3] - (low + high) / 2) / (max(float((high - low).max()), 1e-9) / 2)
    given = array[:, -3:] if array.shape[1] >= 6 else None
    if given is not None and np.isfinite(given).all() and given.min() >= 0 and given.max() <= 255:
        return places, (given * (255 if given.max() <= 1 else 1)).astype(np.uint8)
    values = array[:, 3] if array.shape[1] in (4, 5) else array[:, 2]
    values = np.nan_to_num(values)
    share = (values - values.min()) / (np.ptp(values) or 1)
    return places, table("viridis")[(share * 255).astype(np.uint8)]


def drawn(array: NDArray[Any], size: int) -> NDArray[np.uint8]:
    """The cloud seen from the side as uint8 [size, size, 3], near points over far ones."""
    places, colours = thinned(array)
    canvas = np.full((size, size, 3), (24, 26, 31), np.uint8)
    if not len(places):
        return canvas
    x = places[:, 0] * np.cos(_TURN) - places[:, 1] * np.sin(_TURN)
    depth = places[:, 0] * np.sin(_TURN) + places[:, 1] * np.cos(_TURN)
    y = places[:, 2] * np.cos(_TILT) - depth * np.sin(_TILT)
    order = np.argsort(-depth)
    scale = size * 0.36
    across = (size / 2 + x * scale).astype(int).clip(0, size - 2)[order]
    down = (size / 2 - y * scale).astype(int).clip(0, size - 2)[order]
    for right, below in ((0, 0), (1, 0), (0, 1), (1, 1)):
        canvas[down + below, across + right] = colours[order]
    return canvas
