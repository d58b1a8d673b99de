"""The shell: how verbs take options, show results and progress, and how `tarviz VERB` finds its verb.

`main(argv)` runs one command line. The names below come from `entry.py` when they are used, so that a verb may import its
neighbours here without importing all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tarviz.cli.entry import GROUPS as GROUPS
    from tarviz.cli.entry import group as group
    from tarviz.cli.entry import invoke as invoke
    from tarviz.cli.entry import main as main
    from tarviz.cli.entry import summary as summary

_ENTRY = ("GROUPS", "group", "invoke", "main", "summary")


def __getattr__(name: str) -> Any:
    if name not in _ENTRY:
        raise AttributeError(f"module 'tarviz.cli' has no attribute {name!r}")
    from tarviz.cli import entry

    return getattr(entry, name)
