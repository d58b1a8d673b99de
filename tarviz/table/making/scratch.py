"""One DuckDB of one thread for each process, which reads documents: to start one takes longer than to read a thousand of them."""

from __future__ import annotations

import functools
import os

from tarviz.table.packages import duckdb


def scratch() -> duckdb.DuckDBPyConnection:
    """A connection to it; what is registered there goes when it is closed."""
    return _database(os.getpid()).cursor()


@functools.cache
def _database(_process: int) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})
