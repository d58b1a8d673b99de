"""A value to another dtype, images scaled to its range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import ChainError, DataError
from tarviz.model.types import Feature, Schema
from tarviz.ops.base import Draw, FieldOp, unfit

_DTYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
_WIDE = {"int32", "uint32", "int64", "uint64"}  # of pictures TensorFlow lacks some of these conversions, and others overflow in it


def dtype_name(op: str, dtype: Any) -> str:
    """The NumPy name of a number dtype given as name, NumPy dtype or scalar type, or TensorFlow dtype."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or dtype
    if name in _DTYPES:
        return str(name)
    raise ChainError(f"{op} knows no dtype {name!r}.", hint=f"The dtypes are {', '.join(_DTYPES)}.")


@dataclass(frozen=True, slots=True)
class Convert(FieldOp):
    """Converts an array to `dtype` and scales it, as `tf.image.convert_image_dtype` with saturation does.

    Integers become floats in 0…1 (divided by the largest value of their dtype) and come back; floats outside
    of 0…1 are clipped on the way back. A single number (a decoded `cls`) keeps its value instead.
    """

    dtype: str

    name: ClassVar[str] = "convert"

    def check(self) -> None:
        self.put("dtype", dtype_name(self.name, self.dtype))

    def apply(self, value: Any, draw: Draw | None = None) -> Any:
        if not isinstance(value, np.ndarray | np.generic | int | float):
            raise unfit(self, f"expects an array or a number, got {type(value).__name__}. Put decode({self.ext}) before it.")
        array = np.asarray(value)
        if array.dtype == self.dtype:
            return value
        return self._number(array) if array.ndim == 0 else convert_image(array, np.dtype(self.dtype))

    def _number(self, number: NDArray[Any]) -> Any:
        dtype = np.dtype(self.dtype)
        if dtype.kind in "iu" and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
            raise DataError(f"{number} is outside the range of {self.dtype}.", code="E_DECODE", details={"field": self.ext})
        return number.astype(dtype)[()]

    def infer(self, feature: Feature) -> Feature:
        if feature.dtype not in _DTYPES:
            cure = f" Put decode({self.ext}) before it." if feature.dtype == "bytes" else ""
            raise unfit(self, f"expects an array or a number, got {feature}.{cure}")
        return Feature(self.dtype, feature.shape)

    def lowers_on(self, schema: Schema) -> bool:
        feature = schema[self.field(schema)]
        return self.lowers and (not feature.shape or feature.dtype == self.dtype or not {feature.dtype, self.dtype} & _WIDE)

    def apply_tf(self, value: Any, draw: Any = None) -> Any:
        import tensorflow as tf

        if value.shape.rank == 0:
            return self._number_tf(value)
        return tf.image.convert_image_dtype(value, self.dtype, saturate=True)

    def _number_tf(self, value: Any) -> Any:
        import tensorflow as tf

        dtype = tf.as_dtype(self.dtype)
        number = tf.cast(value, dtype)
        if not value.dtype.is_integer or not dtype.is_integer:
            return number
        with tf.control_dependencies([tf.debugging.assert_equal(tf.cast(number, value.dtype), value, f"{self}: out of range.")]):
            return tf.identity(number)


def convert_image(image: NDArray[Any], dtype: np.dtype[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """`image` in `dtype`, scaled; whole numbers as fractions into `out`, where it is given.

    Source: tensorflow/python/ops/image_ops_impl.py, `convert_image_dtype`.
    """
    if image.dtype.kind == "f":
        if dtype.kind == "f":
            return image.astype(dtype)
        limits = np.iinfo(dtype)
        with np.errstate(invalid="ignore"):
            scaled = image * image.dtype.type(limits.max + 0.5)
        return _saturate(scaled, dtype)
    top = int(np.iinfo(image.dtype).max)
    if dtype.kind == "f":
        return np.asarray(np.multiply(image, dtype.type(1.0 / top), out=out, dtype=dtype))
    target = int(np.iinfo(dtype).max)
    if top > target:
        return _saturate(image // image.dtype.type((top + 1) // (target + 1)), dtype)
    return np.asarray(np.multiply(_saturate(image, dtype), dtype.type((target + 1) // (top + 1)), dtype=dtype))


def _saturate(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Values cast to an integer dtype, cut off at its limits; NaN becomes 0."""
    limits = np.iinfo(dtype)
    if values.dtype.kind == "f":
        wide = np.nan_to_num(values.astype(np.float64), nan=0.0)
        below, above = wide <= limits.min, wide >= limits.max
        whole = np.where(below | above, 0, wide).astype(dtype)
        return np.where(below, dtype.type(limits.min), np.where(above, dtype.type(limits.max), whole))
    low = max(int(limits.min), int(np.iinfo(values.dtype).min))
    high = min(int(limits.max), int(np.iinfo(values.dtype).max))
    return np.asarray(np.clip(values, values.dtype.type(low), values.dtype.type(high)).astype(dtype))
