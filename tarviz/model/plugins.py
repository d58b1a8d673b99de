"""A folder is a registry: the file's name is the plugin's name, entry points add others.

`tarviz/ops/resize.py` is the op `resize`; a package elsewhere adds to the group `tarviz.ops`. A file whose
name begins with an underscore, or that the folder's `SUPPORT` names, is not a plugin. Nothing is imported before it is used.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from tarviz.model.errors import UsageError


@cache
def names(folder: str) -> tuple[str, ...]:
    """The plugins of a folder, sorted: `names("ops")`."""
    package = importlib.import_module(f"tarviz.{folder}")
    support = getattr(package, "SUPPORT", ())
    own = [
        module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_") and module.name not in support
    ]
    return tuple(sorted({*own, *_foreign(folder)}))


@cache
def _foreign(folder: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"tarviz.{folder}")}


def load(folder: str, name: str) -> ModuleType | Any:
    """The module of one plugin, imported now. `UsageError` names what exists when there is none of that name."""
    if name not in names(folder):
        close = difflib.get_close_matches(name, names(folder), 1, cutoff=0.5)
        meant = f"Did you mean {close[0]!r}? " if close else ""
        raise UsageError(f"{folder} has nothing named {name!r}.", hint=f"{meant}There are: {', '.join(names(folder))}.")
    if name in _foreign(folder):
        return _foreign(folder)[name].load()
    return importlib.import_module(f"tarviz.{folder}.{name}")
