"""What is chosen as a file: a list of keys, CSV or Parquet. New shards are made by `tarviz cat --where`."""

from __future__ import annotations

from os import PathLike, fspath
from typing import TYPE_CHECKING

from tarviz import stores
from tarviz.model.errors import UsageError
from tarviz.model.types import URL
from tarviz.table.choice import listing
from tarviz.table.sql import quoted_name

if TYPE_CHECKING:
    from tarviz.table.table import Table


def export(table: Table, output: str | PathLike[str], where: str = "", columns: str = "") -> int:
    """Write the records that fit: `.txt` is a list of keys for `--keys`, `.csv` and `.parquet` hold `columns` (else all made so far).

    How many there are. Nothing has the output's name before it is whole.
    """
    import io

    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    name = fspath(output)
    end = name.lower().rpartition(".")[2]
    if end not in ("txt", "csv", "parquet"):
        raise UsageError(f"{name!r} says no format.", hint="Name it .txt (keys), .csv or .parquet.")
    wanted = "key" if end == "txt" else columns or ", ".join(_made(table, nested=end == "parquet"))
    found = table.arrow(f"SELECT {wanted} FROM records WHERE {table.condition(where)}")
    out = io.BytesIO()
    if end == "txt":
        out.write(listing(found.column(0).to_pylist()))
    elif end == "csv":
        csv.write_csv(found, out)
    else:
        parquet.write_table(found, out)
    with stores.of(name).create(URL(name)) as sink:
        sink.write(out.getvalue())
    return int(found.num_rows)


def _made(table: Table, *, nested: bool) -> list[str]:
    """The columns that are there; CSV holds no structs and lists."""
    there = {name: kind for name, kind in table.columns.items() if kind is not None}
    return [quoted_name(name) for name, kind in there.items() if nested or (not kind.startswith("STRUCT") and not kind.endswith("[]"))]
