"""A random part of a film."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import Feature
from tarviz.ops.base import Draw, FieldOp


@dataclass(frozen=True, slots=True)
class RandomClip(FieldOp):
    """`frames` frames in a row of a film [frames, h, w, c], every place as likely; of a shorter film the last frame is repeated."""

    frames: int

    name: ClassVar[str] = "random_clip"

    def check(self) -> None:
        if isinstance(self.frames, bool) or not isinstance(self.frames, int) or self.frames < 1:
            raise ChainError(f"{self.name} expects a number of frames, got {self.frames!r}.")

    @property
    def draws(self) -> int:
        return 1

    def apply(self, value: Any, draw: Draw | None = None) -> NDArray[Any]:
        if not isinstance(value, np.ndarray) or value.ndim != 4 or not len(value):
            raise SchemaError(f"{self} expects frames [frames, h, w, c], got {type(value).__name__}.", details={"field": self.ext})
        spare = len(value) - self.frames
        begin = int((0.5 if draw is None else float(draw[0])) * (max(spare, 0) + 1))
        return value[np.minimum(np.arange(begin, begin + self.frames), len(value) - 1)]

    def infer(self, feature: Feature) -> Feature:
        if feature.dtype in ("bytes", "str", "object") or len(feature.shape) != 4:
            cure = f" Put decode({self.exts[0]}) before it." if feature.dtype == "bytes" else ""
            raise SchemaError(f"{self} expects frames [frames, h, w, c], got {feature}.{cure}", details={"field": self.ext})
        return Feature(feature.dtype, (self.frames, *feature.shape[1:]))

    def describe_draw(self, draw: Draw) -> str:
        return f"cut {100 * draw[0]:.0f} % of the way in"
