"""A piece of an image, its place drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from tarviz.model.types import Feature
from tarviz.ops.base import Draw, FieldOp
from tarviz.ops.values.images import check_crop, check_image, image_of, pair


@dataclass(frozen=True, slots=True)
class RandomCrop(FieldOp):
    """A piece of an image [h, w, c], `size` = (height, width) pixels of it, every place as likely.

    An image smaller than `size` is an error: put a resize before it.
    """

    size: tuple[int, int]

    name: ClassVar[str] = "random_crop"

    def check(self) -> None:
        self.put("size", pair(self.name, self.size, "a size"))

    @property
    def draws(self) -> int:
        return 2

    def apply(self, value: Any, draw: Draw | None = None) -> NDArray[Any]:
        image = image_of(self, value)
        check_crop(self, image.shape, self.size)
        height, width = self.size
        down, right = (0.5, 0.5) if draw is None else (float(draw[0]), float(draw[1]))
        top = int(down * (image.shape[0] - height + 1))
        left = int(right * (image.shape[1] - width + 1))
        return image[top : top + height, left : left + width].copy()

    def infer(self, feature: Feature) -> Feature:
        check_crop(self, check_image(self, feature).shape, self.size)
        return Feature(feature.dtype, (*self.size, feature.shape[2]))

    def apply_tf(self, value: Any, draw: Any = None) -> Any:
        import tensorflow as tf

        room = tf.shape(value)[:2] - self.size
        too_small = f"{self}: the image is smaller than {self.size[0]} x {self.size[1]}. Put resize({self.ext}, …) before it."
        with tf.control_dependencies([tf.debugging.assert_non_negative(room, too_small)]):
            offset = tf.cast(draw[:2] * tf.cast(room + 1, draw.dtype), tf.int32)
            return tf.slice(value, tf.concat([offset, [0]], 0), [*self.size, -1])

    def describe_draw(self, draw: Draw) -> str:
        return f"cut {100 * draw[0]:.0f} % of the way down, {100 * draw[1]:.0f} % across"
