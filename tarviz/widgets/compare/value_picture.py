"""A value of a record as a tile shows it: a picture with the mapping to 0…255 said in words, or short text."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz import viewers
from tarviz.looks import tones
from tarviz.model.errors import TarvizError, safe
from tarviz.ops.base import feature_of
from tarviz.ops.values.raster import decode_picture

Pixels = NDArray[np.uint8]

_TEXT = 240
_CLIPPED = 0.05
_MAX_SHOWN = 16_000_000  # pixels; beyond, every n-th is taken


@dataclass(frozen=True, slots=True)
class ShownValue:
    """How a value looks: `feature` its dtype and shape, `range` its lowest and highest number in words.

    `pixels` is uint8 [h, w, 1, 3 or 4] and `mapping` how they came of the value ("×255, clipped 0.3 %"); None where it is not a picture,
    and then `text` stands for it.
    """

    feature: str
    range: str = ""
    mapping: str = ""
    text: str = ""
    pixels: Pixels | None = None


def look_at(value: Any) -> ShownValue:
    """Any value of a record, made ready to be seen. Bytes are described only: see `thumbnail`."""
    if isinstance(value, bytes | bytearray | memoryview):
        return ShownValue("bytes", f"{len(value):,} bytes")
    feature = str(feature_of(value))
    if not isinstance(value, np.ndarray | np.generic):
        return ShownValue(feature, text=_words(value))
    array = np.asarray(value)
    if array.dtype.kind not in "buif" or array.size == 0:
        return ShownValue(feature, text=_words(array.tolist() if array.size <= 64 else f"{array.size:,} values"))
    low, high, bad = limits(array)
    words = f"{number(low)}…{number(high)}" + (f", {bad:,} NaN" if bad else "")
    picture = as_picture(array)
    if picture is None:
        return ShownValue(feature, words, text=_words(array.tolist()) if array.size <= 16 else _line(array))
    planes, note = picture
    pixels, mapping = to_bytes(planes, low, high)
    return ShownValue(feature, words, ", ".join(part for part in (mapping, note) if part), pixels=pixels)


def limits(array: NDArray[Any]) -> tuple[float, float, int]:
    """Lowest and highest number, and how many values are none (NaN, infinite)."""
    low, high = float(array.min()), float(array.max())  # NaN and infinity come through
    if math.isfinite(low) and math.isfinite(high):
        return low, high, 0
    good = array[np.isfinite(array)]
    bad = int(array.size - good.size)
    return (float(good.min()), float(good.max()), bad) if good.size else (math.nan, math.nan, bad)


def as_picture(array: NDArray[Any]) -> tuple[NDArray[Any], str] | None:
    """The array as [h, w, 1, 3 or 4], and what had to be done for it; None where it is not a picture."""
    note = ""
    while array.ndim > 3 and array.shape[0] >= 1:
        note = f"first of {array.shape[0]}"
        array = array[0]
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or min(array.shape[:2]) < 2:
        return None
    if array.shape[2] not in (1, 2, 3, 4):
        if array.shape[0] not in (1, 3, 4):
            return array[:, :, :1], f"first of {array.shape[2]} channels"
        array, note = np.moveaxis(array, 0, 2), "channels first"
    if array.shape[2] == 2:
        array, note = array[:, :, :1], "first of 2 channels"
    step = math.isqrt((array.shape[0] * array.shape[1] - 1) // _MAX_SHOWN) + 1
    if step > 1:
        array, note = array[::step, ::step], f"{note}, one pixel in {step}".removeprefix(", ")
    return array, note


def to_bytes(planes: NDArray[Any], low: float, high: float) -> tuple[Pixels, str]:
    """Numbers as 0…255 and the mapping in words: most previews that look broken are errors of range, so it is always said.

    >>> to_bytes(np.array([[[0.0]], [[0.5]]]), 0.0, 0.5)[1]
    '×255'
    """
    if planes.shape[2] == 1 and planes.dtype.kind in "ui":
        if tones.is_ids(planes[:, :, 0]):
            shades, tone = tones.shade(planes[:, :, 0])
            return shades, str(tone)
        if high > 255 or low < 0:
            shades, tone = tones.shade(planes[:, :, 0])  # as tile and pane show it
            return shades[:, :, None], f"{number(tone.low)}…{number(tone.high)} as dark…bright"
    if planes.dtype == np.bool_:
        return planes.astype(np.uint8) * np.uint8(255), "×255"
    if planes.dtype.kind in "ui" and low >= 0 and high <= 255:
        return planes.astype(np.uint8, copy=False), "as it is"
    real = planes.astype(np.float32, copy=False)
    if planes.dtype.kind in "ui":
        return _stretch(real, low, high)
    bad = ~np.isfinite(real)
    outside = float(np.mean((real < -1e-6) | (real > 1 + 1e-6)))
    if outside <= _CLIPPED:
        pixels = np.rint(np.clip(np.nan_to_num(real), 0, 1) * 255).astype(np.uint8)
        mapping = f"×255, clipped {_percent(outside)}" if outside else "×255"
    elif low >= -1e-6 and high <= 255:
        pixels, mapping = np.rint(np.nan_to_num(real)).clip(0, 255).astype(np.uint8), "as 0…255"
    else:
        pixels, mapping = _stretch(real, low, high)
    if bad.any():
        if pixels.shape[2] == 1:
            pixels = np.repeat(pixels, 3, axis=2)
        pixels[bad.any(axis=2), :3] = tones.BAD
        mapping += f", NaN pink ({_percent(float(bad.mean()))})"
    return pixels, mapping


def _stretch(real: NDArray[np.float32], low: float, high: float) -> tuple[Pixels, str]:
    span = high - low if high > low else 1.0
    with np.errstate(all="ignore"):
        pixels = np.rint((np.nan_to_num(real, nan=low, posinf=high, neginf=low) - low) * (255 / span)).clip(0, 255).astype(np.uint8)
    return pixels, f"stretched from {number(low)}…{number(high)}"


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %") if share >= 0.001 else "< 0.1 %"


def number(value: float) -> str:
    """A number in at most six letters or so: `0`, `255`, `−2.12`, `1.3e+06`.

    >>> number(-2.1179), number(255.0), number(0.0)
    ('−2.12', '255', '0')
    """
    if math.isnan(value):
        return "NaN"
    text = f"{value:.0f}" if value == int(value) and abs(value) < 1e6 else f"{value:.3g}"
    return text.replace("-", "−")


def _line(array: NDArray[Any]) -> str:
    return " ".join([*(number(float(item)) for item in array.ravel()[:12].tolist()), "…"])


def _words(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return safe(text[:_TEXT]) + ("…" if len(text) > _TEXT else "")


def encode_pixels(pixels: Pixels, side: int = 0) -> bytes:
    """Pixels as PNG or JPEG of at most `side` pixels a side (0: all of them, as PNG). What fits stays exact."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels))
    exact = not side or max(image.size) <= side
    if not exact:
        image.thumbnail((side, side), reducing_gap=2.0)
    out = io.BytesIO()
    if exact or image.mode == "RGBA":
        image.save(out, "PNG", compress_level=1)
    else:
        image.save(out, "JPEG", quality=84)
    return out.getvalue()


def pixels_of(value: Any) -> Pixels | None:
    """A value as the pixels it is shown by, in full; an encoded picture is decoded. None where it is not a picture."""
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return decode_picture(value)
        except TarvizError:
            return None
    return None if value is None else look_at(value).pixels


def thumbnail(value: Any, look: ShownValue, place: Mapping[str, Any], ext: str, side: int) -> tuple[bytes, str]:
    """A picture of at most `side` pixels a side, or else text, for a value and the look of it that `look_at` made.

    `place` holds the record's `__key__` and `__shard__`. Bytes are shown by the viewer of their extension.
    """
    if look.pixels is not None:
        return encode_pixels(look.pixels, side), ""
    if not isinstance(value, bytes | bytearray | memoryview):
        return b"", look.text
    meta = viewers.Meta(ext, str(place.get("__key__", "")), str(place.get("__shard__", "")))
    try:
        made = viewers.tile(value if isinstance(value, bytes) else bytes(value), meta, side)
    except TarvizError as error:
        return b"", safe(f"{error.code}: {error.message}")[:_TEXT]
    return (made, "") if isinstance(made, bytes) else (b"", safe(made)[:_TEXT])
