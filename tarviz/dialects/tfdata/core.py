"""What passes through a pipeline: samples, examples, the types of features."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from tarviz.formats import example as examples
from tarviz.formats import tfrecord
from tarviz.formats.features import parse_floats, parse_integer
from tarviz.model.errors import DataError, SchemaError, TarvizError, UsageError
from tarviz.model.types import Buffer, to_bytes, to_text

KEY_ENTRY = "__key__"


class FeatureType(enum.Enum):
    """What a field of a sample becomes in an example."""

    BYTES = "BYTES"
    BYTESLIST = "BYTESLIST"
    INT64 = "INT64"
    INT64LIST = "INT64LIST"
    FLOAT32 = "FLOAT32"
    FLOAT32LIST = "FLOAT32LIST"

    @property
    def kind(self) -> examples.Kind:
        """The kind of list in the Example."""
        return "bytes" if self.value.startswith("BYTES") else "int64" if self.value.startswith("INT64") else "float"

    @property
    def single(self) -> bool:
        return not self.value.endswith("LIST")


TypesMap: TypeAlias = Mapping[str, "FeatureType | str"]


class Sample(dict[str, Any]):
    """One record: `__key__`, the path without extension, and extension → bytes. `shard` says where it is from."""

    __slots__ = ("shard",)

    def __init__(self, *args: Any, shard: str | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.shard = shard


class TFExample(dict[str, list[Any]]):
    """A `tf.train.Example` as a dict: feature → list of bytes, integers or floats.

    What is put in becomes a list: a number, bytes, text, an array. `kinds` names the kind of features whose list may be empty.

    >>> example = TFExample(cls=7, txt="hi")
    >>> example["cls"], TFExample.parse(example.serialize())
    ([7], {'cls': [7], 'txt': [b'hi']})
    """

    __slots__ = ("kinds", "shard")

    def __init__(self, *args: Any, shard: str | None = None, kinds: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__()
        self.shard = shard
        self.kinds = dict(kinds or {})
        for name, value in dict(*args, **more).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, as_list(value))

    def serialize(self) -> bytes:
        """The serialised Example; `SchemaError` names a feature that holds something else than bytes or numbers."""
        try:
            return examples.encode(self, {name: self.kinds.get(name) or _kind(values) for name, values in self.items()})
        except TarvizError as error:
            raise error.at(shard=self.shard) from error.__cause__

    @classmethod
    def parse(cls, data: Buffer) -> TFExample:
        """The example in its serialised form."""
        found = examples.features(data)
        return cls({name: values for name, (_, values) in found.items()}, kinds={name: kind for name, (kind, _) in found.items() if kind})


def as_list(value: Any) -> list[Any]:
    """A feature's list."""
    if isinstance(value, str):
        return [to_bytes(value)]
    if isinstance(value, bytes | bytearray | memoryview):
        return [bytes(value)]
    if isinstance(value, np.ndarray | np.generic):
        values: list[Any] = np.asarray(value).ravel().tolist()
        return values
    return [one for each in value for one in as_list(each)] if isinstance(value, list | tuple) else [value]


def _kind(values: list[Any]) -> examples.Kind:
    if not values or isinstance(values[0], bytes):
        return "bytes"
    return "int64" if all(isinstance(value, int) for value in values) else "float"


def checked_types(types: TypesMap | None) -> dict[str, FeatureType]:
    """A types map with its names looked up; `UsageError` lists the types there are."""
    if types is None:
        return {}
    if not isinstance(types, Mapping):
        raise UsageError(f"types are a dict of field and type, got {type(types).__name__}.", hint='For example {"cls": "INT64"}.')
    return {name: _type(name, one) for name, one in types.items()}


def _type(name: Any, one: Any) -> FeatureType:
    if not isinstance(name, str):
        raise UsageError(f"types name fields by text, got {name!r}.")
    if isinstance(one, FeatureType):
        return one
    word = str(one).upper().replace("_", "")
    if word not in FeatureType.__members__:
        raise UsageError(f"types give {name!r} the type {one!r}.", hint=f"There are {', '.join(FeatureType.__members__)}.")
    return FeatureType[word]


def to_example(sample: Mapping[str, Any], types: Mapping[str, FeatureType], *, quoted_key: bool = False) -> TFExample:
    """The example of a sample: fields in `types` as they say, others as bytes, numbers or arrays as they are, trees as JSON.

    Numbers are read from text (`b"7\\n"`); floats also from raw little-endian float32 where the bytes are not text.
    """
    place = {"shard": getattr(sample, "shard", None), "key": key_of(sample)}
    made = TFExample(shard=place["shard"])
    for name, value in sample.items():
        try:
            if name == KEY_ENTRY and quoted_key and isinstance(value, str):
                made[name] = json.dumps(value, ensure_ascii=False)
            elif name in types:
                made[name] = _fit_feature(name, value, types[name])
                made.kinds[name] = types[name].kind
            else:
                made[name] = _infer_feature(name, value)
        except TarvizError as error:
            raise error.at(**place, member=name) from error.__cause__
    return made


def _infer_feature(name: str, value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview | str | int | float | np.ndarray | np.generic):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise SchemaError(f"the field {name!r} holds {type(value).__name__}, which no feature can hold: {error}.") from error


def _fit_feature(name: str, value: Any, wanted: FeatureType) -> list[Any]:
    payload = to_bytes(value) if isinstance(value, str) else value
    if isinstance(payload, bytes | bytearray | memoryview):
        values: list[Any] = _from_bytes(name, bytes(payload), wanted)
    else:
        values = as_list(value)
    kinds = {"bytes": bytes, "int64": int, "float": int | float}[wanted.kind]
    if not all(isinstance(one, kinds) for one in values):
        raise SchemaError(f"the field {name!r} holds {type(value).__name__}; its type is {wanted.name}.")
    if wanted.single and len(values) != 1:
        raise SchemaError(
            f"the field {name!r} holds {len(values)} values; its type is {wanted.name}.", hint=f"{wanted.name}LIST takes any number."
        )
    if wanted.kind == "int64" and not all(-(2**63) <= one < 2**63 for one in values):
        raise SchemaError(f"the field {name!r} holds an integer that does not fit int64.")
    return [float(one) for one in values] if wanted.kind == "float" else values


def _from_bytes(name: str, data: bytes, wanted: FeatureType) -> list[Any]:
    if wanted.kind == "bytes":
        return [data]
    if wanted.kind == "int64":
        return [parse_integer(word, name) for word in ([data] if wanted.single else data.split())]
    try:
        return list(parse_floats(data, name))
    except DataError:
        # go-tfdata reads FLOAT32 as the 4 bytes of a little-endian float32; text was tried first, so raw bytes are what is left.
        if len(data) % 4 or (data.isascii() and data.decode().isprintable()):
            raise
        numbers: list[Any] = np.frombuffer(data, "<f4").tolist()
        return numbers


def key_of(item: Mapping[str, Any]) -> str | None:
    """The key of a sample or an example."""
    key = next(iter(as_list(item.get(KEY_ENTRY))), None)
    return None if key is None else to_text(key) if isinstance(key, bytes) else str(key)


def read_tfrecord(source: Any, *, shard: str | None = None) -> Iterator[TFExample]:
    """The examples of an open TFRecord file or of its bytes, in order, checksums verified."""
    return map(TFExample.parse, tfrecord.read(source, shard=shard))


def serialize(example: Any) -> bytes:
    """The bytes of an example: a `TFExample` or dict, a `tf.train.Example`, or bytes already."""
    if isinstance(example, TFExample):
        return example.serialize()
    if isinstance(example, bytes):
        return example
    if hasattr(example, "SerializeToString"):
        data: bytes = example.SerializeToString(deterministic=True)
        return data
    if isinstance(example, Mapping):
        return TFExample(example).serialize()
    raise SchemaError(f"an example is a TFExample, a dict, a tf.train.Example or its bytes; got {type(example).__name__}.")
