"""Tabulate fields: TSV that reads back byte for byte, CSV, JSON lines, Parquet."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias, Unpack

import click

from tarviz import stores
from tarviz.cli import verb_base
from tarviz.cli.shard_map import Mapped, MappedKeywords, engine_options, shard_to_shard
from tarviz.cli.tar_tool_options import Made, command_shards, inputs_argument, tool_options
from tarviz.model.errors import DataError, Fault, UsageError, redact, safe
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Buffer, to_bytes, to_text
from tarviz.model.wording import plural
from tarviz.outputs.inputs import Inputs
from tarviz.read.spans import Batch, intake
from tarviz.read.stream import ReadOptions, ReadReport, with_changes
from tarviz.stores import Sink, Stat, URLs
from tarviz.tools import field_selection, table_formats
from tarviz.tools.record_faults import settle

Format: TypeAlias = Literal["tsv", "csv", "csv-safe", "json", "parquet"]
_FLUSH = 256 << 10
parse = table_formats.parse_tsv


@dataclass
class Tabulated(Made):
    """The table written: its rows, and the report of what was read."""

    rows: int = 0
    output: str = "-"
    columns: tuple[str, ...] = ()

    __repr__ = redacted_repr

    @property
    def records(self) -> int:
        return self.rows

    @property
    def to_stdout(self) -> bool:
        return self.output == "-"

    def summary(self) -> Iterator[str]:
        rows = plural(self.rows, "row")
        yield f"{redact(safe(self.output))}: {rows}, {' '.join(map(safe, self.columns))}"

    def to_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "columns": list(self.columns), "output": redact(self.output), "read": self.report.to_dict()}


def _of_shards(mapped: Mapped, output: str) -> Tabulated:
    return Tabulated([], mapped.report, mapped.records, output, mapped.made[0].columns if mapped.made else ())


@shard_to_shard(_of_shards)
def tsv(
    urls: URLs = "-",
    output: str | PathLike[str] = "-",
    *,
    fields: str = "",
    count: int | None = None,
    key: bool = True,
    header: bool = True,
    format: Format = "tsv",
    files: str | None = None,
    **reading: Unpack[MappedKeywords],
) -> Tabulated:
    r"""Writes a table with a row for each record: its key, then the fields of the list (`"cls txt;caption"`, `"size:meta.txt"`).

    `__shard__` and `__index__` are fields too. A field that is missing is not an error (TSV has `\N`, CSV nothing, JSON null), and one that
    no record has is warned of. TSV is a line a record; tabs, line ends, backslashes, control characters and bytes that are not UTF-8 are
    escaped, and `tsv.parse(text)` gives the bytes back. Payloads that no column asks for are not read where the shard is a plain file.

    An output with a counter (`x-{}.tsv`) makes a table of each shard by itself, `jobs` at a time, on the engine (`"local"`, `"ray"`) at
    `address`; `resume` keeps outputs that their manifest proves.
    """
    options = with_changes(ReadOptions(), reading)
    chosen = field_selection.picks(fields) if fields.strip() else ()
    if key:
        chosen = (field_selection.Pick(("__key__",)), *chosen)
    if not chosen:
        raise UsageError("a table without key and fields has no column.", hint='Name some: -f "cls txt".')
    titles = [pick.title for pick in chosen]
    writer = _writer(format, titles, [pick.exts for pick in chosen])
    targets = command_shards(urls, files)
    Inputs(targets).refuse(fspath(output))
    result = Tabulated([], ReadReport(), 0, fspath(output), tuple(titles))
    lacking = {";".join(pick.exts) for pick in chosen}
    with (
        verb_base.silent_warnings(),
        _sink(fspath(output), format) as sink,
        verb_base.progress(None, "records") as bar,
        closing(intake(targets, options, result.report, stop=count)) as batches,
    ):
        held = bytearray(writer.head() if header or format == "parquet" else b"")
        for batch in batches:
            for row in _rows(batch, chosen, writer, options.on_error == "skip", result, lacking):
                held += row
                if len(held) > _FLUSH:
                    sink.write(bytes(held))
                    held.clear()
            bar.add(len(batch))
            del batch
        sink.write(bytes(held) + writer.end())
    for name in sorted(lacking) if result.rows else ():
        result.report.add(Fault("W_NO_COLUMN", f"no record has a field {safe(name)}: its column is empty."))
    return result


def _rows(
    batch: Batch,
    chosen: Sequence[field_selection.Pick],
    writer: table_formats.TableWriter,
    skip: bool,
    result: Tabulated,
    lacking: set[str],
) -> Iterator[bytes]:
    """The rows of a batch; `lacking` loses the fields that one of its records has."""
    block = batch.block
    for record in range(len(batch)):
        fields = batch.fields(record)
        facts = {"__key__": block.keys[record], "__shard__": to_bytes(redact(block.shard)), "__index__": b"%d" % (block.first + record)}
        cells = [facts[pick.exts[0]] if pick.exts[0] in facts else _payload(batch, pick.row(fields)) for pick in chosen]
        if lacking:
            lacking.difference_update(";".join(pick.exts) for pick, cell in zip(chosen, cells, strict=True) if cell is not None)
        try:
            yield writer.row(cells)
            result.rows += 1
        except DataError as error:
            error.at(hint="--on-error skip leaves such records out.")
            settle(error, batch, record, result.report, skip=skip)


def _payload(batch: Batch, row: int | None) -> bytes | None:
    return None if row is None else bytes(batch.payload(row))


def _writer(format: Format, titles: Sequence[str], exts: Sequence[Sequence[str]]) -> table_formats.TableWriter:
    if format in ("csv", "csv-safe"):
        return table_formats.Csv(titles, safe=format == "csv-safe")
    if format == "json":
        return table_formats.JsonLines(titles, exts)
    return table_formats.Parquet(titles, exts) if format == "parquet" else table_formats.Tsv(titles)


def _sink(output: str, format: Format) -> Sink:
    text = format != "parquet" and output == "-" and sys.stdout is not None and sys.stdout.isatty()
    return _Terminal() if text else stores.of(output).create(URL(output))


class _Terminal(Sink):
    """Standard output where it is a terminal: whole lines of text go there, made safe."""

    def write(self, data: Buffer, /) -> None:
        lines = to_text(bytes(data)).split("\n")
        sys.stdout.write("\n".join("\t".join(map(safe, line.split("\t"))) for line in lines))

    def commit(self) -> Stat:
        sys.stdout.flush()
        return Stat(URL("-"), ranges=False)

    def abort(self) -> None:
        return


@verb_base.verb("tsv", example=["tarviz tsv -f cls in.tar", "tarviz tsv -f 'cls txt;caption' --csv -o labels.csv 'train-{0000..0147}.tar'"])
@verb_base.output_option
@click.option(
    "-f",
    "--fields",
    default="",
    metavar="LIST",
    help="Columns beside the key: 'cls txt;caption', renamed 'label:cls'; __shard__, __index__.",
)
@click.option("-c", "--count", type=click.IntRange(min=0), metavar="N", help="Rows to write at most.")
@click.option("--csv", "format", flag_value="csv", help="Commas and quotes (RFC 4180).")
@click.option("--csv-safe", "format", flag_value="csv-safe", help="The same, formulas made harmless for spreadsheets.")
@click.option("--parquet", "format", flag_value="parquet", help="A Parquet file; needs pyarrow.")
@click.option("--key/--no-key", " /--nokey", default=True, help="Whether the key is the first column.")
@click.option("--header/--no-header", " /--noheader", default=True, help="Whether the first line names the columns.")
@inputs_argument
@engine_options
@tool_options
def command(output: str | None, format: Format | None, as_json: bool, **options: Any) -> Any:
    """Tabulate fields of records, one line each, with the key in front.

    Tabs, line ends, backslashes, control characters and bytes that are not UTF-8 are escaped (\\t \\n \\\\ \\x1b \\xff), \\N is a
    field that is missing. With --json each line is an object: classes are integers, JSON is itself, other bytes {"base64": ...}.
    """
    if as_json and format:
        raise UsageError("a table has one format.", hint="Leave out --json, which writes JSON lines, or the other.")
    return verb_base.emit(tsv(output=output or "-", format="json" if as_json else format or "tsv", **options))
