"""A random part of a sound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tarviz.model.types import Feature
from tarviz.ops.base import Draw
from tarviz.ops.values.sonic import SoundOp


@dataclass(frozen=True, slots=True)
class Clip(SoundOp):
    """A part of a sound [samples, channels] that is `seconds` long, every place as likely; what is shorter is filled up with zeros.

    To read the same part of every file, and no more than that, use `decode(flac, start=…, seconds=…)`.
    """

    seconds: float = 1.0

    name: ClassVar[str] = "clip"
    draws = 1

    def check(self) -> None:
        self.check_number("seconds")

    def sound(self, samples: NDArray[Any], rate: int, draw: Draw | None = None) -> NDArray[Any]:
        count = max(1, round(self.seconds * rate))
        begin = int((0.5 if draw is None else float(draw[0])) * (max(len(samples) - count, 0) + 1))
        part = samples[begin : begin + count]
        return np.pad(part, ((0, count - len(part)), (0, 0)))

    def infer(self, feature: Feature) -> Feature:
        channels = self.check_sound(feature).shape[1]
        return Feature("float32", (None if self.rate is None else max(1, round(self.seconds * self.rate)), channels))

    def describe_draw(self, draw: Draw) -> str:
        return f"cut {100 * draw[0]:.0f} % of the way in"
