"""DuckDB and pyarrow, imported when something of them is first asked for: without a question to a table all runs where they are not."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ("duckdb", "pa", "parquet", "pc")


class _Later:
    """A module that is imported when it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # which whoever looks through the names of a module asks for, and which is no use of it
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)


if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as parquet
else:
    duckdb, pa, pc, parquet = map(_Later, ("duckdb", "pyarrow", "pyarrow.compute", "pyarrow.parquet"))
