"""An image mirrored, at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from numpy.typing import NDArray

from tarviz.model.errors import ChainError
from tarviz.model.types import Feature
from tarviz.ops.base import Draw, FieldOp
from tarviz.ops.values.images import check_image, image_of


@dataclass(frozen=True, slots=True)
class Flip(FieldOp):
    """Mirrors an image [h, w, c], `horizontal` (left and right change places) or `vertical`, with probability `p`.

    `p=1` flips always, `p=0.5`, the default, every other image by chance.
    """

    direction: Literal["horizontal", "vertical"] = "horizontal"
    p: float = 0.5

    name: ClassVar[str] = "flip"

    def check(self) -> None:
        if self.direction not in ("horizontal", "vertical"):
            raise ChainError(f"{self.name} expects the direction horizontal or vertical, got {self.direction!r}.")
        if isinstance(self.p, bool) or not isinstance(self.p, int | float) or not 0 <= self.p <= 1:
            raise ChainError(f"{self.name} expects a probability between 0 and 1, got {self.p!r}.")

    @property
    def draws(self) -> int:
        return 1

    def apply(self, value: Any, draw: Draw | None = None) -> NDArray[Any]:
        image = image_of(self, value)
        if draw is not None and draw[0] >= self.p:
            return image
        return (image[:, ::-1] if self.direction == "horizontal" else image[::-1]).copy()

    def infer(self, feature: Feature) -> Feature:
        return check_image(self, feature)

    def apply_tf(self, value: Any, draw: Any = None) -> Any:
        import tensorflow as tf

        axis = 1 if self.direction == "horizontal" else 0
        return tf.cond(draw[0] < self.p, lambda: tf.reverse(value, [axis]), lambda: value)

    def describe_draw(self, draw: Draw) -> str:
        return "flipped" if draw[0] < self.p else "not flipped"
