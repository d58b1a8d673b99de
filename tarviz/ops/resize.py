"""An image to a size in pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tarviz.model.types import Feature, Schema
from tarviz.ops.base import Draw
from tarviz.ops.values.geometric import GeometricOp
from tarviz.ops.values.geometry import Geometry, Resized, Size
from tarviz.ops.values.images import pair
from tarviz.ops.values.resizer import fast_resize


@dataclass(frozen=True, slots=True)
class Resize(GeometricOp):
    """Resizes an image [h, w, c] to `size`, (height, width) in pixels, bilinear with antialias; aspect is not kept.

    The dtype stays as it was. The meaning is PIL's; pictures of uint8 are resized by cykooz-resizer where it is installed (extra
    `fast`), within 1 of 255 of PIL in a quarter of its time. In the graph: `tf.image.resize(antialias=True)`, within 1 of 255.
    `carry` takes boxes, masks and points along: see the op `carry`.
    """

    size: tuple[int, int]

    name: ClassVar[str] = "resize"

    def check(self) -> None:
        self.put("size", pair(self.name, self.size, "a size"))

    def geometry(self, size: Size, draw: Draw | None = None) -> Geometry:
        return Resized(size, self.size)

    def native(self, feature: Feature) -> bool:
        return feature.dtype == "uint8" and fast_resize() is not None

    def lowers_on(self, schema: Schema) -> bool:
        unknown = "bool", "uint32", "uint64"  # to tf.image.resize
        return GeometricOp.lowers_on(self, schema) and schema[self.field(schema)].dtype not in unknown

    def infer_size(self, feature: Feature) -> Size:
        return self.size

    def apply_tf(self, value: Any, draw: Any = None) -> Any:
        import tensorflow as tf

        def resized() -> Any:
            made = tf.image.resize(value, self.size, antialias=True)
            return tf.saturate_cast(tf.round(made) if value.dtype.is_integer else made, value.dtype)

        if value.shape[:2].is_fully_defined():
            return value if tuple(value.shape[:2]) == self.size else resized()
        same = tf.reduce_all(tf.shape(value)[:2] == self.size)
        return tf.ensure_shape(tf.cond(same, lambda: value, resized), (*self.size, value.shape[2]))
