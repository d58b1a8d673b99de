"""Resizing by cykooz-resizer, where it is installed: PIL's bilinear with antialias, within 1 of 255, in a quarter of its time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

Resizing = Callable[[NDArray[np.uint8], int, int], NDArray[np.uint8]]


@cache
def fast_resize() -> Resizing | None:
    """A function (image uint8 [h, w, 1 to 4], height, width) → image, or None where the package is not installed."""
    try:
        import cykooz_resizer as package
    except ImportError:
        return None
    kinds = {1: package.PixelType.U8, 2: package.PixelType.U8x2, 3: package.PixelType.U8x3, 4: package.PixelType.U8x4}
    bilinear = package.ResizeAlg.convolution(package.FilterType.bilinear)
    own = threading.local()  # a resizer holds buffers and serves one thread at a time

    def resize(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
        if not hasattr(own, "resizer"):
            # A fourth band is a band like others: colours are not weighed by it.
            own.resizer, own.options = package.Resizer(), package.ResizeOptions(resize_alg=bilinear, use_alpha=False)
        bands = image.shape[2]
        source = package.ImageData(image.shape[1], image.shape[0], kinds[bands], image.tobytes())
        target = package.ImageData(width, height, kinds[bands])
        own.resizer.resize(source, target, own.options)
        return np.frombuffer(bytearray(target.get_buffer()), np.uint8).reshape(height, width, bands)

    return resize
