"""A record as a card: the field that stands for it, and beside it what a reader wants to see with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tarviz import viewers
from tarviz.looks import roles
from tarviz.model.types import Buffer
from tarviz.viewers import Panel
from tarviz.widgets.browse.rows import Row

MOST = {"picture": 8, "array": 6, "sound": 3, "text": 6, "data": 3}
"""Fields of each part that are shown; the others are named."""

_LARGEST = 4 << 20


def parts(row: Row, main: str) -> tuple[list[tuple[str, str]], list[str]]:
    """(part, field) of what is shown beside the field `main`, in the order of a reader, and the fields that are only named.

    Parts are `picture`, `text` (captions, classes), `sound` (films too), `array`, `data` (JSON).
    """
    sizes = row.sizes
    kinds = {ext: viewers.choose(ext) for ext in sizes}
    found = roles.roles(kinds)
    order: list[tuple[str, str]] = [("picture", ext) for ext in found.pictures]
    order += [("text", ext) for ext in found.written if kinds[ext] in ("cls", "text")]
    order += [("sound", ext) for ext in found.played]
    order += [("data", ext) for ext in found.written if kinds[ext] == "json"]
    order += [("array", ext) for ext in found.arrays]
    shown: list[tuple[str, str]] = []
    named = list(found.rest)
    used: dict[str, int] = {}
    for part, ext in order:
        if ext == main:
            continue
        used[part] = used.get(part, 0) + 1
        if used[part] > MOST[part] or (sizes[ext] > _LARGEST and part != "sound"):
            named.append(ext)
        else:
            shown.append((part, ext))
    return shown, named


def message(row: Row, main: str, panel: Callable[[str], Panel], buffers: list[Buffer]) -> dict[str, Any]:
    """The card of a record without its main field, JSON-ready; `panel` makes a field's, whose bytes are put after `buffers`."""
    shown, named = parts(row, main)
    items: list[Mapping[str, Any]] = []
    for part, ext in shown:
        found, _ = panel(ext).to_message(buffers)
        items.append({"part": part, "ext": ext, "panel": found})
    return {"items": items, "named": named}
