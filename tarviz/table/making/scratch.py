"""One DuckDB for each process that holds nothing: to start one takes longer than to read a condition or a thousand documents."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def scratch(*, files: bool) -> duckdb.DuckDBPyConnection:
    """A connection to it, with or without access to files; what is registered there goes when it is closed."""
    return _database(os.getpid(), files).cursor()


@functools.cache
def _database(_process: int, files: bool) -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"threads": 1, "enable_external_access": files})
