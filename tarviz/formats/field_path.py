"""A path to one value of a record: a field (`cls`), what lies inside its JSON (`json.boxes[0]`), its size, or the record's key."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tarviz.model.errors import UsageError

MAX_PAYLOAD = 16 << 20
_FACTS = ("key", "shard", "index")
_STRING = r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'"
_WHOLE = re.compile(rf"(?:(size|field)\(\s*({_STRING}|[\w.\-]+)\s*\)|([^\W\d][\w\-]*))((?:\.[\w\-]+|\[\s*(?:-?\d+|{_STRING})\s*\])*)")
_STEP = re.compile(rf"\.([\w\-]+)|\[\s*(-?\d+)\s*\]|\[\s*({_STRING})\s*\]")


@dataclass(frozen=True, slots=True)
class FieldPath:
    """Where a value lies: the fields that may hold it, each with the steps from there, the likeliest first.

    `seg.png` is a field with a dot in its name, `json.w` a path into one: the longest field there is wins.
    """

    text: str
    ways: tuple[tuple[str, tuple[str | int, ...]], ...]
    of: str = ""
    """"key", "shard", "index" or "size", where it is no payload."""

    @property
    def needs(self) -> frozenset[str]:
        """The fields that may be read."""
        return frozenset() if self.of else frozenset(ext for ext, _ in self.ways)

    def value(self, record: Mapping[str, Any]) -> Any:
        """The number, text or JSON value there; None where there is none. Payloads are bytes, or what a chain made of them."""
        if self.of == "size":
            sizes = getattr(record, "sizes", None)
            ext = self.ways[0][0]
            return (sizes.get(ext) if sizes is not None else len(record[ext])) if ext in record else None
        if self.of:
            found = getattr(record, self.of, None)
            return record.get(f"__{self.of}__") if found is None or callable(found) else found
        for ext, steps in self.ways:
            if ext in record:
                return _inside(record[ext], steps) if steps else _read(record[ext])
        return None


def field_path(text: str) -> FieldPath:
    """The path written as `text`: `cls`, `json.meta.src`, `json["a b"][-1]`, `field("a-b").x`, `size(jpg)`, `key`.

    >>> field_path("json.label").value({"json": b'{"label": "cat"}'}), field_path("cls").value({"cls": b"3"})
    ('cat', 3)
    """
    whole = _WHOLE.fullmatch(text.strip())
    if whole is None:
        raise UsageError(f"{text!r} is not a path to a value.", hint='Write cls, json.label, json["a b"][0], size(jpg) or key.')
    call, name, root, rest = whole.groups()
    steps = [_step(*found.groups()) for found in _STEP.finditer(rest)]
    if call is not None:
        name = (_string(name) if name[0] in "'\"" else name).lower()
        if call == "size" and steps:
            raise UsageError(f"{text!r} is not a path to a value: a size has nothing inside it.")
        return FieldPath(text, ((name, tuple(steps)),), "size" if call == "size" else "")
    if root in _FACTS and not steps:
        return FieldPath(text, (), root)
    names = 0
    while names < len(steps) and isinstance(steps[names], str):
        names += 1
    ways = ((".".join(map(str, [root, *steps[:count]])).lower(), tuple(steps[count:])) for count in range(names, -1, -1))
    return FieldPath(text, tuple(ways))


def _step(name: str | None, number: str | None, quoted: str | None) -> str | int:
    return int(number) if number is not None else _string(quoted) if quoted is not None else str(name)


def _string(quoted: str) -> str:
    inner = quoted[1:-1]
    try:
        return str(json.loads(f'"{inner}"' if quoted[0] == '"' else json.dumps(inner)))
    except ValueError:
        return inner


def _read(value: Any) -> Any:
    """A payload as the number it is, else as text."""
    if not isinstance(value, bytes | bytearray | memoryview):
        return value
    text = bytes(value[:MAX_PAYLOAD]).decode("utf-8-sig", "replace").strip()
    for kind in (int, float) if len(text) <= 400 else ():
        with suppress(ValueError):
            return kind(text)
    return text


def _inside(value: Any, steps: tuple[str | int, ...]) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            value = json.loads(bytes(value)) if len(value) <= MAX_PAYLOAD else None
        except (ValueError, RecursionError):
            return None
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value
