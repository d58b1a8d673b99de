"""Whole numbers made fractions, and normalized, part by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import TarvizError
from tarviz.ops.base import Draw, Op
from tarviz.ops.convert import Convert, convert_image
from tarviz.ops.normalize import Normalize

# Bytes of numbers that are worked on at a time: they stay in the core's second cache. In parts of the first cache's size the work is no
# quicker, and each step of NumPy lets go of the interpreter and has to wait for it again: thirty times for 224×224, with other threads.
_CACHED = 640_000


@dataclass(frozen=True, slots=True)
class Scaling:
    """A convert to fractions, and a normalize of what it makes."""

    convert: Convert
    normalize: Normalize

    ops = 2

    def run(self, record: Mapping[str, Any], draw: Draw | None, room: Mapping[str, NDArray[Any]]) -> dict[str, Any] | None:
        ext = self.convert.ext
        value = record.get(ext)
        if not isinstance(value, np.ndarray) or value.ndim != 3 or value.dtype.kind != "u" or not value.flags.c_contiguous:
            return None
        made = self.scale(value, room.get(ext))
        return None if made is None else {**record, ext: made}

    def scale(self, image: NDArray[Any], room: NDArray[Any] | None) -> NDArray[Any] | None:
        """The image, whole numbers [h, w, c] in C order, after the two; in `room` where it fits there. None where that is an error."""
        made = fitting(room, image.shape, self.convert.dtype)
        height, length = image.shape[0], image.shape[1] * image.shape[2]
        given, rows = image.reshape(height, length), made.reshape(height, length)
        try:
            mean, std = self.normalize.rows(made)
        except TarvizError:
            return None
        step = max(_CACHED // max(length * made.itemsize, 1), 1)
        for at in range(0, height, step):
            part = rows[at : at + step]
            convert_image(given[at : at + step], made.dtype, part)
            np.subtract(part, mean, out=part)
            np.divide(part, std, out=part)
        return made


def fitting(room: NDArray[Any] | None, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """The memory offered for a value, where that is of the shape and dtype and in C order; else memory of its own."""
    if room is not None and room.shape == shape and room.dtype == dtype and room.flags.c_contiguous:
        return room
    return np.empty(shape, dtype)


def scaling(ops: Sequence[Op]) -> Scaling | None:
    """The joint that these ops begin with."""
    convert, after = (*ops[:2], None, None)[:2]
    if not isinstance(convert, Convert) or not isinstance(after, Normalize) or convert.ext != after.ext or ";" in convert.ext:
        return None
    return Scaling(convert, after) if np.dtype(convert.dtype).kind == "f" else None
