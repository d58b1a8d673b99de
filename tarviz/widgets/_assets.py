"""The JavaScript and CSS of a widget: `core.mjs` and the widget's own file, joined into one module."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

# An import of a sibling: the joined module has those names already. Imports of anything else are not allowed (tested).
_SIBLING = re.compile(r"^import\s*\{[^}]*\}\s*from\s*\"\./[\w-]+\.mjs\";\n", re.MULTILINE)


def read(name: str) -> str:
    """One of the files beside this one: `read("core.mjs")`."""
    return (files("tarviz.widgets") / name).read_text("utf-8")


@cache
def module(script: str) -> str:
    """The ES module of a widget, whole: no imports left."""
    return _SIBLING.sub("", read("core.mjs") + "\n" + read(f"{script}.mjs"))


@cache
def style(script: str) -> str:
    """The CSS of a widget, whole."""
    return read("core.css") + "\n" + read(f"{script}.css")
