"""A random part of a film."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tarviz.model.types import Feature
from tarviz.ops.base import Draw, FieldOp, unfit
from tarviz.ops.values.images import FILM, check_image, image_of


@dataclass(frozen=True, slots=True)
class RandomClip(FieldOp):
    """`frames` frames in a row of a film [frames, h, w, c], every place as likely; of a shorter film the last frame is repeated."""

    frames: int

    name: ClassVar[str] = "random_clip"
    draws = 1

    def check(self) -> None:
        self.check_number("frames", 1, whole=True)

    def apply(self, value: Any, draw: Draw | None = None) -> NDArray[Any]:
        film = image_of(self, value, FILM)
        if not len(film):
            raise unfit(self, "expects at least one frame, got none.")
        spare = len(film) - self.frames
        begin = int((0.5 if draw is None else float(draw[0])) * (max(spare, 0) + 1))
        return np.asarray(film[np.minimum(np.arange(begin, begin + self.frames), len(film) - 1)])

    def infer(self, feature: Feature) -> Feature:
        return Feature(feature.dtype, (self.frames, *check_image(self, feature, FILM).shape[1:]))

    def describe_draw(self, draw: Draw) -> str:
        return f"cut {100 * draw[0]:.0f} % of the way in"
