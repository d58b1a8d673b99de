"""The features of a `tf.train.Example`: which kind a field has, its values, its bytes on the wire.

Source: tensorflow/core/example/feature.proto; protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

from tarviz.model.errors import DataError, LimitError, SchemaError, TarvizError, UsageError

Kind: TypeAlias = Literal["bytes", "int64", "float"]
KINDS: tuple[Kind, ...] = ("bytes", "int64", "float")
KEY = "__key__"
LARGEST = 2**31 - 1
INTEGER_FIELDS = ("cls", "cls2", "class", "index", "id")
TAGS: dict[Kind, bytes] = {"bytes": b"\x0a", "float": b"\x12", "int64": b"\x1a"}

# Possessive (*+), so that a megabyte of zeros costs one pass.
_INTEGER = re.compile(rb"[ \t\r\n\v\f]*+([+-]?)(?=[0-9])0*+([0-9]*+)[ \t\r\n\v\f]*+")
_FLOAT = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|nan|inf)", re.IGNORECASE)


def kind_of(field: str, types: Mapping[str, str] | None = None) -> Kind:
    """The kind that `types` gives a field; int64 for `cls cls2 class index id`, bytes for any other it leaves out.

    >>> kind_of("cls"), kind_of("jpg"), kind_of("emb", {"emb": "float"})
    ('int64', 'bytes', 'float')
    """
    if types and field in types:
        return check_kinds(types)[field]
    return "int64" if field in INTEGER_FIELDS else "bytes"


def check_kinds(types: Mapping[str, str]) -> Mapping[str, Kind]:
    """`types` itself when every kind in it exists; `UsageError` otherwise."""
    for field, kind in types.items():
        if kind not in KINDS:
            raise UsageError(f"types gives {field!r} the kind {kind!r}.", hint=f"There are: {', '.join(KINDS)}.")
    return types  # type: ignore[return-value]


def order(field: str) -> bytes:
    """The sort key of a feature in an Example: `sorted(fields, key=order)`.

    Byte order of the UTF-8 names, a longer name before its own beginning (`cls2` before `cls`): that is what
    TensorFlow's Python writes with `SerializeToString(deterministic=True)`.
    """
    return name_of(field) + b"\xff"


def name_of(field: str) -> bytes:
    """The UTF-8 bytes of a field's name; `SchemaError` where it has none, because protobuf forbids such names."""
    try:
        return field.encode()
    except UnicodeEncodeError as error:
        raise SchemaError(f"field {field!r} is not UTF-8 and cannot name a feature.", hint="rename(...) or drop(...) it.") from error


def varint(number: int) -> bytes:
    """A number of 0 to 2⁶⁴-1 as protobuf writes it: 7 bits a byte, lowest first.

    >>> varint(300)
    b'\\xac\\x02'
    """
    if number < 128:
        return bytes((number,))
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def parse_integer(text: bytes, field: str) -> int:
    """The int64 written as ASCII decimal, white space around it allowed; `DataError` `E_DECODE` names the field.

    >>> parse_integer(b" 7\\n", "cls")
    7
    """
    match = _INTEGER.fullmatch(text)
    if match is None:
        raise DataError(
            f"field {field!r} holds {quote(text)}, which is not an integer.",
            code="E_DECODE",
            hint=f"Keep it as it is with types={{{field!r}: 'bytes'}}.",
        )
    value = int(match[2] or b"0") if len(match[2]) < 20 else 2**64
    return _in_range(-value if match[1] == b"-" else value, field)


def parse_floats(text: bytes, field: str) -> list[float]:
    """The numbers written as ASCII, white space between them; `DataError` `E_DECODE` names the field."""
    words = text.split()
    for word in words:
        if len(word) > 400 or _FLOAT.fullmatch(word) is None:
            raise DataError(f"field {field!r} holds {quote(word)}, which is not a number.", code="E_DECODE")
    return [float(word) for word in words]


def quote(text: bytes) -> str:
    """The beginning of a payload, for a message."""
    return repr(text if len(text) <= 24 else text[:20] + b"...")[1:]


def _in_range(value: int, field: str) -> int:
    if not -(2**63) <= value < 2**63:
        raise DataError(f"field {field!r} holds an integer that does not fit int64.", code="E_DECODE")
    return value


def feature(kind: Kind, values: Iterable[Any]) -> bytes:
    """One serialised `tf.train.Feature`; int64 and float lists packed, float32.

    >>> feature("int64", [7])
    b'\\x1a\\x03\\n\\x01\\x07'
    """
    if kind == "bytes":
        content = b"".join(b"\x0a" + varint(len(value)) + value for value in values)
    else:
        packed = b"".join(varint(value % 2**64) for value in values) if kind == "int64" else np.asarray(values, "<f4").tobytes()
        content = b"\x0a" + varint(len(packed)) + packed if packed else b""
    return TAGS[kind] + varint(len(content)) + content


def example(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The serialised Example of (name, serialised feature) pairs. `LimitError` where protobuf ends, at 2³¹-1 bytes."""
    pieces = []
    for name, content in entries:
        entry = b"\x0a" + varint(len(name)) + name + b"\x12" + varint(len(content)) + content
        pieces.append(b"\x0a" + varint(len(entry)) + entry)
    total = sum(map(len, pieces))
    if total > LARGEST - 16:
        raise LimitError(f"the Example would hold {total} bytes; protobuf ends at 2^31-1.")
    return b"".join((b"\x0a", varint(total), *pieces))


def field_feature(field: str, value: Any, types: Mapping[str, str] | None = None) -> bytes:
    """The serialised feature of one field's value, raw or decoded.

    bytes-like and `str` are a payload: kept (kind bytes) or read as ASCII numbers (int64, float). Numbers,
    arrays of numbers and lists in lists (flattened, C order) and lists of them give int64 or float lists, by `types` or else by what
    they are; lists of bytes and `str` a bytes list. `SchemaError` (`E_SCHEMA`) names the field and the cure otherwise.
    """
    named = kind_of(field, types)
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
        if named == "bytes":
            return feature("bytes", (raw,))
        return feature(named, [parse_integer(raw, field)] if named == "int64" else parse_floats(raw, field))
    explicit = types is not None and field in types
    if isinstance(value, int) and not (explicit and named != "int64"):
        return feature("int64", (_in_range(value, field),))
    kind, values = _list_values(field, value, named, explicit)
    return feature(kind, values)


def _list_values(field: str, value: Any, named: Kind, explicit: bool) -> tuple[Kind, Any]:
    """Kind and values of a decoded field."""
    asked = named if explicit else None
    if isinstance(value, list | tuple):
        if (value or named == "bytes") and all(isinstance(each, bytes | bytearray | memoryview | str) for each in value):
            if explicit and named != "bytes":
                raise _misfit(field, "a list of bytes", named)
            return "bytes", _texts(value)
        if not value:
            return named, []
        if not all(isinstance(each, int | float | np.generic | np.ndarray) for each in value) and not _boxes(value):
            raise _misfit(field, f"a list of {type(value[0]).__name__}", asked)
    elif isinstance(value, Mapping) or not (isinstance(value, int | float) or hasattr(value, "__array__")):
        raise _misfit(field, "None" if value is None else f"a {type(value).__name__}", asked)
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise _misfit(field, "lists of different lengths", asked) from error
    return _numbers(field, array, named, explicit)


def _texts(values: Iterable[Any]) -> list[bytes]:
    return [each.encode() if isinstance(each, str) else bytes(each) for each in values]


def _boxes(value: Any) -> bool:
    """Whether these are lists of lists of numbers, however deep."""
    if isinstance(value, list | tuple):
        return all(map(_boxes, value))
    return isinstance(value, int | float | np.number)


def _numbers(field: str, array: np.ndarray[Any, Any], named: Kind, explicit: bool) -> tuple[Kind, Any]:
    """Kind and values of an array; where a kind was asked for, no other will do."""
    what = f"a {array.dtype} array {list(array.shape)}" if array.shape else f"a {array.dtype}"
    held = _kind_held(array)
    asked = named if explicit else held
    if held is None or (asked != held and (held, asked) != ("int64", "float")):
        raise _misfit(field, what, named if explicit else None)
    if held == "bytes":
        return "bytes", _texts(array.ravel().tolist())
    if array.dtype == np.uint8 and array.ndim >= 2 and not explicit:
        kind = "an image" if array.ndim <= 3 else "more than an image"  # a film, which encode does not write
        cure = f"put encode({field}) after the ops, or " if array.ndim <= 3 else ""
        raise SchemaError(f"field {field!r} holds {what}, {kind}.", hint=f"{cure}give types the kind int64 for it.")
    if asked == "float":
        with np.errstate(over="ignore"):
            return "float", array.astype("<f4").ravel()
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        _in_range(int(array.max()), field)
    return "int64", array.ravel().astype(np.int64).tolist()


def _kind_held(array: np.ndarray[Any, Any]) -> Kind | None:
    """The kind of feature that holds an array as it is."""
    kind = array.dtype.kind
    if kind in "SU" or (array.dtype == object and all(isinstance(each, bytes | str) for each in array.flat)):
        return "bytes"
    if kind in "iub":
        return "int64"
    # ml_dtypes (bfloat16, float8) register themselves with NumPy as kind "V"; TensorFlow hands them out.
    floating = kind == "f" or (kind == "V" and array.dtype.names is None and "float" in array.dtype.name)
    return "float" if floating else None


def _misfit(field: str, what: str, named: Kind | None) -> TarvizError:
    asked = f", not {named} as types says" if named else ", which no feature can hold"
    return SchemaError(f"field {field!r} holds {what}{asked}.", hint=f"Encode, convert, select or drop {field!r} in the chain.")
