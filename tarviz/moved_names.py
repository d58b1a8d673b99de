"""Names of modules that have moved: the old ones work for one release, with a warning that says the new one.

`import tarviz` puts `Finder` after the other finders, so it is asked only for modules that are not there. `importlib.abc` is for
the type checker alone: to import it takes as long as all of `import tarviz` beside it.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:
    Loader = MetaPathFinder = object

MOVED = {
    "tarviz.config": "tarviz.model.config",
    "tarviz.errors": "tarviz.model.errors",
    "tarviz.expressions": "tarviz.query.expressions",
    "tarviz.formats.blocks": "tarviz.read.blocks",
    "tarviz.ops.images": "tarviz.ops.values.images",
    "tarviz.ops.payloads": "tarviz.ops.values.payloads",
    "tarviz.ops.pictures": "tarviz.ops.values.pictures",
    "tarviz.reading": "tarviz.read.stream",
    "tarviz.types": "tarviz.model.types",
    "tarviz.writer": "tarviz.write",
}


class _Moved(Loader):
    """Gives the module under its new name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(MOVED[spec.name])
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run already, under its own name: only what the import system wrote over is put back."""
        module.__spec__ = self._spec


class Finder(MetaPathFinder):
    """Finds modules by the names they had before they moved."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in MOVED:
            return None
        warnings.warn(f"{fullname} is now {MOVED[fullname]}; the old name goes with the next release.", DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, _Moved())


def install() -> None:
    """Old names work from now on; doing it twice changes nothing."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())
