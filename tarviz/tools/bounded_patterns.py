"""Regular expressions that cannot run away, however the text they meet is made."""

from __future__ import annotations

import re
from typing import Any

from tarviz.model.errors import UsageError

_SMALL = 16  # times that a repeat may have and is not taken for an open one
_WAYS = 4096


def bounded(pattern: str) -> re.Pattern[str]:
    """A compiled regular expression that cannot run away: no repeat inside a repeat, at most two open repeats, few ways to take the rest.

    >>> bounded(r"^n\\d+_").search("n0142_7") is not None
    True
    """
    if len(pattern) > 200:
        raise UsageError("A pattern may have 200 characters at most.")
    try:
        found = re.compile(pattern)
        tree: Any = re._parser.parse(pattern)  # type: ignore[attr-defined]
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{pattern!r} is not a regular expression: {error}.") from error
    if _open_repeats(tree) > 2:
        raise UsageError(f"The pattern {pattern!r} could take for ever: it repeats without end more than twice or inside a repeat.")
    if _ways(tree) > _WAYS:
        raise UsageError(f"The pattern {pattern!r} could take for ever: it has more than {_WAYS} ways to match one text.")
    return found


def _ways(tree: Any) -> int:
    """How many ways there are to go through `tree` (up to `_WAYS` and one), an open repeat taken for one: `(a?){30}` has 2³⁰."""
    total = 1
    for code, value in tree:
        name = str(code)
        if "REPEAT" in name:
            low, high = int(value[0]), int(value[1])
            inner = _ways(value[2])
            total *= inner if high > _SMALL and inner == 1 else inner ** min(high, _SMALL) * (min(high, _SMALL) - min(low, _SMALL) + 1)
        elif name == "BRANCH":
            total *= sum(map(_ways, value[1]))
        elif name == "SUBPATTERN":
            total *= _ways(value[3])
        elif name in ("ASSERT", "ASSERT_NOT"):
            total *= _ways(value[1])
        elif name == "GROUPREF_EXISTS":
            total *= sum(_ways(one) for one in value[1:] if one)
        elif name == "ATOMIC_GROUP":
            total *= _ways(value)
        total = min(total, _WAYS + 1)
    return total


def _open_repeats(tree: Any, inside: bool = False) -> int:
    """How many repeats without a small bound `tree` holds; one inside another, or a choice inside one, counts as many."""
    total = 0
    for code, value in tree:
        name = str(code)
        if "REPEAT" in name:
            grows = int(value[1]) > _SMALL
            total += (100 if inside and int(value[1]) > 1 else 0) + grows + _open_repeats(value[2], inside or grows)
        elif name == "BRANCH":
            total += 100 * inside + sum(_open_repeats(one, inside) for one in value[1])
        elif name == "SUBPATTERN":
            total += _open_repeats(value[3], inside)
        elif name in ("ASSERT", "ASSERT_NOT"):
            total += _open_repeats(value[1], inside)
        elif name == "GROUPREF" and inside:
            total += 100
        elif name == "GROUPREF_EXISTS":
            total += sum(_open_repeats(one, inside) for one in value[1:] if one)
        elif name == "ATOMIC_GROUP":
            total += _open_repeats(value, inside)
    return total
