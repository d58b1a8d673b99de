"""An image shifted and scaled to mean 0 and deviation 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import ChainError
from tarviz.model.types import Feature
from tarviz.ops.base import Draw, FieldOp, unfit
from tarviz.ops.values.images import FRAMES, check_image, image_of


@dataclass(frozen=True, slots=True)
class Normalize(FieldOp):
    """`(image - mean) / std` for a float image [h, w, c]; `mean` and `std` are numbers, or one number per channel.

    They are in the image's own range: 0…1 after `convert(jpg, float32)`. The dtype stays as it was.
    """

    mean: float | tuple[float, ...]
    std: float | tuple[float, ...]

    name: ClassVar[str] = "normalize"

    def check(self) -> None:
        for what in ("mean", "std"):
            given = getattr(self, what)
            values = tuple(given) if isinstance(given, list | tuple | np.ndarray) else (given,)
            if not values or not all(_is_number(value) for value in values):
                raise ChainError(f"{self.name} expects {what} as a number or one per channel, got {given!r}.")
            if what == "std" and not all(values):
                raise ChainError(f"{self.name} divides by std; 0 is not allowed.")
            plain = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
            self.put(what, plain if isinstance(given, list | tuple | np.ndarray) else plain[0])

    def apply(self, value: Any, draw: Draw | None = None) -> NDArray[Any]:
        image = image_of(self, value, FRAMES)
        mean, std = self.rows(image)
        made = np.asarray(np.reshape(image, (math.prod(image.shape[:-2]), image.shape[-2] * image.shape[-1])) - mean)
        return np.asarray(np.divide(made, std, out=made)).reshape(image.shape)

    def rows(self, image: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mean and std for a row of the image, laid out as its numbers are: seven times as fast as numbers for each channel."""
        self._check(Feature(str(image.dtype), image.shape))
        mean, std = (np.asarray(numbers, image.dtype) for numbers in (self.mean, self.std))
        return tuple(np.tile(each, image.shape[-2]) if each.size > 1 else each for each in (mean, std))  # type: ignore[return-value]

    def infer(self, feature: Feature) -> Feature:
        return self._check(check_image(self, feature, FRAMES))

    def _check(self, feature: Feature) -> Feature:
        if not feature.dtype.startswith("float"):
            cure = f"Put convert({self.ext}, float32) before it."
            raise unfit(self, f"expects a float image, got {feature}. {cure}")
        for numbers in (self.mean, self.std):
            channels = feature.shape[-1]
            if isinstance(numbers, tuple) and channels is not None and len(numbers) not in (1, channels):
                raise unfit(self, f"has {len(numbers)} numbers for {channels} channels.")
        return feature

    def apply_tf(self, value: Any, draw: Any = None) -> Any:
        import tensorflow as tf

        return (value - tf.constant(self.mean, value.dtype)) / tf.constant(self.std, value.dtype)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)
