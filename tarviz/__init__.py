"""tarviz: see, stream, reshape and convert tar shards of machine-learning data.

>>> import tarviz
>>> for record in tarviz.records("data/train-{0000..0003}.tar"):  # doctest: +SKIP
...     print(record.key, len(record["jpg"]))

Names are looked up when they are used: `import tarviz` loads no NumPy, no TensorFlow, no notebook.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Dataset": "tarviz.dialects.tar2tf",
    "Pipeline": "tarviz.pipeline",
    "blocks": "tarviz.reading",
    "index": "tarviz.reading",
    "records": "tarviz.reading",
    "options": "tarviz.config",
    "TarvizError": "tarviz.errors",
    "TarvizWarning": "tarviz.errors",
}
_MODULES = ("config", "errors", "ops", "samples")

__all__ = [*_PUBLIC, *_MODULES]


def __getattr__(name: str) -> Any:
    """A public name, imported now; a verb's name (`tarviz.convert`) is the function in its file of `tarviz/commands`."""
    if name in _PUBLIC:
        value = getattr(importlib.import_module(_PUBLIC[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"tarviz.{name}")
    elif not name.startswith("_") and name in _verbs():
        from tarviz import _plugins

        value = getattr(_plugins.load("commands", name), name)
    else:
        raise AttributeError(f"module 'tarviz' has no attribute {name!r}")
    globals()[name] = value
    return value


def _verbs() -> tuple[str, ...]:
    from tarviz import _plugins

    return _plugins.names("commands")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_verbs()})


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext tarviz`: the magics `%tarviz`, `%tv` and `%%tv`."""
    importlib.import_module("tarviz.notebook.magics").load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """`%unload_ext tarviz` takes all of it out again."""
    importlib.import_module("tarviz.notebook.magics").unload_ipython_extension(ipython)
