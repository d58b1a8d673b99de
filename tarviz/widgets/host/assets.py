"""The JavaScript and CSS of a widget: its module and those it imports from the other rooms, joined into one."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

# An import of a sibling: the joined module has those names already. Imports of anything else are not allowed (tested).
_SIBLING = re.compile(r"^import\s*\{[^}]*\}\s*from\s*\"\.{1,2}/(?:[\w.]+/)*([\w-]+)\.mjs\";\n", re.MULTILINE)
_ROOMS = ("host", "panes", "browse/page", "browse/filters", "browse/marking", "map", "compare", "bench", "lab/extension/static")


@cache
def read(name: str) -> str:
    """One of the files of the rooms, by its name alone: `read("core.mjs")`. No two rooms hold files of one name (tested)."""
    found = _find(name)
    if found is None:
        raise FileNotFoundError(f"no room of tarviz.widgets holds {name}")
    return found.read_text("utf-8")


def _find(name: str) -> Traversable | None:
    places = (files("tarviz.widgets") / room / name for room in _ROOMS)
    return next((place for place in places if place.is_file()), None)


def parts(script: str) -> list[str]:
    """The modules a widget is made of, each before those that import it: `["core", "panels", "browse"]`."""
    found: list[str] = []
    for name in _SIBLING.findall(read(f"{script}.mjs")):
        found += [part for part in parts(name) if part not in found]
    return [*found, script]


@cache
def module(script: str) -> str:
    """The ES module of a widget, whole: no imports left."""
    return "\n".join(_SIBLING.sub("", read(f"{part}.mjs")) for part in parts(script))


@cache
def style(script: str) -> str:
    """The CSS of a widget, whole: a file for each of its modules that has one."""
    names = [f"{part}.css" for part in parts(script)]
    return "\n".join(read(name) for name in names if _find(name) is not None)
