"""The middle of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from tarviz.model.types import Feature
from tarviz.ops.base import Draw, FieldOp
from tarviz.ops.values.images import check_crop, check_image, image_of, pair


@dataclass(frozen=True, slots=True)
class CenterCrop(FieldOp):
    """The middle of an image [h, w, c], `size` = (height, width) pixels of it; an odd rest stays at the bottom and right.

    An image smaller than `size` is an error: put a resize before it.
    """

    size: tuple[int, int]

    name: ClassVar[str] = "center_crop"

    def check(self) -> None:
        self.put("size", pair(self.name, self.size, "a size"))

    def apply(self, value: Any, draw: Draw | None = None) -> NDArray[Any]:
        image = image_of(self, value)
        check_crop(self, image.shape, self.size)
        height, width = self.size
        top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
        return image[top : top + height, left : left + width].copy()

    def infer(self, feature: Feature) -> Feature:
        check_crop(self, check_image(self, feature).shape, self.size)
        return Feature(feature.dtype, (*self.size, feature.shape[2]))

    def apply_tf(self, value: Any, draw: Any = None) -> Any:
        import tensorflow as tf

        shape = tf.shape(value)
        offset = (shape[:2] - self.size) // 2
        too_small = f"{self}: the image is smaller than {self.size[0]} x {self.size[1]}. Put resize({self.ext}, …) before it."
        with tf.control_dependencies([tf.debugging.assert_non_negative(shape[:2] - self.size, too_small)]):
            return tf.slice(value, tf.concat([offset, [0]], 0), [*self.size, -1])
