"""What an expression computes with: payloads that convert themselves, and functions that never raise on what a record holds."""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

MAX_TEXT = 10_000
MAX_PAYLOAD = 16 << 20


class _Missing:
    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "missing"


MISSING: Final = _Missing()
"""What a field, path or conversion that is not there evaluates to."""


class Payload:
    """One field's bytes, converted on demand."""

    __slots__ = ("_text", "buffer")

    def __init__(self, buffer: bytes | bytearray | memoryview) -> None:
        self.buffer = buffer
        self._text: str | None = None

    def text(self) -> str:
        if self._text is None:
            self._text = bytes(self.buffer[:MAX_PAYLOAD]).decode("utf-8-sig", "replace").strip()
        return self._text

    def number(self) -> Any:
        return number(self.text())

    def tree(self) -> Any:
        if len(self.buffer) > MAX_PAYLOAD:
            return MISSING
        try:
            return json.loads(bytes(self.buffer))
        except (ValueError, RecursionError):
            return MISSING


class RecordInView:
    """The record an expression looks at, with one conversion per field."""

    __slots__ = ("_payloads", "_trees", "record")

    def __init__(self, record: Mapping[str, Any]) -> None:
        self.record = record
        self._payloads: dict[str, Any] = {}
        self._trees: dict[str, Any] = {}

    def fact(self, name: str) -> Any:
        value = getattr(self.record, name, None)
        return self.record.get(f"__{name}__", MISSING) if value is None or callable(value) else value

    def payload(self, ext: str) -> Any:
        if ext not in self._payloads:
            value = self.record.get(ext, MISSING)
            self._payloads[ext] = Payload(value) if isinstance(value, (bytes, bytearray, memoryview)) else value
        return self._payloads[ext]

    def tree(self, ext: str) -> Any:
        if ext not in self._trees:
            value = self.payload(ext)
            self._trees[ext] = value.tree() if isinstance(value, Payload) else value
        return self._trees[ext]

    def size(self, ext: str) -> Any:
        sizes = getattr(self.record, "sizes", None)
        if sizes is not None:
            return sizes.get(ext, MISSING)
        return len(self.record[ext]) if ext in self.record else MISSING


def number(value: Any) -> Any:
    """`value` as int or float, MISSING where it is none. Long digit strings are not numbers here."""
    if isinstance(value, Payload):
        return value.number()
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str) and 0 < len(value) <= 400:
        for kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                continue
    return MISSING


def as_text(value: Any) -> Any:
    """`value` as text, MISSING where it is missing."""
    if value is MISSING or isinstance(value, str):
        return value
    return value.text() if isinstance(value, Payload) else str(value)[:MAX_TEXT]


def truth(value: Any) -> bool:
    """Whether a value counts as true: a payload does when it is a number other than 0, or any text."""
    if isinstance(value, Payload):
        found = value.number()
        return bool(value.text()) if found is MISSING else bool(found)
    return bool(value)


def comparable(value: Any, other: Any) -> Any:
    """A payload as the kind of thing it is compared with."""
    if not isinstance(value, Payload):
        return value
    if isinstance(other, (int, float)):
        return value.number()
    if isinstance(other, Payload):
        return value.text() if MISSING in (value.number(), other.number()) else value.number()
    return value.text()


def inside(item: Any, box: Any) -> bool:
    """Whether `item` is a part of a text, a name of an object, or among the items of a list."""
    if isinstance(box, (Payload, str)):
        found = as_text(item)
        return found is not MISSING and found in as_text(box)
    if isinstance(box, Mapping):
        return as_text(item) in box
    if not isinstance(box, Iterable):
        return False
    return any(comparable(item, one) == one for one in box)


COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _text_function(work: Callable[[str, str], Any]) -> Callable[[Any, Any], Any]:
    def apply(value: Any, other: Any) -> Any:
        value, other = as_text(value), as_text(other)
        return False if MISSING in (value, other) else work(value, other)

    return apply


TWO: dict[str, Callable[[Any, Any], Any]] = {
    "startswith": _text_function(str.startswith),
    "endswith": _text_function(str.endswith),
    "contains": lambda value, other: inside(other, value),
}


def _length(value: Any) -> Any:
    if isinstance(value, Payload):
        return len(value.text())
    return len(value) if isinstance(value, (str, list, dict, tuple)) else MISSING


def _to_int(value: Any) -> Any:
    found = number(value)
    try:
        return MISSING if found is MISSING else int(found)
    except (ValueError, OverflowError):
        return MISSING


def _to_float(value: Any) -> Any:
    found = number(value)
    try:
        return MISSING if found is MISSING else float(found)
    except OverflowError:
        return MISSING


def _text_step(work: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: MISSING if as_text(value) is MISSING else work(as_text(value))


def _json(value: Any) -> Any:
    return value.tree() if isinstance(value, Payload) else value


ONE: dict[str, Callable[[Any], Any]] = {
    "len": _length,
    "int": _to_int,
    "float": _to_float,
    "text": as_text,
    "str": as_text,
    "json": _json,
    "lower": _text_step(str.lower),
    "upper": _text_step(str.upper),
    "strip": _text_step(str.strip),
    "abs": lambda value: MISSING if number(value) is MISSING else abs(number(value)),
}
