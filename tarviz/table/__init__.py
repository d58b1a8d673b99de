"""Shards as a table, one row per record: `tarviz.table(urls)`, asked in SQL.

Nothing here is imported before it is used: DuckDB and pyarrow come with the extra `table`, and every verb runs without them.
The package can be called: `tarviz.table(urls)` is `tarviz.table.table.Table(urls)`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

# `choice` is what reading looks up by name; the rest is what the table is made of.
SUPPORT: tuple[str, ...] = (
    "alike", "columns", "comparisons", "conditions", "database", "facets", "findings", "finished", "interrupts", "labels",
    "making", "neighbours", "objects", "packages", "paths", "places", "relation", "rows", "sql", "streamed", "table", "tags", "why",
    "words",
)  # fmt: skip


class _Callable(ModuleType):
    def __call__(self, urls: Any, **options: Any) -> Any:
        from tarviz.table.table import Table

        return Table(urls, **options)


sys.modules[__name__].__class__ = _Callable
