"""The middle of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tarviz.model.types import Feature
from tarviz.ops.base import Draw
from tarviz.ops.values.geometric import GeometricOp
from tarviz.ops.values.geometry import Cropped, Geometry, Size
from tarviz.ops.values.images import check_crop, pair


@dataclass(frozen=True, slots=True)
class CenterCrop(GeometricOp):
    """The middle of an image [h, w, c], `size` = (height, width) pixels of it; an odd rest stays at the bottom and right.

    An image smaller than `size` is an error: put a resize before it.
    `carry` takes boxes, masks and points along: see the op `carry`.
    """

    size: tuple[int, int]

    name: ClassVar[str] = "center_crop"

    def check(self) -> None:
        self.put("size", pair(self.name, self.size, "a size"))

    def geometry(self, size: Size, draw: Draw | None = None) -> Geometry:
        check_crop(self, size, self.size)
        return Cropped(size, (size[0] - self.size[0]) // 2, (size[1] - self.size[1]) // 2, self.size)

    def infer_size(self, feature: Feature) -> Size:
        check_crop(self, feature.shape[-3:], self.size)
        return self.size

    def apply_tf(self, value: Any, draw: Any = None) -> Any:
        import tensorflow as tf

        shape = tf.shape(value)
        offset = (shape[:2] - self.size) // 2
        too_small = f"{self}: the image is smaller than {self.size[0]} x {self.size[1]}. Put resize({self.ext}, …) before it."
        with tf.control_dependencies([tf.debugging.assert_non_negative(shape[:2] - self.size, too_small)]):
            return tf.slice(value, tf.concat([offset, [0]], 0), [*self.size, -1])
