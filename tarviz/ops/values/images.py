"""What image ops share: checks of features and values, and PIL on arrays of any dtype and channel count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tarviz.model.errors import ChainError
from tarviz.model.types import Feature
from tarviz.ops.base import feature_of, unfit

FRAMES = (3, 4)
"""Ranks of what may be an image [h, w, c] or a film [frames, h, w, c]."""
FILM = (4,)
_EXPECTED = {(3,): "an image [h, w, c]", FRAMES: "an image [h, w, c]", FILM: "a film [frames, h, w, c]"}

_MODES = {1: "L", 3: "RGB", 4: "CMYK"}  # CMYK: four plain bands; RGBA would be weighted by its alpha


def check_image(op: object, feature: Feature, ranks: tuple[int, ...] = (3,)) -> Feature:
    """`feature` when it can be an image [height, width, channels], by its `ranks` also a film; else `SchemaError`."""
    if feature.dtype in ("bytes", "str", "object") or len(feature.shape) not in ranks:
        ext = getattr(op, "ext", "jpg")
        grey = " A grey one is [h, w, 1]." if len(feature.shape) == 2 and ranks != FILM else ""
        cure = f" Put decode({ext}) before it." if feature.dtype == "bytes" else grey
        raise unfit(op, f"expects {_EXPECTED[ranks]}, got {feature}.{cure}", field=ext)
    return feature


def image_of(op: object, value: Any, ranks: tuple[int, ...] = (3,)) -> NDArray[Any]:
    """`value` when it is an image, by its `ranks` also a film; else `SchemaError`."""
    if isinstance(value, np.ndarray) and value.ndim in ranks:
        return value
    check_image(op, feature_of(value), ranks)
    raise unfit(op, f"expects {_EXPECTED[ranks]}, got {type(value).__name__}.")


def pair(op: object, value: Any, what: str) -> tuple[int, int]:
    """Two whole numbers above 0, height and width, from a pair or one number for both."""
    sizes = (value, value) if isinstance(value, int) and not isinstance(value, bool) else value
    try:
        height, width = (int(size) for size in sizes if int(size) == size)
    except (TypeError, ValueError):
        raise ChainError(f"{op} expects {what} as (height, width) in pixels, got {value!r}.") from None
    if height < 1 or width < 1:
        raise ChainError(f"{op} expects {what} of at least 1 pixel, got {value!r}.")
    return height, width


def check_crop(op: Any, shape: tuple[int | None, ...], size: tuple[int, int]) -> None:
    """`SchemaError` when an image of `shape` is smaller than `size` in a dimension that is known."""
    if any(there is not None and there < wanted for there, wanted in zip(shape[:2], size, strict=True)):
        have = " x ".join("?" if n is None else str(n) for n in shape[:2])
        raise unfit(op, f"expects an image of at least {size[0]} x {size[1]} pixels, got {have}. Put resize({op.ext}, …) before it.")


def through_pil(image: NDArray[Any], change: Callable[[Image.Image], Image.Image]) -> NDArray[Any]:
    """`change` done to an image array [h, w, c] by PIL; dtype and channels stay as they are.

    uint8 goes through as it is; other integers and floats as 32-bit floats, band by band, integers rounded.
    """
    bands = image.shape[2]
    if image.dtype == np.uint8 and bands in _MODES:
        result = np.array(change(_open(image, _MODES[bands])))
        return result[:, :, None] if bands == 1 else result
    mode = "L" if image.dtype == np.uint8 else "F"
    layers = [np.asarray(change(_open(image[:, :, band], mode))) for band in range(bands)]
    stacked = np.stack(layers, axis=2)
    if image.dtype.kind in "iu" and image.dtype != np.uint8:
        limits = np.iinfo(image.dtype)
        return np.asarray(np.clip(np.rint(stacked), limits.min, limits.max).astype(image.dtype))
    return stacked.astype(image.dtype, copy=False)


def _open(image: NDArray[Any], mode: str) -> Image.Image:
    pixels = np.ascontiguousarray(image, dtype=np.float32 if mode == "F" else np.uint8)
    size = (image.shape[1], image.shape[0])
    return Image.frombuffer(mode, size, pixels, "raw", mode, 0, 1)
