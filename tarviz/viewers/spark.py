"""A line or an envelope as a small picture, for tiles."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

_INK = (31, 119, 180)


def sparkline(values: NDArray[np.float64], size: int) -> bytes:
    """Values over their index as PNG [size × size], from the lowest of each column to the highest."""
    from PIL import Image

    values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    columns = min(size, len(values))
    edges = np.linspace(0, len(values), columns + 1).astype(int)[:-1]
    low, high = np.minimum.reduceat(values, edges), np.maximum.reduceat(values, edges)
    bottom, top = float(low.min()), float(high.max())
    scale = (size - 3) / (top - bottom) if top > bottom else 0.0
    # a column begins where the one before ended, so that the line has no gaps
    low[1:], high[1:] = np.minimum(low[1:], values[edges[1:] - 1]), np.maximum(high[1:], values[edges[1:] - 1])
    y_low, y_high = 1 + ((low - bottom) * scale).astype(int), 1 + ((high - bottom) * scale).astype(int)
    rows = np.arange(size)[:, None]
    drawn = (rows >= y_low) & (rows <= y_high + 1)
    pixels = np.zeros((size, columns, 4), np.uint8)
    pixels[drawn[::-1]] = (*_INK, 255)
    out = io.BytesIO()
    picture = Image.fromarray(pixels)
    if columns < size:
        picture = picture.resize((size, size), Image.Resampling.NEAREST)
    picture.save(out, "PNG")
    return out.getvalue()
