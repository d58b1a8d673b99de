"""Ask shards in SQL: one table, `records`, one row per record, one column per field."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, Unpack

import click

from tarviz import stores
from tarviz.cli import html_page, verb_base
from tarviz.cli.shard_map import cluster_options
from tarviz.model.errors import UsageError, redact, safe
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL
from tarviz.outputs.inputs import Inputs
from tarviz.read.keywords import ReadKeywords
from tarviz.stores import URLs
from tarviz.tools.plain_json import plain_json

if TYPE_CHECKING:
    import pyarrow as pa

    from tarviz.table.table import Table

Format: TypeAlias = Literal["table", "csv", "csv-safe", "json", "parquet"]
T = TypeVar("T")

_ENDS: dict[str, Format] = {"csv": "csv", "parquet": "parquet", "json": "json", "jsonl": "json"}
_HINT = "Name it .csv, .json or .parquet, or say --csv, --json, --parquet."
SHOWN = 40  # rows that a terminal or a cell is shown
_WIDE = 60  # characters of a value there


@dataclass
class Answer(verb_base.Result):
    """What a query gave: an Arrow table as `.table`, `.df()` for pandas, `.rows` as tuples; `findings` of the shards beside it, those of
    types (`of_types`) among them."""

    table: pa.Table
    findings: dict[str, int] = field(default_factory=dict)
    output: str | None = None
    of_types: Sequence[str] = ()

    __repr__ = redacted_repr

    @property
    def exit_code(self) -> int:
        return 1 if self.findings.keys() - set(self.of_types) else 0

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return list(zip(*(column.to_pylist() for column in self.table.columns), strict=True))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def df(self) -> Any:
        """The answer as a pandas data frame."""
        return self.table.to_pandas()

    def _first(self) -> list[tuple[str, ...]]:
        part = self.table.slice(0, SHOWN)
        columns = [[_text(value) for value in column.to_pylist()] for column in part.columns]
        return list(zip(*columns, strict=True))

    def _right(self) -> list[int]:
        import pyarrow as pa

        kinds = self.table.schema.types
        return [at for at, kind in enumerate(kinds) if pa.types.is_integer(kind) or pa.types.is_floating(kind)]

    def _notes(self) -> Iterator[str]:
        if len(self) > SHOWN:
            yield f"… {len(self) - SHOWN:,} more rows"
        yield from self._notes_of_findings()

    def __str__(self) -> str:
        if self.output is not None:
            return "\n".join([f"{redact(safe(self.output))}: {len(self):,} rows", *self._notes_of_findings()])
        rows = [tuple(map(safe, row)) for row in self._first()]
        return "\n".join([verb_base.table(rows, header=tuple(map(safe, self.columns)), right=self._right()), *self._notes()])

    def _notes_of_findings(self) -> Iterator[str]:
        yield from (name if name in self.of_types else f"{count:,} × {name}" for name, count in self.findings.items())

    def to_dict(self) -> dict[str, Any]:
        return {"columns": self.columns, "rows": plain_json(self.table.to_pylist()), "findings": self.findings}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        body = html_page.table(self._first(), header=tuple(self.columns), right=self._right())
        body += "".join(f"<p>{html_page.text(note)}</p>" for note in self._notes())
        return {"text/plain": str(self), "text/html": html_page.fragment(body)}


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _WIDE else text[: _WIDE - 1] + "…"


def sql(
    query: str,
    urls: URLs | Table,
    output: str | PathLike[str] | None = None,
    *,
    format: Format | None = None,
    memory: int | str | None = None,
    workers: int | None = None,
    engine: str | None = None,
    address: str | None = None,
    timeout: float | None = None,
    **reading: Unpack[ReadKeywords],
) -> Answer:
    """What one SELECT over `records` gives (`"SELECT cls, count(*), avg(jpg.width) FROM records GROUP BY cls"`).

    Columns: `key`, `shard`, `n`, `size`; `cls`, `txt`, `json` (a struct: `json.meta.src`); `jpg.width`, `jpg.height`, `jpg.mode`,
    `wav.duration`, `npy.shape`, `EXT.size`, `EXT.checksum`, … They are made on first use, by threads or on an engine (`"ray"`, at
    `address`), and kept beside the cached indexes. With `output` the answer is written there, as its name (`.csv`, `.json`,
    `.parquet`) or `format` says. A query sees the records, and `tags`, and nothing else: no file, no network; `memory` and `timeout`
    (seconds) limit it.
    `UsageError` names what is not there.
    """
    from tarviz.table.table import Table

    with verb_base.progress(None, "shards", label="making columns") as bar:
        if isinstance(urls, Table):
            table = urls
        else:
            table = Table(urls, memory=memory, workers=workers, engine=engine, address=address, timeout=timeout, **reading)
            table.passes.progress = lambda done, total: bar.add(done - bar.done)
        if output is not None:
            Inputs(table.sources).refuse(fspath(output))
        answer = Answer(table.arrow(query), table.findings, of_types=table.notes)
    if output is not None:
        answer.output = fspath(output)
        _write(answer, fspath(output), format_of(fspath(output), _ENDS, _HINT) if format is None else format)
    return answer


def format_of(name: str, ends: Mapping[str, T], hint: str) -> T:
    """How an output is written, by the ending of its name."""
    if (format := ends.get(name.lower().rpartition(".")[2])) is None:
        raise UsageError(f"{name!r} says no format.", hint=hint)
    return format


def _write(answer: Answer, output: str, format: Format) -> None:
    with stores.of(output).create(URL(output)) as sink:
        for piece in pieces(answer.table, format):
            sink.write(piece)


def pieces(table: pa.Table, format: Format) -> Iterator[bytes]:
    """The bytes of an answer as CSV (`csv-safe`: no text in it is a formula to a spreadsheet), JSON lines or Parquet."""
    import io
    import json

    out = io.BytesIO()
    if format == "parquet":
        import pyarrow.parquet as parquet

        parquet.write_table(table, out)
        yield out.getvalue()
        return
    if format == "json":
        for batch in table.to_batches(max_chunksize=4096):
            yield b"".join(json.dumps(plain_json(row)).encode() + b"\n" for row in batch.to_pylist())
        return
    from tarviz.model.types import to_bytes
    from tarviz.tools.table_formats import Csv

    writer = Csv(table.column_names, safe=format == "csv-safe")
    yield writer.head()
    for batch in table.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            cells = [json.dumps(plain_json(value)) if isinstance(value, dict | list) else value for value in row.values()]
            yield writer.row([None if cell is None else to_bytes(str(cell)) for cell in cells])


@verb_base.verb(
    "sql",
    example=[
        "tarviz sql 'SELECT cls, count(*), avg(jpg.width) FROM records GROUP BY cls' data/",
        "tarviz sql 'SELECT key, json.similarity FROM records ORDER BY 2 LIMIT 20' --csv data/ > worst.csv",
    ],
)
@click.argument("words", nargs=-1, required=True, metavar="QUERY URL...")
@verb_base.output_option
@click.option("--csv", "format", flag_value="csv", help="The answer as CSV.")
@click.option("--csv-safe", "format", flag_value="csv-safe", help="The same, formulas made harmless for spreadsheets.")
@click.option("--parquet", "format", flag_value="parquet", help="The answer as Parquet; needs -o.")
@click.option("--memory", metavar="SIZE", help="What the query may use. [default: half of the machine, 4 GiB at most]")
@click.option("--timeout", type=float, metavar="SECONDS", help="How long the query may take.")
@verb_base.tags_option
@verb_base.workers_option
@cluster_options
@verb_base.result_options
def command(words: Sequence[str], output: str | None, format: Format | None, engine: str, as_json: bool, **limits: Any) -> Any:
    """Ask shards in SQL.

    The table is named records: one row per record; columns key, shard, n, size and those of the fields (cls, txt, json.path, jpg.width).
    Tags are in tags, and in the column tag. DuckDB answers, shut in: no files, no network. Needs the extra `table`. In a notebook the
    query stands below %%tv sql SHARDS, and -o NAME keeps the answer.
    """
    if format is not None and as_json:
        raise UsageError("an answer has one format.", hint="Leave out --json, or the other.")
    cell = verb_base.door().cell
    query, urls = (cell, list(words)) if cell is not None else (words[0], list(words[1:]))
    if not urls:
        raise UsageError("the shards are missing.", hint="Write tarviz sql 'SELECT count(*) FROM records' SHARDS.")
    chosen: Format | None = "json" if as_json and output else format
    target = None if output in (None, "-") else output
    answer = sql(query, urls, target, format=chosen, engine=None if engine == "local" else engine, **limits)
    if format is not None and answer.output is None:
        if format == "parquet" and sys.stdout.isatty():
            raise UsageError("a terminal takes no Parquet.", hint="Name a file: -o answer.parquet.")
        _write(answer, "-", format)
        return answer
    return verb_base.emit(answer, as_json and answer.output is None)


command.cell = "text"  # type: ignore[attr-defined]
