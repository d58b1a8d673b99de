"""Columns as arrays, for whoever draws them: numbers for an axis, or the groups that a column's values fall into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import UsageError
from tarviz.table.places import INTEGERS, REALS

if TYPE_CHECKING:
    from tarviz.table.rows import ChosenRows
    from tarviz.table.table import Table

NUMBERS = INTEGERS | REALS | {"boolean"}
"""Types of columns that an axis can have."""

_NESTED = frozenset({"struct", "list", "map", "array", "union"})
MOST_GROUPS = 24
"""Groups that have a colour of their own."""


def numbers(table: Table, columns: list[str]) -> tuple[ChosenRows, list[NDArray[np.float64]]]:
    """The values of columns over all records, in no order that is promised; NaN where a record has none.

    `UsageError` for a column that holds no numbers.
    """
    found = [table.expression(column) for column in columns]
    for column, expression in zip(columns, found, strict=True):
        kind = table.type_of(expression)
        if kind not in NUMBERS:
            what = "nothing" if kind == '"null"' else {"varchar": "text"}.get(kind, kind)
            raise UsageError(f"{column} holds {what}; an axis needs numbers.", hint="Colour by it instead." if what == "text" else None)
    values = ", ".join(f"CAST({expression} AS DOUBLE) AS v{at}" for at, expression in enumerate(found))
    answer = table.arrow(f"SELECT shard, n, {values} FROM records")
    import pyarrow.compute as compute

    return table.place(answer), [compute.fill_null(answer.column(f"v{at}"), np.nan).to_numpy() for at in range(len(columns))]


@dataclass(frozen=True, slots=True, eq=False)
class AxisValues:
    """The values of a column, as numbers (`values`, NaN for none) or as groups: `codes[i]` counts in `names`, the commonest first;
    −1 is a record without a value, `len(names)` a rarer one."""

    rows: ChosenRows
    values: NDArray[np.float64] | None = None
    codes: NDArray[np.int32] | None = None
    names: tuple[str, ...] = ()


def groups(table: Table, column: str) -> AxisValues:
    """What to colour records by: numbers, where a column has more than 24 of them, else its commonest values."""
    expression = table.expression(column)
    kind = table.type_of(expression)
    if kind in _NESTED:
        raise UsageError(f"{column} holds a {kind}; colours need numbers or text.")
    if kind in NUMBERS and kind != "boolean":
        ((distinct,),) = table.fetch(f"SELECT count(DISTINCT {expression}) FROM records")
        if distinct > MOST_GROUPS or kind not in INTEGERS:
            rows, (values,) = numbers(table, [column])
            return AxisValues(rows, values=values)
    spelt = "CASE WHEN {0} THEN 'yes' WHEN NOT {0} THEN 'no' END" if kind == "boolean" else "CAST({0} AS VARCHAR)"
    answer = table.arrow(f"SELECT shard, n, {spelt.format(expression)} AS v FROM records")
    import pyarrow.compute as compute

    found = compute.dictionary_encode(answer.column("v").combine_chunks())
    words = found.dictionary.to_pylist()
    each = compute.fill_null(found.indices, -1).to_numpy()
    sums = np.bincount(each[each >= 0], minlength=len(words))
    order = np.argsort(-sums, kind="stable")[:MOST_GROUPS]
    place = np.full(len(words) + 1, len(order), np.int32)
    place[order] = np.arange(len(order))
    place[-1] = -1  # what has no value
    return AxisValues(table.place(answer), None, place[each], tuple(words[at] for at in order))
