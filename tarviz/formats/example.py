"""`tf.train.Example` without TensorFlow: encode a record, encode a block, decode.

The bytes are those of TensorFlow's deterministic serialisation (`_features.order`). `encode_block` works on the
columns of a block and is the fast way; `encode` takes one record, raw or decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tarviz.formats.example_block import Examples, encode_block
from tarviz.formats.features import (
    INTEGER_FIELDS,
    KEY,
    KINDS,
    Kind,
    check_kinds,
    example,
    field_feature,
    kind_of,
    name_of,
    order,
    parse_integer,
)
from tarviz.model.errors import DataError, SchemaError, TarvizError
from tarviz.model.types import Buffer

__all__ = ["INTEGER_FIELDS", "KINDS", "Examples", "Kind", "decode", "encode", "encode_block", "features", "kind_of", "parse_integer"]

_PLACES = ("__shard__", "__index__")
_SHIFTS = np.arange(0, 70, 7, dtype=np.uint64)


def encode(record: Mapping[str, Any], types: Mapping[str, str] | None = None, *, key: bool = True) -> bytes:
    """One record as a serialised Example.

    `record` is a `Record` or a decoded dict; a value is a payload (bytes-like, `str`), a number, an array of numbers,
    or a list of these. `types` names kinds (`bytes int64 float`) by field; fields it leaves out follow `kind_of`.
    `__key__` becomes a bytes feature (or none: `key=False`), `__shard__` and `__index__` are left out.

    >>> decode(encode({"__key__": "k0", "cls": b"7", "txt": "hi"}))
    {'__key__': [b'k0'], 'cls': [7], 'txt': [b'hi']}
    """
    values = {field: value for field, value in record.items() if field not in _PLACES}
    own = getattr(record, "key", None)
    if own is not None:
        values.setdefault(KEY, own)
    if not key:
        values.pop(KEY, None)
    check_kinds(types or {})
    try:
        return example((name_of(field), field_feature(field, values[field], types)) for field in sorted(values, key=order))
    except TarvizError as error:
        shard = getattr(record, "shard", None) or record.get("__shard__")
        raise error.at(key=str(values[KEY]) if KEY in values else None, shard=shard and str(shard)) from None


def decode(data: Buffer, types: Mapping[str, str] | None = None) -> dict[str, list[bytes] | list[int] | list[float]]:
    """The features of a serialised Example, in the order they are written: bytes, integers, or float32 values.

    Takes whatever TensorFlow writes: lists packed or not, any order; of a repeated name the last one counts. Anything
    else is a `DataError` `E_BAD_EXAMPLE` with its `offset` in `data`. A feature of another kind than `types` names
    (an empty one fits every kind), or a missing one, is a `SchemaError`.
    """
    found = features(data)
    for field, kind in check_kinds(types or {}).items():
        if field not in found:
            raise SchemaError(f"field {field!r} is missing.", member=field, hint=f"there are: {', '.join(found)}.")
        if found[field][0] not in (kind, None):
            raise SchemaError(f"field {field!r} is a {found[field][0]} list, not {kind}.", member=field)
    return {field: values for field, (_, values) in found.items()}


def features(data: Buffer) -> dict[str, tuple[Kind | None, list[Any]]]:
    """The same with the kind of each list (None: the feature holds no list at all)."""
    view = memoryview(data).cast("B")
    found: dict[str, tuple[Kind | None, list[Any]]] = {}
    at, size = 0, len(view)
    while at < size:
        at, end = _field(view, at, size, "Example", b"\x0a")
        while at < end:
            at, stop = _field(view, at, end, "Features", b"\x0a")
            name, kind, values = _entry(view, at, stop)
            found[name] = kind, values
            at = stop
    return found


def _bad(message: str, at: int) -> DataError:
    return DataError(f"not a tf.train.Example: {message}.", code="E_BAD_EXAMPLE", offset=at)


def _varint(view: memoryview, at: int, end: int) -> tuple[int, int]:
    """The number at `at` and the place after it."""
    value = shift = 0
    for here in range(at, min(at + 10, end)):
        byte = view[here]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, here + 1
        shift += 7
    raise _bad("a number does not end" if end - at >= 10 else "it ends within a number", at)


def _field(view: memoryview, at: int, end: int, what: str, tags: bytes) -> tuple[int, int]:
    """Begin and end of the length-delimited field at `at` of a message; any other tag than `tags` is an error."""
    if view[at] not in tags:
        more = " (a SequenceExample has)" if what == "Example" and view[at] == 0x12 else ""
        raise _bad(f"{what} has no field with tag 0x{view[at]:02x}{more}", at)
    begin = at + 1
    if begin < end and (length := view[begin]) < 128:
        begin += 1
    else:
        length, begin = _varint(view, begin, end)
    if length > end - begin:
        raise _bad(f"{what} promises {length} bytes, {end - begin} present", at)
    return begin, begin + length


def _entry(view: memoryview, at: int, end: int) -> tuple[str, Kind | None, list[Any]]:
    """Name, kind and values of a map entry. Lists of one kind join, one of another kind replaces (protobuf's oneof)."""
    name, values = "", []  # type: ignore[var-annotated]
    kind: Kind | None = None
    while at < end:
        tag = view[at]
        at, stop = _field(view, at, end, "a map entry", b"\x0a\x12")
        if tag == 0x0A:
            try:
                name = str(view[at:stop], "utf-8")
            except UnicodeDecodeError as error:
                raise _bad("a feature's name is not UTF-8", at) from error
        else:
            while at < stop:
                listed = _LISTS.get(view[at])
                at, last = _field(view, at, stop, "Feature", b"\x0a\x12\x1a")
                if listed != kind:
                    kind, values = listed, []
                _READ[kind](view, at, last, values)
                at = last
        at = stop
    return name, kind, values


def _payloads(view: memoryview, at: int, end: int, values: list[bytes]) -> None:
    while at < end:
        begin, at = _field(view, at, end, "BytesList", b"\x0a")
        values.append(bytes(view[begin:at]))


def _integers(view: memoryview, at: int, end: int, values: list[int]) -> None:
    while at < end:
        if view[at] == 0x08:
            value, at = _varint(view, at + 1, end)
            values.append(_sign(value, at))
            continue
        begin, at = _field(view, at, end, "Int64List", b"\x0a")
        if at - begin > 32:
            values.extend(_unpack(np.frombuffer(view[begin:at], np.uint8), begin))
            continue
        while begin < at:
            value, begin = _varint(view, begin, at)
            values.append(_sign(value, begin))


def _sign(value: int, at: int) -> int:
    if value >= 2**64:
        raise _bad("a number exceeds 64 bits", at)
    return value - (value >> 63 << 64)


def _unpack(data: np.ndarray[Any, np.dtype[np.uint8]], begin: int) -> list[int]:
    """A long packed list at once: each number ends at its byte below 128."""
    last = np.flatnonzero(data < 128)
    if not len(last) or last[-1] != len(data) - 1:
        raise _bad("it ends within a number", begin + (int(last[-1]) + 1 if len(last) else 0))
    first = np.concatenate(([0], last[:-1] + 1))
    length = last - first + 1
    wrong = np.flatnonzero((length > 10) | ((length == 10) & (data[last] > 1)))
    if len(wrong):
        raise _bad("a number does not end" if length[wrong[0]] > 10 else "a number exceeds 64 bits", begin + int(first[wrong[0]]))
    place = np.arange(len(data)) - np.repeat(first, length)
    parts = (data & 127).astype(np.uint64) << _SHIFTS[place]
    numbers: list[int] = np.add.reduceat(parts, first).view(np.int64).tolist()
    return numbers


def _floats(view: memoryview, at: int, end: int, values: list[float]) -> None:
    while at < end:
        if view[at] == 0x0D:
            begin, at = at + 1, at + 5
            if at > end:
                raise _bad("it ends within a float", begin - 1)
        else:
            start = at
            begin, at = _field(view, at, end, "FloatList", b"\x0a")
            if (at - begin) % 4:
                raise _bad(f"a float list of {at - begin} bytes", start)
        values.extend(np.frombuffer(view[begin:at], "<f4").tolist() if at > begin else ())


_LISTS: dict[int, Kind] = {0x0A: "bytes", 0x12: "float", 0x1A: "int64"}
_READ: dict[Kind | None, Callable[[memoryview, int, int, list[Any]], None]] = {"bytes": _payloads, "float": _floats, "int64": _integers}
