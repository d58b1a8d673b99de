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
    "errors": None,
    "ops": None,
    "samples": None,
}
_VERBS = (
    *("bench", "browse", "cat", "compare", "convert", "create", "deck", "demo", "first", "ls"),
    *("pcat", "proc", "show", "sort", "split", "tsv", "verify"),
)

__all__ = [*_PUBLIC, *_VERBS]


def __getattr__(name: str) -> Any:
    """A public name, imported now; a verb's name is its Python function."""
    if name in _PUBLIC:
        source = _PUBLIC[name]
        value = getattr(importlib.import_module(source), name) if source else importlib.import_module(f"tarviz.{name}")
    elif name in _VERBS:
        from tarviz import _plugins

        value = getattr(_plugins.load("commands", name), name)
    else:
        raise AttributeError(f"module 'tarviz' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext tarviz`: the magics `%tarviz`, `%tv` and `%%tv`."""
    importlib.import_module("tarviz.notebook.magics").load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """`%unload_ext tarviz` takes all of it out again."""
    importlib.import_module("tarviz.notebook.magics").unload_ipython_extension(ipython)
