"""A folder is a registry: the file's name is the plugin's name, entry points add others.

`tarviz/ops/resize.py` is the op `resize`; a package elsewhere adds to the group `tarviz.ops`. A file whose
name begins with an underscore, or that the folder's `SUPPORT` names, is not a plugin. Nothing is imported before it is used, and
what other packages add is looked for where plugins are listed, where a name is not ours, and where the option `override` names one
of ours: to ask every installed package takes longer than `import numpy`.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tarviz.model import config
from tarviz.model.errors import TarvizError, TarvizWarning, UsageError
from tarviz.model.wording import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def names(folder: str) -> tuple[str, ...]:
    """The plugins of a folder, sorted: `names("ops")`."""
    return tuple(sorted({*_own(folder), *_foreign(folder)}))


@cache
def _own(folder: str) -> frozenset[str]:
    package = importlib.import_module(f"tarviz.{folder}")
    support = getattr(package, "SUPPORT", ())
    found = (module.name for module in pkgutil.iter_modules(package.__path__))
    return frozenset(name for name in found if not name.startswith("_") and name not in support)


def _foreign(folder: str) -> dict[str, EntryPoint]:
    """Plugins of other packages by name."""
    return _choose(folder, config.options().override) if _entry_points(folder) else {}


@cache
def _entry_points(folder: str) -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=f"tarviz.{folder}"))


@cache
def _choose(folder: str, override: str) -> dict[str, EntryPoint]:
    """One that takes the name of our own, or of an earlier one, is warned of and left out, unless `override` names it."""
    chosen: dict[str, EntryPoint] = {}
    for point in _entry_points(folder):
        wanted = _is_wanted(folder, point.name, override)
        taken = "tarviz itself" if point.name in _own(folder) else _package(chosen[point.name]) if point.name in chosen else ""
        if taken and not wanted:
            warnings.warn(
                f"W_PLUGIN {_package(point)} adds {folder}.{point.name}, which {taken} has; it is left out. "
                f"Set the option override to {folder}.{point.name} to use it.",
                TarvizWarning,
                stacklevel=2,
            )
        else:
            chosen[point.name] = point
    return chosen


def _is_wanted(folder: str, name: str, override: str) -> bool:
    """Whether a plugin of another package is wanted in the place of ours."""
    return f"{folder}.{name}" in override.split(",")


def _package(point: EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist else "another package"


def is_foreign(folder: str, name: str) -> bool:
    """Whether a plugin comes from another package."""
    return name in _foreign(folder)


def is_known(folder: str, name: str) -> bool:
    """Whether there is a plugin of this name, ours or another package's.

    >>> is_known("commands", "ls"), is_known("commands", "list")
    (True, False)
    """
    return name in _own(folder) or name in _foreign(folder)


def load(folder: str, name: str) -> ModuleType | Any:
    """The module of one plugin, imported now. `UsageError` names what exists when there is none of that name, and the package whose
    plugin cannot be imported."""
    if name in _own(folder) and not (_is_wanted(folder, name, config.options().override) and name in _foreign(folder)):
        return importlib.import_module(f"tarviz.{folder}.{name}")
    if name in _foreign(folder):
        return _import(folder, _foreign(folder)[name])
    there = names(folder)
    raise UsageError(f"{folder} has nothing named {name!r}.", hint=f"{did_you_mean(name, there)}There are: {', '.join(there)}.")


def _import(folder: str, point: EntryPoint) -> Any:
    try:
        return point.load()
    except TarvizError:
        raise
    except Exception as error:  # the code of another package raises anything while it is imported
        what = f"{folder}.{point.name} of {_package(point)} cannot be imported ({type(error).__name__}: {error})."
        raise UsageError(what, hint="Upgrade that package, or uninstall it.") from error
