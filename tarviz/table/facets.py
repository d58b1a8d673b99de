"""What a column holds: type, missing, distinct, smallest and largest, mean, and bars over all records and over those that fit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from tarviz.table.sql import NUMBERS

if TYPE_CHECKING:
    from tarviz.table.table import Table

VALUES = 20  # of a text column, the most frequent
_LOG = 20.0  # from this ratio of largest to mean on, bars are by magnitude


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
    """A column's figures over `all` records and over those `kept` by the filter, and its bars; `log`: they grow by a factor."""

    column: str
    type: str
    all: Summary
    kept: Summary
    bars: list[Bar] = field(default_factory=list)
    log: bool = False
    other: tuple[int, int] = (0, 0)  # records (all, kept) of values that have no bar

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def facet(table: Table, column: str, where: str, bins: int) -> Facet:
    """The facet of `column`, an expression too. What is asked without a filter is remembered until columns change."""
    name = table.expression(column)
    condition = table.condition(where)
    whole = table.remembered(("summary", name), lambda: _summary(table, name, "true"))
    kind, everything = whole
    kept = everything if condition == "true" else _summary(table, name, condition)[1]
    if kind in NUMBERS and everything.distinct > VALUES:
        bars, log = _histogram(table, column, name, everything, condition, bins)
        return Facet(column, kind, everything, kept, bars, log)
    bars = _values(table, column, name, condition, text=kind not in NUMBERS)
    seen = sum(bar.all for bar in bars), sum(bar.kept for bar in bars)
    other = everything.records - everything.missing - seen[0], kept.records - kept.missing - seen[1]
    return Facet(column, kind, everything, kept, bars, other=other)


def _summary(table: Table, name: str, condition: str) -> tuple[str, Summary]:
    kind = table.type_of(name)
    if kind in NUMBERS:
        more = f"min({name}), max({name}), avg({name})"
    elif kind in ("struct", "list", "map"):
        more = "NULL, NULL, NULL"
    else:
        more = f"min({name}), max({name}), NULL"
    query = f"SELECT count(*), count({name}), count(DISTINCT {name}), {more} FROM records WHERE {condition}"
    ((records, there, distinct, low, high, mean),) = table.fetched(query)
    return kind, Summary(records, records - there, distinct, low, high, None if mean is None else float(mean))


def _histogram(table: Table, column: str, name: str, all: Summary, condition: str, bins: int) -> tuple[list[Bar], bool]:
    low, high = float(all.min), float(all.max)
    if not (math.isfinite(low) and math.isfinite(high)):
        return [], False
    log = low > 0 and high / (all.mean or high) > _LOG
    if log:
        step = (math.log(high) - math.log(low)) / bins
        place = f"(ln({name}) - {math.log(low)!r}) / {step!r}"
    else:
        step = (high - low) / bins
        place = f"({name} - {low!r}) / {step!r}"
    inner = (math.exp(math.log(low) + at * step) if log else low + at * step for at in range(1, bins))
    edges = [low, *inner, high]
    query = (
        f"SELECT least(greatest(floor({place}), 0), {bins - 1})::INTEGER AS bar, count(*), count(*) FILTER (WHERE {condition}) "
        f"FROM records WHERE {name} IS NOT NULL GROUP BY bar"
    )
    counts = {bar: (every, kept) for bar, every, kept in table.fetched(query)}
    bars = []
    for at in range(bins):
        a, b = edges[at], edges[at + 1]
        every, kept = counts.get(at, (0, 0))
        end = "<=" if at == bins - 1 else "<"
        bars.append(Bar(f"{a:.4g} … {b:.4g}", a, b, every, kept, f"{column} >= {a!r} and {column} {end} {b!r}"))
    return bars, log


def _values(table: Table, column: str, name: str, condition: str, *, text: bool) -> list[Bar]:
    query = (
        f"SELECT {name} AS value, count(*) AS every, count(*) FILTER (WHERE {condition}) FROM records "
        f"WHERE {name} IS NOT NULL GROUP BY value ORDER BY every DESC, value LIMIT {VALUES}"
    )
    bars = []
    for value, every, kept in table.fetched(query):
        number = float(value) if not text else None
        bars.append(Bar(str(value), number, number, every, kept, f"{column} = {_literal(value)}"))
    return bars


def _literal(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else repr(value)
    return "'" + str(value).replace("'", "''") + "'"
