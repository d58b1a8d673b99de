"""Numbers as colours: a window over the values and a palette, the same in a tile, in the record pane and in a comparison."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

WINDOWS = ("auto", "min–max", "raw")
"""`auto` leaves out the darkest and brightest half percent; `raw` is 0…255, or 0…65535, or 0…1 for floats within it. A text that ends in
`-160…240` is a window, too; `240…-160` has the high values dark."""

PALETTES = ("grey", "viridis", "heat", "ids")
_STOPS = {
    # a perceptual map from dark blue over green to yellow, and one from black over red to white
    "viridis": ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)),
    "heat": ((0, 0, 0), (120, 28, 20), (220, 80, 20), (250, 180, 60), (255, 255, 230)),
    "grey": ((0, 0, 0), (255, 255, 255)),
}
# three of Okabe and Ito's, then each as far as can be from those before it, seen by normal eyes and by two kinds of colour-blind ones
_DEALT = (
    "e69f00 56b4e9 009e73 6611ff 2255bb bb0000 00ff99 006677 77eedd 66aa55 66ff66 00aaaa"
    " 3399ff 5566ff 0077aa 226655 ff4433 66ddaa 55ddee ccee00 775533 55dd66 ff66aa 4477cc"
)
_SAMPLE = 1 << 18  # values a percentile is taken of
_BARS = 256  # of a histogram
_OWN = re.compile(r"(-?[\d.]+(?:e[-+]?\d+)?)…(-?[\d.]+(?:e[-+]?\d+)?)$")
_SPANS = ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0))  # which colours are kept in
_FEW = 400  # values of which all are shown
_TAIL = 0.5  # percent left out at both ends
_MOST_IDS, _LARGEST_ID, _VOID = 40, 99, 255
_DIM = 64  # fractions that go on above 1 and stay below this are light, not levels
_EVEN = 0.75  # share of neighbours that are equal, in a mask
BAD = (255, 0, 200)
"""The colour of what is not a number."""


@dataclass(frozen=True, slots=True)
class Tone:
    """What was done: `low` and `high` are the values shown darkest and brightest, `bad` how many are not numbers."""

    window: str
    palette: str
    low: float
    high: float
    bad: int = 0

    def __str__(self) -> str:
        if self.palette == "ids":
            return f"numbers {self.low:.0f}…{self.high:.0f} as colours"
        bad = f", {self.bad:,} no number (pink)" if self.bad else ""
        low = 0.0 if abs(self.low) < abs(self.high) * 1e-6 else self.low
        return f"{low:.5g} dark … {self.high:.5g} bright ({self.window}, {self.palette}){bad}"


def is_ids(array: NDArray[Any]) -> bool:
    """Whether an array [h, w] of whole numbers looks like class or instance numbers: few values, large even areas.

    >>> is_ids(np.repeat(np.arange(4, dtype=np.uint8), 64).reshape(16, 16))
    True
    """
    if array.ndim != 2 or array.dtype.kind not in "ui" or min(array.shape) < 8:
        return False
    step = max(1, math.isqrt(array.size // _SAMPLE))
    part = array[::step, ::step]
    values = np.unique(part)
    own = values[values != _VOID]
    if len(values) < 2 or len(values) > _MOST_IDS or not len(own) or own[0] < 0 or own[-1] > _LARGEST_ID or own[-1] == 0:
        return False
    return float(np.mean(part[:, 1:] == part[:, :-1])) >= _EVEN


def shade(array: NDArray[Any], window: str = "", palette: str = "", *, usual: str = "grey") -> tuple[NDArray[np.uint8], Tone]:
    """An array [h, w] of numbers as colours uint8 [h, w, 3], or [h, w] for grey, and what was done.

    Where no `window` or `palette` is given: numbers of classes (`is_ids`) by a palette of their own, uint8 in grey as it is, all else
    by the window `auto` in the palette `usual`.
    """
    array = array.astype(np.uint8) if array.dtype.kind == "b" else array
    palette = palette if palette in PALETTES else "ids" if not window and is_ids(array) else usual
    if palette == "ids":
        whole = np.clip(np.nan_to_num(array.astype(np.float64)), -(2.0**53), 2.0**53).astype(np.int64)
        return id_colours()[whole & 255], Tone("raw", "ids", *limits(whole, "min–max"))
    window = window if _is_window(window) else "raw" if array.dtype == np.uint8 and palette == "grey" else "auto"
    low, high, bad = limits(array, window)
    levels = array if array.dtype == np.uint8 and window == "raw" else _levels(array, low, high)
    pixels = levels if palette == "grey" else table(palette)[levels]
    if bad:
        pixels = np.repeat(pixels[:, :, None], 3, axis=2) if pixels.ndim == 2 else pixels
        pixels[np.isnan(array)] = BAD
    return pixels, Tone(window, palette, low, high, bad)


def colour(array: NDArray[Any], window: str = "") -> tuple[NDArray[np.uint8], Tone]:
    """An array [h, w, 3 or 4] as colours uint8 of as many bands, and what was done; a fourth band that is not uint8 is left out.

    Where no `window` is given, what lies within 0…255, fractions within 0…1 and −1…1 (which is half of it below 0) are shown by that
    span, as `raw` does; all else, 16 bits and what a network was fed, by the window `auto` over all bands.
    """
    if array.dtype == np.uint8 and window in ("", "raw"):
        return np.ascontiguousarray(array), Tone("raw", "colours", 0, 255)
    array = array[..., :3]
    window = window if _is_window(window) else ""
    low, high, bad = limits(array, window or "min–max")
    if window in ("", "raw"):
        low, high, _ = limits(array, "min–max")
        spans = _SPANS if array.dtype.kind == "f" else _SPANS[2:]
        span = next((each for each in spans if each[0] - 1e-3 <= low and high <= each[1] + 1e-3), None)
        if span == (0.0, 255.0) and array.dtype.kind == "f" and high < _DIM:
            span = None  # a render of many candela, no colours of 8 bits
        window = window or ("raw" if span else "auto")
        low, high = span or limits(array, window)[:2]
    pixels = _levels(array, low, high)
    if bad:
        pixels[np.isnan(array).any(axis=2)] = BAD
    return pixels, Tone(window, "colours", low, high, bad)


def flow_colours(flow: NDArray[Any]) -> tuple[NDArray[np.uint8], float]:
    """Motion [h, w, 2] (right, down) as colours: its direction is the hue, its length how strong it is; and the length shown strongest.

    What is unknown (not a number, or beyond 1e9: the Middlebury form) is black.
    """
    from PIL import Image

    right, down = np.moveaxis(flow.astype(np.float32), 2, 0)
    with np.errstate(all="ignore"):
        known = (np.abs(right) < 1e9) & (np.abs(down) < 1e9)
    right, down = np.where(known, right, 0), np.where(known, down, 0)
    length = np.hypot(right, down)
    longest = float(np.percentile(length[:: max(1, len(length) // 512)], 100 - _TAIL)) or float(length.max(initial=0)) or 1.0
    hue = (np.arctan2(down, right) / (2 * np.pi) % 1 * 255).astype(np.uint8)
    strength = (length / longest).clip(0, 1) * 255
    bands = np.stack([hue, strength.astype(np.uint8), np.where(known, 255, 0).astype(np.uint8)], axis=2)
    return np.asarray(Image.fromarray(bands, "HSV").convert("RGB")), longest


def _levels(array: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    with np.errstate(all="ignore"):
        share = (array.astype(np.float32) - low) * (255 / (high - low) if high != low else 0)
        return np.asarray(np.rint(np.nan_to_num(share, nan=0, posinf=255, neginf=0).clip(0, 255)).astype(np.uint8))


def _is_window(text: str) -> bool:
    return text in WINDOWS or _OWN.search(text) is not None


def limits(array: NDArray[Any], window: str) -> tuple[float, float, int]:
    """The values shown darkest and brightest, and how many are NaN."""
    flat = array.reshape(-1)
    bad = int(np.isnan(flat).sum()) if array.dtype.kind == "f" else 0
    if own := _OWN.search(window):
        return float(own[1]), float(own[2]), bad
    if window == "raw" and array.dtype.kind in "ui":
        return 0.0, 255.0 if array.dtype.itemsize == 1 else 65_535.0, 0
    if array.dtype.kind == "f":
        flat = flat[np.isfinite(flat)]
    if not flat.size:
        return 0.0, 1.0, bad
    low, high = float(flat.min()), float(flat.max())
    if window == "raw":
        return (0.0, 1.0, bad) if low >= 0 and high <= 1 else (low, high, bad)
    if window == "auto" and flat.size >= _FEW:
        part = flat[:: max(1, flat.size // _SAMPLE)]
        first, last = (float(edge) for edge in np.percentile(part, (_TAIL, 100 - _TAIL)))
        if last > first:
            low, high = first, last
    return low, high, bad


@cache
def table(palette: str) -> NDArray[np.uint8]:
    """256 colours uint8 [256, 3] of a palette, dark to bright."""
    stops = np.array(_STOPS[palette], np.float64)
    at = np.linspace(0, len(stops) - 1, 256)
    return np.stack([np.interp(at, np.arange(len(stops)), stops[:, band]) for band in range(3)], axis=1).round().astype(np.uint8)


@cache
def id_colours() -> NDArray[np.uint8]:
    """256 colours uint8 [256, 3] that are easy to tell apart: 0 (nothing) is near black, 255 (void) light grey.

    The first ten are at least 24 apart (CIE 1976) for all eyes, deuteranopia and protanopia too, the first 24 at least 14.
    """
    import colorsys

    colours = [(26, 27, 32), *(tuple(bytes.fromhex(colour)) for colour in _DEALT.split())]
    for number in range(len(colours), 255):
        hue, light = (number * 0.381966 + 0.53) % 1, (0.62, 0.46, 0.74)[(number // 5) % 3]
        colours.append(tuple(round(255 * part) for part in colorsys.hls_to_rgb(hue, light, 0.72)))
    return np.array([*colours, (214, 214, 218)], np.uint8)


def id_colour(number: int) -> str:
    """The colour of a class number as `#rrggbb`; the numbers that masks use and those of boxes are the same."""
    red, green, blue = id_colours()[number % 255 if number else 0].tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


def histogram(array: NDArray[Any]) -> tuple[list[float], float, float]:
    """How often values come in equal steps from the lowest to the highest; numbers that are none are left out."""
    flat = array.reshape(-1)[:: max(1, array.size // (1 << 22))]
    flat = flat.astype(np.uint8) if array.dtype.kind == "b" else flat
    if array.dtype.kind == "f":
        flat = flat[np.isfinite(flat)]
    if not flat.size:
        return [0.0], 0.0, 0.0
    low, high = float(flat.min()), float(flat.max())
    if flat.dtype.kind in "ui" and high - low < _BARS:
        counts, _ = np.histogram(flat, int(high - low) + 1, (low - 0.5, high + 0.5))
    else:
        counts, _ = np.histogram(flat, _BARS, (low, high if high > low else low + 1))
    return counts.astype(float).tolist(), low, high
