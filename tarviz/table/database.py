"""DuckDB over the columns of shards, shut in: it sees them and nothing else, within a limit of memory, and can be stopped."""

from __future__ import annotations

import functools
import os
from typing import Any, TypeAlias

from tarviz.model import errors
from tarviz.model.errors import redact
from tarviz.table import comparisons
from tarviz.table.columns import is_hidden, text_of
from tarviz.table.making.arrow_types import merge
from tarviz.table.making.json_columns import read_as, scratch
from tarviz.table.making.json_structure import Structure, castable, fit_columns, has, sql_type
from tarviz.table.making.json_structure import merge as merged_structures
from tarviz.table.making.kept_columns import KeptColumns
from tarviz.table.packages import duckdb, pa
from tarviz.table.sql import OBJECTS, quoted_name, quoted_text

_MOST = 4 << 30
_MACROS = (
    "startswith(a, b) AS starts_with(a, b)",
    "endswith(a, b) AS ends_with(a, b)",
    "matches(a, b) AS regexp_matches(a, b)",
    "whole(a) AS trunc(try_cast(a AS DOUBLE))",
    "real_number(a) AS try_cast(a AS DOUBLE)",
    "words_of(a) AS CASE WHEN try_cast(a AS DOUBLE) IS NULL THEN a END",
    "folded(t) AS replace(replace(replace(lower(nfc_normalize(t)), 'ß', 'ss'), 'ς', 'σ'), 'ſ', 's')",  # as words are compared
    "tagged(s, k, t) AS EXISTS (SELECT 1 FROM tags WHERE tags.shard = s AND tags.key = k AND tags.tag = t)",
    *comparisons.MACROS,
)
_NOTHING = "SELECT NULL::VARCHAR AS key, NULL::VARCHAR AS shard, NULL::BIGINT AS n, NULL::BIGINT AS size WHERE false"

_Group: TypeAlias = tuple[list[KeptColumns], list[str], bool]


ALONE: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
"""Settings of a database that fetches no code from the network."""


def require() -> None:
    """`MissingPackageError` where DuckDB or pyarrow is not installed."""
    for package in ("duckdb", "pyarrow"):
        errors.require(package, "Asking a table", "table")


def memory_limit() -> int:
    """Bytes a query may use: half of what the machine has, 4 GiB at most."""
    try:
        have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return _MOST
    return min(have // 2, _MOST)


def connect(shards: list[KeptColumns], limit: int | None = None) -> duckdb.DuckDBPyConnection:
    """A database that holds the view `records` over these shards and the table `tags`, and can reach nothing else."""
    settings = {**ALONE, "python_enable_replacements": False, "memory_limit": f"{(limit or memory_limit()) // 1024}KiB"}
    settings |= {"lambda_syntax": "ENABLE_SINGLE_ARROW"}  # `x -> x > 1` as well as `lambda x: x > 1`
    settings |= {"ieee_floating_point_ops": False, "error_on_division_by_zero": False, "temp_directory": ""}
    base = duckdb.connect(config=settings)
    groups, tables = _sources([shard for shard in shards if shard.records])
    if groups:
        base.execute(f"SET allowed_paths=[{', '.join(quoted_text(str(shard.file)) for those, *_ in groups for shard in those)}]")
    base.execute("SET parquet_metadata_cache=true")
    base.execute("SET enable_external_access=false")
    base.execute("CREATE TABLE tags (shard VARCHAR, key VARCHAR, tag VARCHAR, note VARCHAR)")
    base.execute(f"CREATE TABLE objects ({', '.join(f'{name} {kind}' for name, kind in OBJECTS.items())})")
    for macro in _MACROS:
        base.execute(f"CREATE MACRO {macro}")
    # By name: a file may get more columns while it is asked.
    base.execute("CREATE TABLE _called (_file VARCHAR, _shard VARCHAR)")
    sources = []
    for those, names, renamed in groups:
        files = ", ".join(quoted_text(str(shard.file)) for shard in those)
        if renamed:  # made when their URLs were spelled in another way
            base.executemany("INSERT INTO _called VALUES (?, ?)", [(str(shard.file), redact(shard.url)) for shard in those])
            names = ["_shard AS shard" if name == '"shard"' else name for name in names]
            files = f"list_distinct([{files}]), filename='_file') JOIN _called USING (_file"
        else:
            files = f"[{files}]"
        sources.append(f"SELECT {', '.join(names)} FROM read_parquet({files})")
    for number, (table, names) in enumerate(tables):
        base.from_arrow(table).project(", ".join(names)).create(f"_part{number}")
        sources.append(f"SELECT * FROM _part{number}")
    base.execute(f"CREATE VIEW _records AS {' UNION ALL BY NAME '.join(sources) or _NOTHING}")
    base.execute("CREATE VIEW records AS SELECT * FROM _records")
    base.execute("SET lock_configuration=true")
    return base


@functools.cache
def _empty(_process: int) -> duckdb.DuckDBPyConnection:
    return connect([])


def empty() -> duckdb.DuckDBPyConnection:
    """A connection to the database of no shards that this process has: to start one takes longer than to ask a block of records."""
    return _empty(os.getpid()).cursor()


def structures(shards: list[KeptColumns]) -> dict[str, Structure]:
    """What lies where in the JSON fields of all shards together."""
    found: dict[str, Structure] = {}
    for ext, each in (item for shard in shards for item in shard.structures.items()):
        found[ext] = merged_structures(found.get(ext, "NULL"), each)
    return found


def _sources(shards: list[KeptColumns]) -> tuple[list[_Group], list[tuple[pa.Table, list[str]]]]:
    """Shards whose files have the same columns, with what SQL selects of them, and tables of shards whose documents had to be read again
    or that no file holds."""
    whole = {ext: fit_columns(each) for ext, each in structures(shards).items()}
    schemas = [shard.columns() for shard in shards]
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for each in schema:
            types[each.name] = merge(types.get(each.name, each.type), each.type)
    groups: dict[tuple[Any, ...], _Group] = {}  # by their columns: one reader takes files that have the same
    tables = []
    for shard, schema in zip(shards, schemas, strict=True):
        own = {ext: fit_columns(each) for ext, each in shard.structures.items()}
        again = [ext for ext, each in own.items() if not castable(each, whole[ext])]
        if shard.memory is None and not again:
            selected = [_selection(each, own, whole, types) for each in schema if not is_hidden(each.name)]
            renamed = shard.called != redact(shard.url)
            groups.setdefault((renamed, *schema.names, *schema.types), ([], selected, renamed))[0].append(shard)
            continue
        table = shard.table()
        for ext in again:
            with scratch() as base:
                column = read_as(base, table.column(text_of(ext)).combine_chunks(), whole[ext])
            table = table.set_column(table.column_names.index(ext), ext, column)
        fields = [table.schema.field(name) for name in table.column_names if not is_hidden(name)]
        tables.append((table, [_selection(each, own | {ext: whole[ext] for ext in again}, whole, types) for each in fields]))
    return list(groups.values()), tables


def _selection(column: pa.Field, own: dict[str, Structure], whole: dict[str, Structure], types: dict[str, pa.DataType]) -> str:
    """A column of one shard as all shards have it."""
    name = quoted_name(column.name)
    if column.name in whole:
        kind = sql_type(whole[column.name])
        same = sql_type(own[column.name]) == kind and not has(whole[column.name], "HUGEINT")  # which is kept as a decimal
        return name if same else f"CAST({name} AS {kind}) AS {name}"
    if column.type == types[column.name]:
        return name
    return f"CAST({name} AS {'DOUBLE' if str(types[column.name]) == 'double' else 'VARCHAR'}) AS {name}"
