"""From found to kept: records as shards, as a table, as a list of keys."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import LimitError, UsageError
from tarviz.model.types import URL, Buffer, Record
from tarviz.outputs import TAR_END, Exists, Names, Output, tar_member
from tarviz.table.choice import listing
from tarviz.widgets.answers import kept
from tarviz.widgets.answers.questions import Questions
from tarviz.widgets.browse.cells import columns, text, whole
from tarviz.widgets.browse.rows import Row, Rows

KINDS = ("tar", "csv", "parquet", "txt")
"""Shards, tables, a list of keys."""

MOST_BYTES = 512 << 20
"""What a page is given at once."""


def members(records: Iterable[Record]) -> Iterator[list[Buffer]]:
    """The pieces of a tar of these records, keys and fields as they are."""
    for record in records:
        for ext in record:
            yield list(tar_member(f"{record.key}.{ext}", bytes(record[ext]), 0))
    yield [TAR_END]


def tar(records: Iterable[Record]) -> bytes:
    """A shard in memory. `LimitError` above 512 MB."""
    out = io.BytesIO()
    for pieces in members(records):
        out.writelines(pieces)
        if out.tell() > MOST_BYTES:
            raise LimitError(
                f"These records have more than {MOST_BYTES >> 20} MiB, which is more than a page is given at once.",
                hint="In Python, w.export('subset.tar') writes any number.",
            )
    return out.getvalue()


def table(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    """CSV with a header: key, shard, index, and a column an expression, its texts whole."""
    out = io.StringIO()
    # Before Python 3.13 csv quotes a lone \r only where lines end in one
    writer = csv.writer(SimpleNamespace(write=lambda line: out.write(line[:-2] + "\n")))
    writer.writerow(["key", "shard", "index", *columns])
    for low in range(0, len(rows), 512):
        part = list(rows[low : low + 512])
        for row, line in zip(part, whole(part, columns), strict=True):
            values = [one if isinstance(one, int | float | None) else text(one) for one in line]
            writer.writerow([row.key, row.shard.url, row.record, *values])
    return out.getvalue().encode("utf-8", "backslashreplace")


def as_file(kind: str, rows: Rows, ids: NDArray[np.int64], questions: Questions, wanted: Sequence[str] | None = None) -> bytes:
    """Rows as a file of one of `KINDS`, a Parquet with every column that was made; `wanted` are the columns of a CSV (None: all that the
    records have)."""
    if kind == "parquet":
        import pyarrow.parquet as form

        out = io.BytesIO()
        form.write_table(questions.columns_of(ids), out)
        return out.getvalue()
    chosen = [rows.row(row) for row in ids.tolist()]
    match kind:
        case "tar":
            return tar(row.load() for row in chosen)
        case "csv":
            return table(chosen, columns(chosen) if wanted is None else wanted)
        case "txt":
            return listing(row.key for row in chosen)
    raise UsageError(f"Records are not saved as {kind!r}.", hint=f"There are: {', '.join(KINDS)}.")


def write(
    path: str | os.PathLike[str],
    rows: Rows,
    ids: NDArray[np.int64],
    questions: Questions,
    wanted: Sequence[str] | None = None,
    *,
    exists: Exists = "error",
) -> int:
    """Write rows to `path` by its ending (`.tar`, `.csv`, `.parquet`, `.txt`), which has its name when it is complete; returns how many.

    A `.tar` whose name has a counter (`subset-{}.tar`) is shards of at most 10⁹ bytes. Members are copied as they are. Nothing is
    overwritten unless `exists="replace"` says so: a name that is taken is a `UsageError`.
    """
    kind = PurePath(path).suffix.removeprefix(".").lower()
    if kind not in KINDS:
        raise UsageError(f"{os.fspath(path)!r} does not say what is to be written.", hint=f"End it in .{', .'.join(KINDS)}.")
    if exists == "error":
        Names(os.fspath(path)).refuse_taken()
    if kind == "tar" and all(shard.url != "-" for shard in rows.shards):  # standard input cannot be read once more
        kept.copy(rows, ids, path, questions.options, exists=exists)
        return len(ids)
    with Output(URL(os.fspath(path)), exists=exists) as output:
        if kind == "tar":
            for pieces in members(rows.row(row).load() for row in ids.tolist()):
                output.write(pieces)
        else:
            output.write([as_file(kind, rows, ids, questions, wanted)])
    return len(ids)
