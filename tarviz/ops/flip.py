"""An image mirrored, at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tarviz.model.errors import ChainError
from tarviz.ops.base import Draw
from tarviz.ops.values.geometric import GeometricOp
from tarviz.ops.values.geometry import Geometry, Mirrored, Size, Turned


@dataclass(frozen=True, slots=True)
class Flip(GeometricOp):
    """Mirrors an image [h, w, c], `horizontal` (left and right change places) or `vertical`, with probability `p`.

    `p=1` flips always, `p=0.5`, the default, every other image by chance.
    `carry` takes boxes, masks and points along: see the op `carry`.
    """

    direction: Literal["horizontal", "vertical"] = "horizontal"
    p: float = 0.5

    name: ClassVar[str] = "flip"
    draws = 1

    def check(self) -> None:
        if self.direction not in ("horizontal", "vertical"):
            raise ChainError(f"{self.name} expects the direction horizontal or vertical, got {self.direction!r}.")
        self.check_number("p", 0, 1)

    def geometry(self, size: Size, draw: Draw | None = None) -> Geometry:
        return Turned(size, 0) if draw is not None and draw[0] >= self.p else Mirrored(size, self.direction)

    def apply_tf(self, value: Any, draw: Any = None) -> Any:
        import tensorflow as tf

        axis = 1 if self.direction == "horizontal" else 0
        return tf.cond(draw[0] < self.p, lambda: tf.reverse(value, [axis]), lambda: value)

    def describe_draw(self, draw: Draw) -> str:
        return "flipped" if draw[0] < self.p else "not flipped"
