"""A piece of an image, its place drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tarviz.model.types import Feature
from tarviz.ops.base import Draw
from tarviz.ops.values.geometric import GeometricOp
from tarviz.ops.values.geometry import Cropped, Geometry, Size
from tarviz.ops.values.images import check_crop, pair


@dataclass(frozen=True, slots=True)
class RandomCrop(GeometricOp):
    """A piece of an image [h, w, c], `size` = (height, width) pixels of it, every place as likely.

    An image smaller than `size` is an error: put a resize before it.
    `carry` takes boxes, masks and points along: see the op `carry`.
    """

    size: tuple[int, int]

    name: ClassVar[str] = "random_crop"

    def check(self) -> None:
        self.put("size", pair(self.name, self.size, "a size"))

    @property
    def draws(self) -> int:
        return 2

    def geometry(self, size: Size, draw: Draw | None = None) -> Geometry:
        check_crop(self, size, self.size)
        down, right = (0.5, 0.5) if draw is None else (float(draw[0]), float(draw[1]))
        return Cropped(size, int(down * (size[0] - self.size[0] + 1)), int(right * (size[1] - self.size[1] + 1)), self.size)

    def infer_size(self, feature: Feature) -> Size:
        check_crop(self, feature.shape[-3:], self.size)
        return self.size

    def apply_tf(self, value: Any, draw: Any = None) -> Any:
        import tensorflow as tf

        room = tf.shape(value)[:2] - self.size
        too_small = f"{self}: the image is smaller than {self.size[0]} x {self.size[1]}. Put resize({self.ext}, …) before it."
        with tf.control_dependencies([tf.debugging.assert_non_negative(room, too_small)]):
            offset = tf.cast(draw[:2] * tf.cast(room + 1, draw.dtype), tf.int32)
            return tf.slice(value, tf.concat([offset, [0]], 0), [*self.size, -1])

    def describe_draw(self, draw: Draw) -> str:
        return f"cut {100 * draw[0]:.0f} % of the way down, {100 * draw[1]:.0f} % across"
