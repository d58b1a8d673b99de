"""Sound of several channels as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tarviz.model.types import Feature
from tarviz.ops.base import Draw, FieldOp, feature_of, unfit


@dataclass(frozen=True, slots=True)
class MixDown(FieldOp):
    """The mean of the channels of a sound [samples, channels], as [samples, 1] (`librosa.to_mono`, `mono=True` of `decode`)."""

    name: ClassVar[str] = "mix_down"

    def apply(self, value: Any, draw: Draw | None = None) -> NDArray[Any]:
        self.infer(feature_of(value))
        return np.asarray(value.mean(axis=1, keepdims=True, dtype=value.dtype))

    def infer(self, feature: Feature) -> Feature:
        if not feature.dtype.startswith("float") or len(feature.shape) != 2:
            cure = f" Put decode({self.exts[0]}) before it." if feature.dtype == "bytes" else ""
            raise unfit(self, f"expects sound [samples, channels], got {feature}.{cure}")
        return Feature(feature.dtype, (feature.shape[0], 1))
