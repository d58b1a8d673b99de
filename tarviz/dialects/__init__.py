"""Dialects: the APIs of earlier systems, spoken over this engine. One file or folder per system, named like it.

A dialect here gives the names of its system (classes, functions, arguments) and translates them to pipelines, ops, the writer
and the runners; it reads, decodes and encodes nothing by itself. Where its text contradicts itself or its code, a table in
`docs/dialects` says what holds; every code sample of its text is a test in `tests/dialects/samples.toml`.
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from tarviz.model.errors import UsageError


def check_function(f: Any, what: str, hint: str | None = None) -> Any:
    """`f`; `UsageError` where it cannot be called."""
    if not callable(f):
        raise UsageError(f"{what}, got {f!r}.", hint=hint)
    return f


def refuse_unknown(where: str, unknown: Iterable[str], known: Sequence[str]) -> None:
    """`UsageError` for keywords that do not exist, with the nearest that does."""
    for name in unknown:
        close = difflib.get_close_matches(name, known, cutoff=0.5)
        meant = f"Did you mean {close[0]!r}? " if close else ""
        raise UsageError(f"{where} has no keyword {name!r}.", hint=f"{meant}There are {', '.join(known)}.")
