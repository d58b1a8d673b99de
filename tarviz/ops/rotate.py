"""An image rotated about its centre."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tarviz.model.errors import ChainError
from tarviz.ops.base import Draw
from tarviz.ops.values.geometric import GeometricOp
from tarviz.ops.values.geometry import Geometry, Size, Turned


@dataclass(frozen=True, slots=True)
class Rotate(GeometricOp):
    """Turns an image [h, w, c] by `angle` degrees clockwise, bilinear; by a random angle where none is given.

    Height and width stay: corners that turn out of the frame are cut off, those that turn in are black (0).
    A random angle is drawn from the full circle; 0 turns nothing. There is no lowering: TensorFlow mixes the edges with black.
    `carry` takes boxes, masks and points along: see the op `carry`.
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

    def geometry(self, size: Size, draw: Draw | None = None) -> Geometry:
        return Turned(size, self.drawn_angle(draw))

    def describe_draw(self, draw: Draw) -> str:
        return f"turned by {self.drawn_angle(draw):.1f}°"
