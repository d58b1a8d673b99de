"""What a picture looks like in a few numbers, colour and shape, for where there is no embedding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIDE = 32
"""Pixels a side of the small picture that is looked at."""

_CELLS = 4
_TURNS = 8
LENGTH = 64 + _CELLS * _CELLS * _TURNS
"""Numbers that a picture becomes."""


def likeness(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    """A picture uint8 [32, 32, 3] as float32 [192]: a histogram of 64 colours, then for 4 × 4 parts of the picture in which of 8
    directions its edges run. Both halves have the length 1, or 0 where there is no edge.

    >>> likeness(np.zeros((32, 32, 3), np.uint8)).nonzero()[0].tolist()
    [0]
    """
    levels = picture >> 6
    colours = np.bincount((levels[..., 0] * 16 + levels[..., 1] * 4 + levels[..., 2]).ravel(), minlength=64)
    grey = picture.mean(axis=2, dtype=np.float32)
    down, across = np.gradient(grey)
    strength = np.hypot(down, across)
    turn = ((np.arctan2(down, across) / np.pi % 1) * _TURNS).astype(np.int64) % _TURNS
    part = np.arange(SIDE) * _CELLS // SIDE
    place = (part[:, None] * _CELLS + part[None, :]) * _TURNS + turn
    edges = np.bincount(place.ravel(), strength.ravel(), minlength=_CELLS * _CELLS * _TURNS)
    return np.concatenate([_unit(np.sqrt(colours)), _unit(np.sqrt(edges))]).astype(np.float32)


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    length = float(np.linalg.norm(values))
    return values / length if length else values
