"""Shards as a table, one row per record: `tarviz.table(urls)`, asked in SQL.

Nothing here is imported before it is used: DuckDB and pyarrow come with the extra `table`, and every verb runs without them.
The package can be called: `tarviz.table(urls)` is `tarviz.table.opened(urls)`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Unpack

if TYPE_CHECKING:
    from tarviz.read.keywords import ReadKeywords
    from tarviz.stores import URLs
    from tarviz.table.table import Table

__all__ = ["opened"]

# `choice` is what reading looks up by name; the rest is what the table is made of.
SUPPORT: tuple[str, ...] = (
    "alike", "columns", "comparisons", "conditions", "database", "export", "facets", "findings", "finished", "interrupts", "labels",
    "making", "neighbours", "objects", "paths", "places", "relation", "rows", "sql", "streamed", "table", "tags", "why", "words",
)  # fmt: skip


def opened(
    urls: URLs,
    *,
    memory: int | str | None = None,
    workers: int | None = None,
    engine: str | None = None,
    address: str | None = None,
    timeout: float | None = None,
    tags: str | os.PathLike[str] | None = None,
    classes: str | os.PathLike[str] | Sequence[str] = (),
    **reading: Unpack[ReadKeywords],
) -> Table:
    """A table over shards: one row per record, one column per field. Nothing is read before something is asked.

    `urls`: a path, URL, template, folder, or a list of these. `memory` limits what a query may use ("2GB"; else half of the
    machine, 4 GiB at most), `timeout` how many seconds it may take. Columns are made by `workers` threads, or by workers of an engine
    (`"ray"`, at `address`), a shard at a time each, and kept here. `tags` is a file of tags beside the data set, in place of
    those in the user's data folder. `classes` are the names of class numbers in `objects`, or a file of them, one a line.
    `reading` holds options of `ReadOptions`; damaged shards have the records before the damage.
    `MissingPackageError` where DuckDB or pyarrow is not installed.
    """
    from tarviz.table.table import Table

    more: dict[str, Any] = {"engine": engine, "address": address, "timeout": timeout, "tags": tags, "classes": classes}
    return Table(urls, memory=memory, workers=workers, **more, **reading)


class _Callable(ModuleType):
    def __call__(self, urls: URLs, **options: Any) -> Table:
        return opened(urls, **options)


sys.modules[__name__].__class__ = _Callable
