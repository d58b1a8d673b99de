"""Why a filter fits nothing: each of its conditions alone, what fits without it, and what its column holds."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tarviz.model.errors import UsageError

if TYPE_CHECKING:
    from tarviz.table.table import Table

MOST = 12  # conditions looked at
_VALUES = 8  # of a column that are named
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|[()\[\]{}]|\b\w+\b|.""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reason:
    """One condition: how many records it `fits` alone, how many fit all the others; `holds` says what its column has where it fits none."""

    text: str
    fits: int
    others: int
    holds: str = ""


def parts(text: str) -> list[str]:
    """A condition taken apart at its outermost `and`s; whole where it has an `or` there.

    >>> parts("cls = 3 and (json.w > 5 or key like '% and %') and n between 1 and 9")
    ['cls = 3', "(json.w > 5 or key like '% and %')", 'n between 1 and 9']
    >>> parts("a = 1 and b = 2 or c = 3")
    ['a = 1 and b = 2 or c = 3']
    """
    found, depth, between = [""], 0, False
    for token in _TOKEN.findall(text):
        word = token.lower()
        depth += (token in "([{") - (token in ")]}")
        if depth == 0 and word in ("or", "case"):
            return [text.strip()]
        if depth == 0 and word == "and" and not between:
            found.append("")
            continue
        if depth == 0 and word in ("between", "and"):
            between = word == "between"
        found[-1] += token
    return [part.strip() for part in found if part.strip()]


def reasons(table: Table, conditions: Sequence[str]) -> list[Reason]:
    """Of each part of the conditions, what it does to the answer; those that fit fewest first. `UsageError` as for a condition."""
    texts = [part for text in conditions for part in _readable(table, text)][:MOST]
    if not texts:
        return []
    tests = [f"coalesce(({table.condition(text)}), false)" for text in texts]
    alone = [f"count(*) FILTER ({test})" for test in tests]
    rest = [" AND ".join([test for at, test in enumerate(tests) if at != out]) or "true" for out in range(len(tests))]
    counts = table.fetch(f"SELECT {', '.join(alone)}, {', '.join(f'count(*) FILTER ({test})' for test in rest)} FROM records")[0]
    found = [Reason(text, counts[at], counts[len(texts) + at], "" if counts[at] else holds(table, text)) for at, text in enumerate(texts)]
    return sorted(found, key=lambda reason: reason.fits)


def _readable(table: Table, text: str) -> list[str]:
    """The parts of a condition, or it whole where a part cannot be read alone."""
    found = parts(text)
    try:
        for part in found:
            table.condition(part)
    except UsageError:
        return [text]
    return found


def holds(table: Table, text: str) -> str:
    """What the first column of a condition holds, in a few words: `json.w is 10 … 640`, `cls is one of 0, 1, 2`."""
    column = table.first_column(text)
    if not column or column == "key":
        return ""
    facet = table.facets(column)
    if not facet.all.distinct:
        return f"no record has {column}"
    values = [bar.label for bar in facet.bars if bar.low is None or bar.low == bar.high]
    if facet.all.mean is not None and len(values) != facet.all.distinct:
        return f"{column} is {facet.all.min:.6g} … {facet.all.max:.6g}"
    if not values:
        return ""
    near = [name for word in re.findall(r"'([^']*)'", text) for name in difflib.get_close_matches(word, values, 1, 0.6)]
    if near:
        return f"{column} has {near[0]!r}"
    more = facet.all.distinct - len(values[:_VALUES])
    return (
        f"{column} is {'one of ' if facet.all.distinct > 1 else ''}{', '.join(values[:_VALUES])}{f' and {more:,} more' if more > 0 else ''}"
    )
