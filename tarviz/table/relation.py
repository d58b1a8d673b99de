"""What a query gives: a relation of DuckDB that can be interrupted, with errors of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tarviz.table.packages import duckdb, pa


class Relation:
    """Rows of a query, which runs when they are asked for, and again each time: `fetchall()`, `to_arrow_table()`, `df()` (pandas), `pl()`
    (polars), `columns`, `types`, and whatever else a relation of DuckDB has. Printed, it shows its first rows."""

    def __init__(self, relation: duckdb.DuckDBPyRelation, run: Callable[[Callable[[], Any]], Any]) -> None:
        self._relation: Any = relation
        self._run = run

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows as Python values."""
        rows: list[tuple[Any, ...]] = self._run(self._relation.fetchall)
        return rows

    def to_arrow_table(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._run(self._relation.to_arrow_table)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._relation, name)
        if not callable(found):
            return found

        def call(*args: Any, **more: Any) -> Any:
            value = self._run(lambda: found(*args, **more))
            return Relation(value, self._run) if isinstance(value, type(self._relation)) else value

        return call

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchall())

    def __len__(self) -> int:
        return int(self._run(lambda: len(self._relation)))

    def __repr__(self) -> str:
        return str(self._run(lambda: repr(self._relation)))
