"""The JavaScript and CSS of a widget: its module and those it imports from beside it, joined into one."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

# An import of a sibling: the joined module has those names already. Imports of anything else are not allowed (tested).
_SIBLING = re.compile(r"^import\s*\{[^}]*\}\s*from\s*\"\./([\w-]+)\.mjs\";\n", re.MULTILINE)


@cache
def read(name: str) -> str:
    """One of the files beside this one: `read("core.mjs")`."""
    return (files("tarviz.widgets") / name).read_text("utf-8")


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
    return "\n".join(read(name) for name in names if (files("tarviz.widgets") / name).is_file())
