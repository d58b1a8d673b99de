"""An image rotated about its centre."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray
from PIL import Image

from tarviz.model.errors import ChainError
from tarviz.model.types import Feature
from tarviz.ops.base import Draw, FieldOp
from tarviz.ops.values.images import check_image, image_of, through_pil


@dataclass(frozen=True, slots=True)
class Rotate(FieldOp):
    """Turns an image [h, w, c] by `angle` degrees clockwise, bilinear; by a random angle where none is given.

    Height and width stay: corners that turn out of the frame are cut off, those that turn in are black (0).
    A random angle is drawn from the full circle; 0 turns nothing. There is no lowering: TensorFlow mixes the edges with black.
    """

    angle: float | None = None

    name: ClassVar[str] = "rotate"

    def check(self) -> None:
        if self.angle is None:
            return
        if isinstance(self.angle, bool) or not isinstance(self.angle, int | float) or not math.isfinite(self.angle):
            raise ChainError(f"{self.name} expects an angle in degrees, got {self.angle!r}.")

    @property
    def draws(self) -> int:
        return 1 if self.angle is None else 0

    def drawn_angle(self, draw: Draw | None) -> float:
        """Degrees clockwise: `angle`, or where there is none the one drawn."""
        if self.angle is not None:
            return self.angle
        return 0 if draw is None else 360 * float(draw[0])

    def apply(self, value: Any, draw: Draw | None = None) -> NDArray[Any]:
        image = image_of(self, value)
        angle = self.drawn_angle(draw)
        if not angle % 360:
            return image
        return through_pil(image, lambda picture: picture.rotate(-angle, Image.Resampling.BILINEAR))

    def infer(self, feature: Feature) -> Feature:
        return check_image(self, feature)

    def describe_draw(self, draw: Draw) -> str:
        return f"turned by {self.drawn_angle(draw):.1f}°"
