"""tarviz: see, stream, reshape and convert tar shards of machine-learning data.

>>> import tarviz
>>> for record in tarviz.records("data/train-{0000..0003}.tar"):  # doctest: +SKIP
...     print(record.key, len(record["jpg"]))

Names are looked up when they are used: `import tarviz` loads no NumPy, no TensorFlow, no notebook.
"""

from __future__ import annotations

import importlib
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tarviz import ops as ops
    from tarviz import samples as samples
    from tarviz.commands.bench import bench as bench
    from tarviz.commands.browse import browse as browse
    from tarviz.commands.cache import cache as cache
    from tarviz.commands.card import card as card
    from tarviz.commands.cat import cat as cat
    from tarviz.commands.compare import compare as compare
    from tarviz.commands.convert import convert as convert
    from tarviz.commands.create import create as create
    from tarviz.commands.deck import deck as deck
    from tarviz.commands.demo import demo as demo
    from tarviz.commands.diff import diff as diff
    from tarviz.commands.first import first as first
    from tarviz.commands.join import join as join
    from tarviz.commands.ls import ls as ls
    from tarviz.commands.objects import objects as objects
    from tarviz.commands.pcat import pcat as pcat
    from tarviz.commands.proc import proc as proc
    from tarviz.commands.show import show as show
    from tarviz.commands.sort import sort as sort
    from tarviz.commands.split import split as split
    from tarviz.commands.sql import sql as sql
    from tarviz.commands.tsv import tsv as tsv
    from tarviz.commands.verify import verify as verify
    from tarviz.dialects.tar2tf import Dataset as Dataset
    from tarviz.model import config as config
    from tarviz.model import errors as errors
    from tarviz.model.config import options as options
    from tarviz.model.errors import TarvizError as TarvizError
    from tarviz.model.errors import TarvizWarning as TarvizWarning
    from tarviz.pipeline import Pipeline as Pipeline
    from tarviz.read.mixes import mix as mix
    from tarviz.read.stream import blocks as blocks
    from tarviz.read.stream import index as index
    from tarviz.read.stream import records as records
    from tarviz.runners.ray_data import read_ray as read_ray
    from tarviz.table.table import Table as _Table
    from tarviz.writing import write as write
    from tarviz.writing import writer as writer

    table = _Table  # the package itself can be called

__version__ = "0.1.0"

# Written out, for checkers and editors read it as it stands.
__all__ = [
    "__version__",
    "Dataset",
    "Pipeline",
    "TarvizError",
    "TarvizWarning",
    "bench",
    "blocks",
    "browse",
    "cache",
    "card",
    "cat",
    "compare",
    "config",
    "convert",
    "create",
    "deck",
    "demo",
    "errors",
    "diff",
    "first",
    "index",
    "join",
    "ls",
    "mix",
    "objects",
    "ops",
    "options",
    "pcat",
    "proc",
    "read_ray",
    "records",
    "samples",
    "show",
    "sort",
    "split",
    "sql",
    "table",
    "tsv",
    "verify",
    "write",
    "writer",
]

_PUBLIC = {
    "Dataset": "tarviz.dialects.tar2tf",
    "Pipeline": "tarviz.pipeline",
    "blocks": "tarviz.read.stream",
    "index": "tarviz.read.stream",
    "mix": "tarviz.read.mixes",
    "read_ray": "tarviz.runners.ray_data",
    "records": "tarviz.read.stream",
    "write": "tarviz.writing",
    "writer": "tarviz.writing",
    "options": "tarviz.model.config",
    "TarvizError": "tarviz.model.errors",
    "TarvizWarning": "tarviz.model.errors",
    # modules, under their own names
    "config": "tarviz.model.config",
    "errors": "tarviz.model.errors",
    "ops": "tarviz.ops",
    "samples": "tarviz.samples",
    "table": "tarviz.table",
}

if not TYPE_CHECKING:  # a checker that saw it would take every name there could be for one of ours

    def __getattr__(name):
        """A public name, imported now; a verb's name (`tarviz.convert`) is the function in its file of `tarviz/commands`."""
        if name in _PUBLIC:
            value = importlib.import_module(_PUBLIC[name])
            if not _PUBLIC[name].endswith(f".{name}"):
                value = getattr(value, name)
        elif not name.startswith("_") and _is_verb(name):
            from tarviz.model import plugins

            value = getattr(plugins.load("commands", name), name)
        else:
            raise AttributeError(f"module 'tarviz' has no attribute {name!r}")
        globals()[name] = value
        return value


def _is_verb(name: str) -> bool:
    """Not a package of ours, which `from tarviz import stores` asks for here before it is imported; a verb of whoever adds one."""
    from tarviz.model import plugins

    return PathFinder.find_spec(f"tarviz.{name}", __path__) is None and plugins.is_known("commands", name)


def __dir__() -> list[str]:
    """The public names, and the verbs that other packages add."""
    from tarviz.model import plugins

    return sorted({*__all__, *plugins.names("commands")})


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext tarviz`: the magics `%tarviz`, `%tv` and `%%tv`."""
    importlib.import_module("tarviz.notebook.magics").load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """`%unload_ext tarviz` takes all of it out again."""
    importlib.import_module("tarviz.notebook.magics").unload_ipython_extension(ipython)
