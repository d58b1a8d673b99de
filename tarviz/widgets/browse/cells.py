"""The table of a browser: which columns records have, and the cells of the rows in view."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from tarviz import viewers
from tarviz.formats.field_path import field_path
from tarviz.looks import roles
from tarviz.model.errors import TarvizError
from tarviz.viewers.panel import readable
from tarviz.widgets.browse.query import values
from tarviz.widgets.browse.rows import Row, Want, payloads

MOST = 40
"""Columns offered on a page."""

_AT_ONCE = 512  # records whose JSON is read together
_MOST_BYTES = 1 << 20
_LONGEST = 300  # characters of a cell
_DEPTH = 4
Cell = str | float | int | bool | None


def columns(rows: Sequence[Row]) -> list[str]:
    """The columns of records, as paths: texts and classes, the names in their JSON, the sizes of all else; usual ones first."""
    found: dict[str, None] = {}
    for low in range(0, len(rows), _AT_ONCE):
        wants = []
        for row in rows[low : low + _AT_ONCE]:
            for ext, size in row.sizes.items():
                kind = viewers.choose(ext)
                if kind == "json" and size <= _MOST_BYTES:
                    wants.append(Want(row, ext))
                else:
                    found[_spell((ext,)) if kind in ("text", "cls") else f"size({_spell((ext,))})"] = None
        for want, blob in zip(wants, payloads(wants), strict=True):
            if not isinstance(blob, TarvizError):
                with suppress(ValueError, RecursionError):
                    found |= dict.fromkeys(map(_spell, _scalars(json.loads(blob), (want.ext,))))
    usual = [name for name in (*roles.LABELS, *roles.CAPTIONS) if name in found]
    return list(dict.fromkeys([*usual, *sorted(found, key=lambda name: name.startswith("size("))]))


def _scalars(tree: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Paths of an object's values that fit into a cell."""
    if isinstance(tree, dict) and len(path) <= _DEPTH:
        for name, value in tree.items():
            yield from _scalars(value, (*path, str(name)))
    elif not isinstance(tree, (dict, list)):
        yield path


def _spell(path: tuple[str, ...]) -> str:
    """A path as it is written: `json.meta.src`, `json["a b"]`, `field("a-b")`."""
    field, *names = path
    plain = all(part.isidentifier() for part in field.split(".")) and field not in ("key", "shard", "index")
    text = field if plain else f"field({json.dumps(field)})"
    for name in names:
        text += f".{name}" if name.isidentifier() and not name.startswith("_") else f"[{json.dumps(name)}]"
    return text


def whole(rows: Sequence[Row], asked: Sequence[str]) -> list[list[Any]]:
    """A list a row, a value a column as the record has it; None where it has none. `UsageError` for a column that is none."""
    paths = [field_path(name) for name in asked]
    found = values(rows, frozenset[str]().union(*(path.needs for path in paths)))
    return [[fields.at(path) for path in paths] for fields in found]


def cells(rows: Sequence[Row], asked: Sequence[str]) -> list[list[Cell]]:
    """The same for a page to hold: text cut at 300 characters."""
    return [list(map(_cell, line)) for line in whole(rows, asked)]


def text(value: Any) -> str:
    """A value that is no number: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _cell(value: Any) -> Cell:
    if value is None or isinstance(value, bool) or (isinstance(value, (int, float)) and abs(value) < 1e300):
        return value if not isinstance(value, float) or value == value else "NaN"
    written = text(value)
    return readable(written[:_LONGEST] + ("…" if len(written) > _LONGEST else ""))
