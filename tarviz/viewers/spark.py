"""Lines or an envelope as a small picture, for tiles."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.looks import tones
from tarviz.viewers.panel import Plot

_INK = (31, 119, 180)


def envelope(values: NDArray[Any], parts: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.intp]]:
    """The lowest and the highest of each of `parts` parts, at most one a value, of values [n] or [n, lines], and where each begins."""
    edges = np.linspace(0, len(values), min(parts, len(values)) + 1).astype(int)[:-1]
    with np.errstate(all="ignore"):
        return np.fmin.reduceat(values, edges), np.fmax.reduceat(values, edges), edges


def envelope_plot(values: NDArray[Any], parts: int, label: str) -> Plot:
    """The envelope of values [n] as a plot."""
    low, high, _ = envelope(values, parts)
    return Plot("envelope", (("low", tuple(low.tolist())), ("high", tuple(high.tolist()))), label)


def sparkline(values: NDArray[np.float64], size: int) -> bytes:
    """Values [n] or [n, lines] over their index as PNG [size × size], from the lowest of each column of pixels to the highest."""
    from PIL import Image

    lines = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0).reshape(len(values), -1)
    low, high, edges = envelope(lines, size)
    bottom, top = float(low.min()), float(high.max())
    scale = (size - 3) / (top - bottom) if top > bottom else 0.0
    # a column begins where the one before ended, so that the line has no gaps
    low[1:], high[1:] = np.minimum(low[1:], lines[edges[1:] - 1]), np.maximum(high[1:], lines[edges[1:] - 1])
    y_low, y_high = 1 + ((low - bottom) * scale).astype(int), 1 + ((high - bottom) * scale).astype(int)
    rows = np.arange(size)[:, None]
    pixels = np.zeros((size, len(edges), 4), np.uint8)
    for line in range(lines.shape[1]):
        drawn = (rows >= y_low[:, line]) & (rows <= y_high[:, line] + 1)
        pixels[drawn[::-1]] = (*(tones.id_colours()[line % 24 + 1] if lines.shape[1] > 1 else _INK), 255)
    out = io.BytesIO()
    picture = Image.fromarray(pixels)
    if len(edges) < size:
        picture = picture.resize((size, size), Image.Resampling.NEAREST)
    picture.save(out, "PNG")
    return out.getvalue()
