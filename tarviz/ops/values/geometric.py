"""What ops that move the pixels of a picture share: boxes, masks and key points carried along."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.looks.carried import Carrier, Move
from tarviz.model.errors import DataError
from tarviz.model.types import Feature, Schema
from tarviz.ops.base import Draw, FieldOp, Op, in_graph, missing, unfit
from tarviz.ops.carry import Carry
from tarviz.ops.values.carrying import carried_names, form_of, share_left
from tarviz.ops.values.geometry import Cropped, Geometry, Size
from tarviz.ops.values.images import FRAMES, check_crop, check_image, image_of, pair
from tarviz.ops.values.payloads import kind_of


@dataclass(frozen=True, slots=True)
class CarryingOp(FieldOp):
    """An op that moves the pixels of an image. `carry` names the fields that go along with it, several as a tuple, and `visible` how
    much of a box has to be left: see the op `carry`."""

    carry: str | tuple[str, ...] = field(default=(), kw_only=True)
    visible: float | None = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        FieldOp.__post_init__(self)
        self.put("carry", carried_names(self.name, self.ext, self.carry))
        self.put("visible", share_left(self.name, self.visible))

    @property
    def carries(self) -> tuple[tuple[str, str], ...]:
        """Fields carried along, and the form of their boxes: "" where they say it themselves."""
        return tuple(form_of(name) for name in ((self.carry,) if isinstance(self.carry, str) else self.carry))

    def carry_along(self, record: Mapping[str, Any], move: Move, mask: Callable[[NDArray[Any]], NDArray[Any]]) -> dict[str, Any]:
        """The fields carried along after a move; `mask` moves an array as large as the picture."""
        made: dict[str, Any] = {}
        for name, form in self.carries:
            if name not in record:
                raise missing(self, name, record)
            made[name] = self._move(record[name], name, Carrier(move, form, self.visible, mask), move, mask if not form else None)
        return made

    def _move(self, value: Any, name: str, carrier: Carrier, move: Move, mask: Callable[[NDArray[Any]], NDArray[Any]] | None) -> Any:
        if isinstance(value, bytes | bytearray | memoryview):
            if kind_of("", value) == "picture":
                raise unfit(self, f"expects the mask {name} as an array. Put decode({name}) before it.", field=name)
            return carrier.payload(value, name)
        if not isinstance(value, np.ndarray):
            return carrier.tree(value)
        if mask is None:
            return carrier.rows(value)
        if value.ndim < 2 or size_of(value) != move.before:
            sizes = " and ".join(f"{h} x {w}" for h, w in (move.before, size_of(value))) if value.ndim >= 2 else f"shape {value.shape}"
            raise DataError(
                f"the mask {name} is not as large as the picture: {sizes}.",
                details={"field": name},
                hint=f'Resize it first; if it holds boxes, say their form: carry="{name}:xyxy".',
            )
        return mask(value)

    def run_schema(self, schema: Schema) -> Schema:
        ext = self.field(schema)
        image = self.infer(schema[ext])
        made = {**schema, ext: image}
        for name, form in self.carries:
            if name not in schema:
                raise missing(self, name, schema)
            made[name] = self._carried_feature(schema[name], image, form)
        return Schema(made)

    def _carried_feature(self, feature: Feature, image: Feature, form: str) -> Feature:
        if feature.dtype in ("bytes", "object"):
            return feature
        if not form:
            return Feature(feature.dtype, (*image.shape[-3:-1], *feature.shape[2:]))
        return Feature(feature.dtype if feature.dtype.startswith("float") else "float32", (None, *feature.shape[1:]))

    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        return None if wanted is None else wanted | set(self.exts) | {name for name, _ in self.carries}

    def changed_fields(self, there: Mapping[str, Any]) -> tuple[str, ...]:
        return (self.field(there), *(name for name, _ in self.carries))

    @property
    def named(self) -> frozenset[str]:
        return frozenset((*self.exts, *(name for name, _ in self.carries)))

    def after(self, before: Sequence[Op]) -> CarryingOp:
        declared = self._declaration(before)
        return replace(self, carry=declared.carry, visible=declared.visible) if declared and not self.carry else self

    def without(self, before: Sequence[Op]) -> CarryingOp:
        declared = self._declaration(before)
        same = declared and (declared.carry, declared.visible) == (self.carry, self.visible)
        return replace(self, carry=(), visible=0.0) if same else self

    def _declaration(self, before: Sequence[Op]) -> Carry | None:
        """The last op `carry` for this picture among the ops before."""
        return next((op for op in reversed(before) if isinstance(op, Carry) and set(op.ext.split(";")) & set(self.exts)), None)


@dataclass(frozen=True, slots=True)
class GeometricOp(CarryingOp):
    """An op that moves pixels as a `Geometry` says; fields are carried along as `CarryingOp` says."""

    @abstractmethod
    def geometry(self, size: tuple[int, int], draw: Draw | None = None) -> Geometry:
        """What the op does to an image of (height, width) pixels, with these random numbers."""

    def infer_size(self, feature: Feature) -> tuple[int | None, int | None]:
        """Height and width after the op, of an image; None where they are not known. They stay."""
        return feature.shape[-3], feature.shape[-2]

    def apply(self, value: Any, draw: Draw | None = None) -> NDArray[Any]:
        image = image_of(self, value, FRAMES)
        return move(self.geometry(size_of(image), draw), image)

    def infer(self, feature: Feature) -> Feature:
        *frames, _, _, channels = check_image(self, feature, FRAMES).shape
        return Feature(feature.dtype, (*frames, *self.infer_size(feature), channels))

    def run(self, record: Mapping[str, Any], draw: Draw | None = None) -> dict[str, Any]:
        ext = self.field(record)
        made = {**record, ext: self.apply(record[ext], draw)}
        if not self.carry:
            return made
        geometry = self.geometry(size_of(image_of(self, record[ext], FRAMES)), draw)
        return {**made, **self.carry_along(record, geometry, geometry.mask)}

    @property
    def lowers(self) -> bool:
        return in_graph(type(self)) and not self.carry

    def lowers_on(self, schema: Schema) -> bool:
        return self.lowers and len(schema[self.field(schema)].shape) == 3  # frames are moved one by one, by the reference


@dataclass(frozen=True, slots=True)
class CropOp(GeometricOp):
    """An op that cuts a piece of `size` (height, width) out of an image; a smaller image is an error."""

    size: tuple[int, int]

    @abstractmethod
    def begin(self, spare: Any, share: Any) -> Any:
        """Where the piece begins along a side that is `spare` pixels longer, before what is behind the point is cut off; `share` is the
        random number of that side, or None. Both sides at once where they are tensors."""

    def check(self) -> None:
        self.put("size", pair(self.name, self.size, "a size"))

    def geometry(self, size: Size, draw: Draw | None = None) -> Geometry:
        check_crop(self, size, self.size)
        down, right = (None, None) if draw is None or not self.draws else (float(draw[0]), float(draw[1]))
        (height, width), (tall, wide) = size, self.size
        return Cropped(size, int(self.begin(height - tall, down)), int(self.begin(width - wide, right)), self.size)

    def infer_size(self, feature: Feature) -> Size:
        check_crop(self, feature.shape[-3:], self.size)
        return self.size

    def apply_tf(self, value: Any, draw: Any = None) -> Any:
        import tensorflow as tf

        spare = tf.shape(value)[:2] - self.size
        too_small = f"{self}: the image is smaller than {self.size[0]} x {self.size[1]}. Put resize({self.ext}, …) before it."
        with tf.control_dependencies([tf.debugging.assert_non_negative(spare, too_small)]):
            corner = self.begin(tf.cast(spare, draw.dtype), draw[:2]) if self.draws else self.begin(spare, None)
            return tf.slice(value, tf.concat([tf.cast(corner, tf.int32), [0]], 0), [*self.size, -1])


def move(geometry: Geometry, image: NDArray[Any]) -> NDArray[Any]:
    """An image moved, or each frame [h, w, c] of a film, all alike."""
    if image.ndim == 3:
        return geometry.picture(image)
    frames = [geometry.picture(frame) for frame in image]
    return np.stack(frames) if frames else np.empty((0, *geometry.after, image.shape[3]), image.dtype)


def size_of(image: NDArray[Any]) -> tuple[int, int]:
    """Height and width, of a film those of its frames."""
    return (image.shape[1], image.shape[2]) if image.ndim == 4 else (image.shape[0], image.shape[1])
