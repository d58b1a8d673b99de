"""What a TFRecorder attribute may be, how it stands in a `tf.train.Example`, and the schema kept beside the files."""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tarviz.model.errors import DataError, SchemaError, UsageError

Shape: TypeAlias = tuple[int | None, ...]

SHAPE = ".shape"  # an array's bytes are one feature, its shape another
_POINT = [-1]  # the shape of an array of no dimension: an empty list is read like none, which is what files of the original have


class Field(enum.Enum):
    """The types an attribute can have. Arrays keep their shape, `TYPE_DOUBLE` all of its 64 bits."""

    TYPE_BOOL = "bool"
    TYPE_INT32 = "int32"
    TYPE_INT64 = "int64"
    TYPE_FLOAT = "float32"
    TYPE_DOUBLE = "float64"
    TYPE_STRING = "str"
    TYPE_ARRAY_INT32 = "int32[]"
    TYPE_ARRAY_FLOAT32 = "float32[]"

    @property
    def is_array(self) -> bool:
        return self.value.endswith("[]")

    @property
    def dtype(self) -> str:
        """The NumPy name of a value, or of an array's elements; `str` for text."""
        return self.value.removesuffix("[]")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One recordable attribute: its name, its type, and for an array its shape as far as it is known (None: not at all)."""

    name: str
    field: Field
    shape: Shape | None = None

    def features(self, value: Any, owner: str) -> dict[str, Any]:
        """The features that hold `value`. `SchemaError` names attribute and cure when it is of another type."""
        if self.field.is_array:
            array = self._array(value, owner)
            return {self.name: array.tobytes(), self.name + SHAPE: list(array.shape) or _POINT}
        if self.field is Field.TYPE_STRING:
            if not isinstance(value, str):
                raise self._misfit(value, owner, "give it a str")
            return {self.name: value}
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if self.field is Field.TYPE_BOOL:
            if not isinstance(value, bool | np.bool_):
                raise self._misfit(value, owner, "bool(…) makes one")
            return {self.name: int(value)}
        if self.field in (Field.TYPE_INT32, Field.TYPE_INT64):
            return {self.name: self._whole(value, owner)}
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
            raise self._misfit(value, owner, "float(…) makes one")
        if self.field is Field.TYPE_DOUBLE:
            return {self.name: struct.pack("<d", float(value))}
        return {self.name: float(value)}

    def _array(self, value: Any, owner: str) -> np.ndarray[Any, Any]:
        if not isinstance(value, np.ndarray):
            raise self._misfit(value, owner, f"np.asarray(…, np.{self.field.dtype}) makes one")
        if value.dtype != np.dtype(self.field.dtype):
            raise self._misfit(value, owner, f".astype(np.{self.field.dtype}) makes one")
        return np.asarray(value, value.dtype.newbyteorder("<"), order="C")

    def _whole(self, value: Any, owner: str) -> int:
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
            raise self._misfit(value, owner, "int(…) makes one")
        limits = np.iinfo(self.field.dtype)
        if not limits.min <= int(value) <= limits.max:
            raise SchemaError(f"{owner}.{self.name}: {value} is outside the range of {self.field.dtype}.", hint="Use TYPE_INT64.")
        return int(value)

    def _misfit(self, value: Any, owner: str, cure: str) -> SchemaError:
        if value is None:
            text, cure = "None", "load() has to assign it"
        elif isinstance(value, np.ndarray | np.generic):
            text = f"a NumPy {value.dtype}" + (f" array of shape {list(value.shape)}" if value.ndim else "")
        else:
            text = f"a {type(value).__name__}"
        return SchemaError(f"{owner}.{self.name} is declared {self.field.name} and holds {text}.", hint=f"{cure[0].upper()}{cure[1:]}.")

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds of the features, as `formats.example` names them."""
        if self.field.is_array:
            return {self.name: "bytes", self.name + SHAPE: "int64"}
        kind = {"bool": "int64", "int32": "int64", "int64": "int64", "float32": "float"}.get(self.field.value, "bytes")
        return {self.name: kind}

    def value(self, features: Mapping[str, Sequence[Any]]) -> Any:
        """The value that decoded features hold; the inverse of `features`."""
        found = features.get(self.name)
        if found is None or len(found) != 1:
            raise DataError(
                f"the feature {self.name!r} is {'missing' if found is None else f'a list of {len(found)}'}.", code="E_BAD_EXAMPLE"
            )
        one = found[0]
        try:
            if self.field.is_array:
                flat = np.frombuffer(one, np.dtype(self.field.dtype).newbyteorder("<"))
                return flat.reshape(_sizes(features[self.name + SHAPE]) if self.name + SHAPE in features else -1)
            if self.field is Field.TYPE_STRING:
                return one.decode()
            if self.field is Field.TYPE_DOUBLE and isinstance(one, bytes):
                return struct.unpack("<d", one)[0]
        except (ValueError, struct.error, AttributeError, TypeError) as error:
            raise DataError(f"the feature {self.name!r} is not a {self.field.name}: {error}.", code="E_BAD_EXAMPLE") from error
        return bool(one) if self.field is Field.TYPE_BOOL else one

    def tensor(self, parsed: Mapping[str, Any]) -> Any:
        """The value as a tensor, inside a graph; see `RecordSchema.spec`."""
        import tensorflow as tf

        value = parsed[self.name]
        if self.field.is_array:
            flat, sizes = tf.io.decode_raw(value, self.field.dtype), parsed[self.name + SHAPE]
            known = tf.boolean_mask(sizes, sizes >= 0)
            if self.shape != ():  # files of the original have no sizes
                known = tf.cond(tf.size(sizes) > 0, lambda: known, lambda: tf.constant([-1], tf.int64))
            return tf.ensure_shape(tf.reshape(flat, known), self.shape)
        if self.field is Field.TYPE_DOUBLE:
            return tf.reshape(tf.io.decode_raw(value, "float64"), [])
        return tf.cast(value, self.field.dtype) if self.field is not Field.TYPE_STRING else value


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """The recordable attributes of a class, in the order in which they were declared."""

    attributes: tuple[Attribute, ...]

    @property
    def kinds(self) -> dict[str, str]:
        return {name: kind for attribute in self.attributes for name, kind in attribute.kinds.items()}

    def spec(self) -> dict[str, Any]:
        """What `tf.io.parse_single_example` needs; a missing feature is an error, never a silent zero."""
        import tensorflow as tf

        dtypes = {"bytes": tf.string, "int64": tf.int64, "float": tf.float32}
        return {
            name: tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
            if name.endswith(SHAPE)
            else tf.io.FixedLenFeature([], dtypes[kind])
            for name, kind in self.kinds.items()
        }

    def parse(self, serialized: Any) -> tuple[Any, ...]:
        """The attributes of one serialised Example as a tuple of tensors, in declared order."""
        import tensorflow as tf

        parsed = tf.io.parse_single_example(serialized, self.spec())
        return tuple(attribute.tensor(parsed) for attribute in self.attributes)

    def to_dict(self) -> list[dict[str, Any]]:
        """JSON-ready."""
        return [
            {"name": one.name, "type": one.field.name} | ({} if one.shape is None else {"shape": list(one.shape)})
            for one in self.attributes
        ]

    @classmethod
    def from_dict(cls, rows: Any) -> RecordSchema:
        """The inverse of `to_dict`; `LookupError`, `TypeError` or `ValueError` when `rows` is something else."""
        return cls(tuple(Attribute(str(row["name"]), Field[row["type"]], _shape(row.get("shape"))) for row in rows))

    def same(self, other: RecordSchema) -> bool:
        """Whether names, types and order agree."""
        return [(one.name, one.field) for one in self.attributes] == [(one.name, one.field) for one in other.attributes]

    def join(self, other: RecordSchema) -> RecordSchema:
        """The schema that covers both, where they are the `same`."""
        pairs = zip(self.attributes, other.attributes, strict=True)
        return RecordSchema(tuple(Attribute(one.name, one.field, merge_shapes(one.shape, two.shape)) for one, two in pairs))

    def __str__(self) -> str:
        return ", ".join(f"{one.name}: {one.field.name}" for one in self.attributes)


def _shape(sizes: Any) -> Shape | None:
    return None if sizes is None else tuple(None if size is None else int(size) for size in sizes)


def _sizes(feature: Sequence[int]) -> tuple[int, ...]:
    return () if list(feature) == _POINT else tuple(feature)


@dataclass(slots=True)
class Shapes:
    """The shapes of arrays as they pass: equal sizes stay, others become None, and so does the shape when ranks differ."""

    seen: dict[str, Shape | None]

    def see(self, features: Mapping[str, Any]) -> None:
        """Take note of one record's features."""
        for name, value in features.items():
            if name.endswith(SHAPE):
                shape = _sizes(value)
                self.seen[name] = merge_shapes(self.seen[name], shape) if name in self.seen else shape

    def schema(self, attributes: Iterable[Attribute]) -> RecordSchema:
        """The attributes with the shapes that were seen."""
        return RecordSchema(tuple(Attribute(one.name, one.field, self.seen.get(one.name + SHAPE)) for one in attributes))


def merge_shapes(one: Shape | None, other: Shape | None) -> Shape | None:
    """The shape that covers both; None when their ranks differ.

    >>> merge_shapes((5, 2), (3, 2))
    (None, 2)
    """
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(left if left == right else None for left, right in zip(one, other, strict=True))


def field_of(dtype: Any) -> Field:
    """The `Field` that `@tfrecordable` was given."""
    if isinstance(dtype, Field):
        return dtype
    if callable(dtype) and not isinstance(dtype, type):
        raise UsageError("@tfrecordable needs a type.", hint="Write @tfrecordable(dtype=Example.Field.TYPE_INT32).")
    names = ", ".join(field.name for field in Field)
    raise UsageError(f"@tfrecordable knows no type {dtype!r}.", hint=f"The types are Example.Field.{{{names}}}.")
