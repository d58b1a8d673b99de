"""What a column holds: type, missing, distinct, smallest and largest, mean, and bars over all records and over those that fit.

Each side is one query: the column's values are counted, and everything else is made from the counts. What is asked without a filter is
remembered until columns change. `objects.label` counts the records that have an object of each class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import UsageError, redact
from tarviz.table.places import NUMBERS
from tarviz.table.sql import quoted_text

if TYPE_CHECKING:
    from tarviz.table.table import Table

Among: TypeAlias = Sequence[tuple[str, NDArray[np.int64]]]

VALUES = 20  # of a column of texts the most frequent; a column of at most so many numbers has a bar for each
_LOG = 20.0  # from this ratio of largest to mean on, bars grow by a factor
_NESTED = ("struct", "list", "map")
OBJECT_CLASS = "objects.label"  # of a record each class that one of its objects has


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: numbers from `low` up to `high` (the last bar has its upper end too), or the value `label`.

    `all` records, `kept` of them fit; `where` is the condition that chooses just these.
    """

    label: str
    low: float | None
    high: float | None
    all: int
    kept: int
    where: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Exact figures over some records. `mean` is None where a column holds no numbers."""

    records: int
    missing: int
    distinct: int
    min: Any = None
    max: Any = None
    mean: float | None = None


@dataclass(frozen=True, slots=True)
class Facet:
    """A column's figures over `all` records and over those `kept` by the filter, and its bars; `log`: they grow by a factor.

    `other` counts records (all, kept) whose value has no bar.
    """

    column: str
    type: str
    all: Summary
    kept: Summary
    bars: list[Bar] = field(default_factory=list)
    log: bool = False
    other: tuple[int, int] = (0, 0)


MOST_AMONG = 200_000
"""Records that can be named one by one in a question."""


def facet(table: Table, column: str, where: str, bins: int, among: Among | None = None) -> Facet:
    """The facet of `column`, an expression too; `kept` are those that fit, and of `among` (shards with the numbers of their records)."""
    condition = table.condition(where)
    if among is not None:
        condition = f"({condition}) AND ({_those(among)})"
    if column == OBJECT_CLASS:
        return _classes(table, condition)
    name = table.expression(column)
    kind = table.type_of(name)
    asked = f"({column})" if kind == "boolean" and " " in column else column  # it may be a comparison
    if kind in _NESTED:  # compared as text
        name, asked = f"CAST({name} AS VARCHAR)", f"as_text({column})"
    if kind in NUMBERS:
        low, high, mean, distinct = table.remember(("range", name), lambda: _range(table, name))
        if distinct > VALUES and math.isfinite(low) and math.isfinite(high):
            log = low > 0 and high / mean > _LOG
            edges = _edges(low, high, bins, log)
            everything, every = table.remember(("bars", name, bins), lambda: _numbers(table, name, "true", edges, log))
            kept, some = (everything, every) if condition == "true" else _numbers(table, name, condition, edges, log)
            return Facet(column, kind, everything, kept, _spans(column, edges, every, some), log)
    everything, values = table.remember(("values", name), lambda: _values(table, name, kind, "true", None))
    shown = [value for value, _ in values]
    kept, found = (everything, values) if condition == "true" else _values(table, name, kind, condition, shown)
    counts = dict(found)
    bars = [_bar(asked, kind, value, count, counts.get(value, 0)) for value, count in values]
    other = tuple(
        side.records - side.missing - sum(count) for side, count in ((everything, (bar.all for bar in bars)), (kept, counts.values()))
    )
    return Facet(column, kind, everything, kept, bars, other=(other[0], other[1]))


def _classes(table: Table, condition: str) -> Facet:
    """How many records have an object of each class."""
    table.give("objects")
    found = []
    for fits in ("true", condition):
        records = f"SELECT shard, n FROM records WHERE {fits}"
        pairs = f"SELECT DISTINCT shard, n, label FROM objects WHERE label IS NOT NULL AND (shard, n) IN ({records})"
        counts = dict(table.fetch(f"SELECT label, count(*) FROM ({pairs}) GROUP BY label ORDER BY 2 DESC, 1"))
        ((every, labelled),) = table.fetch(
            f"SELECT (SELECT count(*) FROM ({records})), (SELECT count(*) FROM (SELECT DISTINCT shard, n FROM ({pairs})))"
        )
        found.append((Summary(every, every - labelled, len(counts)), counts))
    (everything, all), (kept, some) = found
    shown = list(all)[:VALUES]
    bars = [Bar(name, None, None, all[name], some.get(name, 0), f"has_object({literal(name)})") for name in shown]
    other = (sum(all.values()) - sum(bar.all for bar in bars), sum(some.values()) - sum(bar.kept for bar in bars))
    return Facet(OBJECT_CLASS, "varchar", everything, kept, bars, other=other)


def _those(among: Among) -> str:
    """SQL that is true for these records."""
    if (count := sum(len(n) for _, n in among)) > MOST_AMONG:
        raise UsageError(f"{count:,} records cannot be named one by one; {MOST_AMONG:,} can.", hint="Say them by a condition.")
    parts = [f"shard = {literal(redact(url))} AND n IN ({', '.join(map(str, n.tolist()))})" for url, n in among if len(n)]
    return " OR ".join(f"({part})" for part in parts) or "false"


def _range(table: Table, name: str) -> tuple[float, float, float, int]:
    few = f"(SELECT count(*) FROM (SELECT DISTINCT {name} AS x FROM records LIMIT {VALUES + 2}))"
    ((low, high, mean, distinct),) = table.fetch(f"SELECT min({name}), max({name}), avg({name}), {few} FROM records")
    return (0.0, 0.0, 0.0, 0) if low is None else (float(low), float(high), float(mean), distinct)


def _edges(low: float, high: float, bins: int, log: bool) -> list[float]:
    """The borders of bars of one width, or each by a factor wider than the one before."""
    first, last = (math.log(low), math.log(high)) if log else (low, high)
    inner = [first + at * (last - first) / bins for at in range(1, bins)]
    return [low, *(map(math.exp, inner) if log else inner), high]


def _place(edges: list[float], log: bool) -> str:
    """SQL for the number of the bar that a value `x` falls into."""
    low, high, bars = edges[0], edges[-1], len(edges) - 1
    value, low, high = ("ln(x)", math.log(low), math.log(high)) if log else ("x", low, high)
    at = f"({value} - {low!r}) / {(high - low) / bars!r}"
    first = f"greatest(least(floor({at}), {bars - 1}), 0)::INTEGER"
    # The formula may be off by one where a value lies on a border: the borders decide, as they do in a bar's condition.
    lower = f"({first}) - (x < ({edges}::DOUBLE[])[({first}) + 1])::INTEGER"
    upper = f"((x >= ({edges}::DOUBLE[])[({lower}) + 2]) AND ({lower}) < {bars - 1})::INTEGER"
    return f"CASE WHEN x IS NOT NULL THEN greatest(least({lower} + {upper}, {bars - 1}), 0) END"


def _numbers(table: Table, name: str, condition: str, edges: list[float], log: bool) -> tuple[Summary, dict[int, int]]:
    """The figures of numbers, and how many fall into each bar."""
    rows = table.fetch(
        f"SELECT {_place(edges, log)} AS bar, count(*), sum(c)::BIGINT, min(x), max(x), sum(x::DOUBLE * c) FROM "
        f"(SELECT {name} AS x, count(*) AS c FROM records WHERE {condition} GROUP BY x) GROUP BY bar"
    )
    there = [row for row in rows if row[0] is not None]
    missing, count = sum(row[2] for row in rows if row[0] is None), sum(row[2] for row in there)
    bars = {row[0]: row[2] for row in there}
    if not there:
        return Summary(missing, missing, 0), bars
    mean = math.fsum(row[5] for row in there) / count
    distinct = sum(row[1] for row in there)
    return Summary(missing + count, missing, distinct, min(row[3] for row in there), max(row[4] for row in there), mean), bars


def _spans(column: str, edges: list[float], all: dict[int, int], kept: dict[int, int]) -> list[Bar]:
    bars = []
    for at, (low, high) in enumerate(pairwise(edges)):
        where = f"{column} >= {low!r} and {column} {'<=' if at == len(edges) - 2 else '<'} {high!r}"
        bars.append(Bar(f"{low:.4g} … {high:.4g}", low, high, all.get(at, 0), kept.get(at, 0), where))
    return bars


def _values(table: Table, name: str, kind: str, condition: str, wanted: Sequence[Any] | None) -> tuple[Summary, list[tuple[Any, int]]]:
    """The figures of a column, and how often the most frequent values, or those `wanted`, are there."""
    ends = "NULL::VARCHAR, NULL::VARCHAR" if kind in _NESTED else "min(x)::VARCHAR, max(x)::VARCHAR"
    mean = "sum(x::DOUBLE * c) / sum(c) FILTER (x IS NOT NULL)" if kind in NUMBERS else "NULL"
    counted = f"WITH counted AS MATERIALIZED (SELECT {name} AS x, count(*) AS c FROM records WHERE {condition} GROUP BY x)"
    sums = "coalesce(sum(c), 0)::BIGINT, coalesce(sum(c) FILTER (x IS NULL), 0)::BIGINT"
    figures = f"SELECT NULL AS x, count(x), {sums}, {ends}, {mean} FROM counted"
    if wanted is None:
        chosen = f"SELECT * FROM (SELECT x, c FROM counted WHERE x IS NOT NULL ORDER BY c DESC, x LIMIT {VALUES})"
    else:  # none at all is no list in SQL: NULL is never found
        chosen = f"SELECT x, c FROM counted WHERE x IN ({', '.join(['NULL', *map(literal, wanted)])})"
    rows = table.fetch(f"{counted} {figures} UNION ALL SELECT x, c, NULL, NULL, NULL, NULL, NULL FROM ({chosen})")
    (_, distinct, records, missing, low, high, average) = next(row for row in rows if row[2] is not None)
    if kind in NUMBERS and low is not None:
        low, high = (float(low), float(high)) if kind in ("double", "float", "decimal") else (int(low), int(high))
    elif kind == "boolean" and low is not None:
        low, high = low == "true", high == "true"
    found = [(row[0], row[1]) for row in rows if row[2] is None]
    return Summary(records, missing, distinct, low, high, average), found


def _bar(column: str, kind: str, value: Any, all: int, kept: int) -> Bar:
    number = float(value) if kind in NUMBERS else None
    nan = number is not None and math.isnan(number)  # which is no number in a condition
    return Bar(str(value), number, number, all, kept, f"{column} = {quoted_text('nan') if nan else literal(value)}")


def literal(value: Any) -> str:
    """A value as SQL writes it.

    >>> literal("it's"), literal(True), literal(1.5), literal(-math.inf)
    ("'it''s'", 'true', '1.5', "'-inf'::DOUBLE")
    """
    if isinstance(value, float) and not math.isfinite(value):
        return f"'{value}'::DOUBLE"
    if isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else repr(value)
    return quoted_text(str(value))
