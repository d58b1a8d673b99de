"""DuckDB over the columns of shards, shut in: it sees them and nothing else, within a limit of memory, and can be stopped."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from tarviz.model.errors import LimitError, MissingPackageError, TarvizError, UsageError, redact
from tarviz.table.making.arrow_types import conflict, fitted, merged
from tarviz.table.making.kept_columns import KeptColumns

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_MOST = 4 << 30
_MACROS = (
    "startswith(a, b) AS starts_with(a, b)",
    "endswith(a, b) AS ends_with(a, b)",
    "matches(a, b) AS regexp_matches(a, b)",
    "whole(a) AS trunc(try_cast(a AS DOUBLE))",
    "real_number(a) AS try_cast(a AS DOUBLE)",
)


def needed() -> None:
    """`MissingPackageError` where DuckDB or pyarrow is not installed."""
    for package in ("duckdb", "pyarrow"):
        try:
            __import__(package)
        except ImportError:
            raise MissingPackageError.of(package, "Asking a table", "table") from None


def memory_limit() -> int:
    """Bytes a query may use: half of what the machine has, 4 GiB at most."""
    try:
        have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return _MOST
    return min(have // 2, _MOST)


def connected(shards: list[KeptColumns], limit: int | None = None) -> duckdb.DuckDBPyConnection:
    """A database that holds the view `records` over these shards and the table `tags`, and can reach nothing else."""
    import duckdb

    settings: dict[str, Any] = {"python_enable_replacements": False, "autoinstall_known_extensions": False}
    settings |= {"autoload_known_extensions": False, "memory_limit": f"{(limit or memory_limit()) // 1024}KiB"}
    settings |= {"ieee_floating_point_ops": False, "error_on_division_by_zero": False, "temp_directory": ""}
    base = duckdb.connect(config=settings)
    kept, tables = _sorted_out([shard for shard in shards if shard.records])
    if kept:
        base.execute(f"SET allowed_paths=[{_files(kept)}]")
    base.execute("SET parquet_metadata_cache=true")
    base.execute("SET enable_external_access=false")
    for macro in _MACROS:
        base.execute(f"CREATE MACRO {macro}")
    base.execute("CREATE TABLE tags (shard VARCHAR, key VARCHAR, tag VARCHAR, note VARCHAR)")
    # By name: a file may get more columns while it is asked.
    sources = []
    if plain := [shard for shard in kept if shard.called == redact(shard.url)]:
        sources.append(f"SELECT {_names(plain)} FROM read_parquet([{_files(plain)}], union_by_name=true)")
    if others := [shard for shard in kept if shard.called != redact(shard.url)]:  # made when their URLs were spelled in another way
        base.execute("CREATE TABLE _called (_file VARCHAR, _shard VARCHAR)")
        base.executemany("INSERT INTO _called VALUES (?, ?)", [(str(shard.file), redact(shard.url)) for shard in others])
        there = f"read_parquet(list_distinct([{_files(others)}]), union_by_name=true, filename='_file') JOIN _called USING (_file)"
        sources.append(f"SELECT {_names(others)} FROM (SELECT * REPLACE (_shard AS shard) FROM {there})")
    for number, table in enumerate(tables):
        base.register("_given", table)
        base.execute(f"CREATE TABLE _part{number} AS SELECT * FROM _given")
        base.unregister("_given")
        sources.append(f"SELECT * FROM _part{number}")
    base.execute(f"CREATE VIEW _records AS {' UNION ALL BY NAME '.join(sources) or _nothing(shards)}")
    base.execute("CREATE VIEW records AS SELECT * FROM _records")
    base.execute("SET lock_configuration=true")
    return base


def _nothing(shards: list[KeptColumns]) -> str:
    """A view without a row, with the columns the shards have."""
    return "SELECT NULL::VARCHAR AS key, NULL::VARCHAR AS shard, NULL::BIGINT AS n, NULL::BIGINT AS size WHERE false"


def _names(shards: list[KeptColumns]) -> str:
    """The columns that files have together."""
    return ", ".join(map(quoted_name, dict.fromkeys(name for shard in shards for name in shard.columns().names)))


def _files(shards: list[KeptColumns]) -> str:
    """Where the columns of shards lie."""
    return ", ".join(_quoted(str(shard.file)) for shard in shards)


def _sorted_out(shards: list[KeptColumns]) -> tuple[list[KeptColumns], list[pa.Table]]:
    """Shards that DuckDB can read from their files as they are, and tables of those whose columns must be fitted first."""
    types: dict[str, pa.DataType] = {}
    schemas = [shard.columns() for shard in shards]
    odd: set[str] = set()
    for schema in schemas:
        for each in schema:
            seen = types.get(each.name)
            if seen is not None and seen != each.type:
                if conflict(seen, each.type):
                    odd.add(each.name)
                types[each.name] = merged(seen, each.type)
            else:
                types[each.name] = each.type
    kept: list[KeptColumns] = []
    tables: list[pa.Table] = []
    for shard, schema in zip(shards, schemas, strict=True):
        if shard.memory is None and not any(each.name in odd and each.type != types[each.name] for each in schema):
            kept.append(shard)
            continue
        table = shard.table()
        for at, each in enumerate(schema):
            if each.name in odd:
                table = table.set_column(at, each.name, _fitted(table.column(at), types[each.name]))
        tables.append(table)
    return kept, tables


def _fitted(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    import pyarrow as pa

    return pa.chunked_array([fitted(chunk, kind) for chunk in column.chunks], kind)


def _quoted(text: str) -> str:
    """A text as SQL writes it.

    >>> _quoted("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def quoted_name(text: str) -> str:
    """A column's name as SQL writes it.

    >>> quoted_name("jpg.width")
    '"jpg.width"'
    """
    return '"' + text.replace('"', '""') + '"'


def translated(error: Exception, nearest: Any = None, unknown: list[str] | None = None) -> TarvizError:
    """DuckDB's error in our words."""
    import duckdb

    text = re.sub(r"\n\s*LINE \d+:.*", "", str(error), flags=re.DOTALL).strip()
    text = re.sub(r"^(?:[A-Z][A-Za-z ]+ Error): ", "", text)
    if isinstance(error, duckdb.OutOfMemoryException):
        return LimitError(
            f"the query needs more memory than the limit allows ({text.splitlines()[0]}).", hint="Ask for less, or aggregate."
        )
    if isinstance(error, duckdb.InterruptException):
        return UsageError("the query was stopped.", code="E_STOPPED")
    found = re.search(r'(?:column|struct entry|key) "([^"]+)"', text)
    hint = None
    name = unknown[0] if unknown and "not found" in text else found[1] if found else None
    if name and nearest is not None:
        close = nearest(name)
        hint = f"Nearest: {', '.join(close)}." if close else None
    return UsageError(text.replace("\n", " "), hint=hint)
