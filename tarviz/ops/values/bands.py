"""Three of four bands: what decoders and resizers work on, made into what an image is."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Mirror = Literal["", "horizontal", "vertical"]


def three_bands(pixels: NDArray[np.uint8], out: NDArray[np.uint8] | None = None, mirror: Mirror = "") -> NDArray[np.uint8]:
    """The first three bands of an image uint8 [h, w, 4], mirrored if need be: in memory of their own or in `out`, uint8 [h, w, 3], C order.

    It lets go of the interpreter.

    >>> three_bands(np.arange(8, dtype=np.uint8).reshape(1, 2, 4), mirror="horizontal").tolist()
    [[[4, 5, 6], [0, 1, 2]]]
    """
    made = np.empty((*pixels.shape[:2], 3), np.uint8) if out is None else out
    if mirror:
        pixels = pixels[:, ::-1] if mirror == "horizontal" else pixels[::-1]
    if _in_order():
        _overlapping(pixels, made)
    else:
        made[:] = pixels[:, :, :3]
    return made


def _overlapping(pixels: NDArray[np.uint8], made: NDArray[np.uint8]) -> None:
    """Write each pixel as four bytes, and the next one over the last of them: ten times as fast as three bytes of four.

    Not so the last pixel: what follows it in memory is somebody else's.
    """
    height, width = made.shape[:2]
    if not height or not width:
        return
    whole: NDArray[Any] = pixels.view(np.uint32)[:, :, 0]
    if height > 1:
        np.ndarray((height - 1, width), np.uint32, made, 0, (3 * width, 3))[...] = whole[:-1]
    if width > 1:
        np.ndarray((width - 1,), np.uint32, made, 3 * width * (height - 1), (3,))[...] = whole[-1, :-1]
    made[-1, -1] = pixels[-1, -1, :3]


@cache
def _in_order() -> bool:
    """Whether NumPy writes elements that overlap front to back, as it always has: nothing in its documents says so."""
    pixels = np.random.default_rng(0).integers(0, 256, (41, 67, 4), np.uint8)
    for given in (pixels, pixels[:, ::-1], pixels[::-1], pixels[3:, 5:]):
        made = np.empty((*given.shape[:2], 3), np.uint8)
        _overlapping(given, made)
        if not np.array_equal(made, given[:, :, :3]):
            return False
    return True
