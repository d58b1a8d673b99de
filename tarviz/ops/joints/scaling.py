"""Whole numbers made fractions, and normalized, part by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tarviz.model.errors import TarvizError
from tarviz.ops.base import Draw, Op
from tarviz.ops.convert import Convert, convert_image
from tarviz.ops.normalize import Normalize

_CACHED = 64_000  # bytes of numbers that are worked on at a time: they stay in the cache nearest to the core


@dataclass(frozen=True, slots=True)
class Scaling:
    """A convert to fractions, and a normalize of what it makes."""

    convert: Convert
    normalize: Normalize

    @property
    def ops(self) -> int:
        return 2

    def run(self, record: Mapping[str, Any], draw: Draw | None) -> dict[str, Any] | None:
        ext = self.convert.ext
        value, dtype = record.get(ext), np.dtype(self.convert.dtype)
        if not isinstance(value, np.ndarray) or value.ndim != 3 or value.dtype.kind != "u" or not value.flags.c_contiguous:
            return None
        made = np.empty(value.shape, dtype)
        height, length = value.shape[0], value.shape[1] * value.shape[2]
        given, rows = value.reshape(height, length), made.reshape(height, length)
        try:
            mean, std = self.normalize.rows(made)
        except TarvizError:
            return None
        step = max(_CACHED // max(length * dtype.itemsize, 1), 1)
        for at in range(0, height, step):
            part = rows[at : at + step]
            convert_image(given[at : at + step], dtype, part)
            np.subtract(part, mean, out=part)
            np.divide(part, std, out=part)
        return {**record, ext: made}


def scaling(ops: Sequence[Op]) -> Scaling | None:
    """The joint that these ops begin with."""
    convert, after = (*ops[:2], None, None)[:2]
    if not isinstance(convert, Convert) or not isinstance(after, Normalize) or convert.ext != after.ext or ";" in convert.ext:
        return None
    return Scaling(convert, after) if np.dtype(convert.dtype).kind == "f" else None
