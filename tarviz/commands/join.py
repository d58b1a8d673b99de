"""Join records with those of other shards, or with the rows of a table, by key: new fields beside the old ones."""

from __future__ import annotations

import json as _json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias, Unpack, get_args

import click
import numpy as np

from tarviz.cli import verb_base
from tarviz.cli.tar_tool_options import Made, Tar, tool_options
from tarviz.formats.tar_header import tar_member
from tarviz.model.errors import DataError, Fault, SchemaError, UsageError
from tarviz.model.types import URL, Buffer, to_bytes, to_text
from tarviz.outputs import Names
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.output import size_of
from tarviz.outputs.tar_output import Piece, TarOutput
from tarviz.read.keywords import ReadKeywords
from tarviz.read.spans import Batch, intake
from tarviz.read.stream import ReadOptions, shards, with_changes
from tarviz.stores import URLs
from tarviz.tools.field_selection import Form, columns, keep_members, key_template
from tarviz.tools.partners import Found, OtherShards, PartnerRows, is_table
from tarviz.tools.record_faults import settle

How: TypeAlias = Literal["left", "inner"]
_AT_ONCE = 4 << 20  # bytes that wait to be written


@dataclass
class JoinReport(Made):
    """The tar written; how many records found a partner, how many are `alone`, and how many of the others no record asked for."""

    found: int = 0
    alone: int = 0
    unused: int = 0
    how: How = "left"

    def summary(self) -> Iterator[str]:
        yield from super().summary()
        alone = f"{self.alone:,} without one are {'kept' if self.how == 'left' else 'left out'}"
        yield f"{self.found:,} records found a partner, {alone}; {self.unused:,} of the others belong to none"

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"found": self.found, "alone": self.alone, "unused": self.unused}


def join(
    a: URLs,
    b: URLs,
    output: str | PathLike[str] = "-",
    *,
    on: str | None = None,
    fields: Mapping[str, str] | None = None,
    how: How = "left",
    match: str = "{key}",
    tmp: str | PathLike[str] | None = None,
    **reading: Unpack[ReadKeywords],
) -> JoinReport:
    """Writes the records of `a`, each with the fields of its partner in `b` behind its own: a record of that key, or a row of a table.

    A table is CSV, TSV, JSON lines or Parquet; its column `on` (`__key__` or `key`) holds keys, or names of files whose key is meant
    (`train/1.jpg`). Its other columns become one field `json`, merged into the one that is there; `fields` makes fields of columns
    instead (`{"label": "cls"}`), and chooses and renames those of records. `match` says what is looked up of a key (`"{base}"`).

    What finds no partner is counted, and kept or with `how="inner"` left out. A second partner of one key, and a field or a name in JSON
    that both have with different values, is an error of code E_DUP_FIELD; `duplicates="first"` takes the first partner and what `a` has,
    `"last"` the last and what `b` has; `on_error="skip"` leaves such records out.

    `a` is read once; partners are looked up, some megabytes at a time, and in one order both are read from front to back. Rows of a table,
    and shards without places to go to (a pipe, a packed one), lie in a file in the folder `tmp` meanwhile. An output with a counter
    (`x-{}.tar`) is one for each shard of `a`.
    """
    if how not in ("left", "inner"):
        raise UsageError(f"how={how!r} is not one of left, inner.")
    options, result = with_changes(ReadOptions(), reading), JoinReport(how=how)
    targets, others, names = shards(a), shards(b), Names(fspath(output))
    inputs = Inputs([*targets, *others])
    if names.counts:
        inputs.refuse_any(names, count=len(targets))
    if any(map(is_table, others)) and len(others) > 1:
        raise UsageError("one table at a time is joined.", shard=others[0], hint="Put the tables together before.")
    if on is not None and not is_table(others[0]):
        raise UsageError("on names a column of a table; records have their keys.", shard=others[0])
    with verb_base.silent_warnings(), tempfile.TemporaryDirectory(prefix="tarviz-join-", dir=tmp) as folder:
        partners: OtherShards | PartnerRows
        if is_table(others[0]):
            partners = PartnerRows(others[0], on, fields, folder, options)
        else:
            partners = OtherShards(others, options, folder, fields, result.report)
        pairs = _Pairs(partners, key_template(match), options, result)
        with verb_base.progress(None, "records") as bar:
            for number, some in enumerate([[url] for url in targets] if names.counts else [targets]):
                with TarOutput(names.at(number), inputs=inputs) as outlet:
                    pairs.write(some, outlet, bar)
                result.outputs.append(Tar(outlet.url, outlet.records, outlet.bytes))
        result.unused = int(np.count_nonzero(~partners.used))
        if result.alone and not result.found:
            result.report.add(Fault("W_NO_PARTNER", "no record found a partner.", others[0], pairs.last))
    return result


@dataclass
class _Pairs:
    """What is written of records and their partners. `last` is what was looked up last."""

    partners: OtherShards | PartnerRows
    made: Callable[[bytes, str, int], bytes]
    options: ReadOptions
    result: JoinReport
    last: str = ""

    def write(self, urls: list[URL], outlet: TarOutput, bar: Any) -> None:
        """The records of some shards, each with its partner."""
        form = Form(report=self.result.report)
        with closing(intake(urls, self.options, self.result.report)) as batches:
            for batch in batches:
                keys = [self.made(key, batch.block.shard, batch.block.first + at) for at, key in enumerate(batch.block.keys)]
                held: list[Piece] = []
                size = 0
                for record, found in enumerate(self.partners.of(keys)):
                    if not (written := self.members(batch, record, found)):
                        continue
                    form.beside(batch, record)
                    outlet.records += 1
                    held += written
                    size += sum(map(size_of, written))
                    if size > _AT_ONCE:
                        outlet.write(held)
                        held, size = [], 0
                outlet.write(held)
                bar.add(len(batch))
                self.last = to_text(keys[-1])
                del batch, held

    def members(self, batch: Batch, record: int, found: Found) -> list[Piece]:
        """The members of a record and of its partner; none where it is left out."""
        result = self.result
        result.found += bool(found)
        result.alone += not found
        if not found and result.how == "inner":
            return []
        try:
            new = self._new(batch, batch.fields(record), found)
        except (DataError, SchemaError) as error:
            settle(error, batch, record, result.report, skip=self.options.on_error == "skip")
            return []
        old = [row for row in batch.rows(record) if batch.ext(row) not in new]
        made = keep_members(batch, old) if old else []
        for ext, value in new.items():
            made += tar_member(batch.block.keys[record] + b"." + to_bytes(ext), value)
        return made

    def _new(self, batch: Batch, rows: Mapping[str, int], found: Found) -> dict[str, Buffer]:
        """The fields of the partner that are written, in place of those of the same name."""
        if len(found) > 1:
            raise _twice(f"{len(found):,} of the others have this key")
        new: dict[str, Buffer] = {}
        for ext, value in found[0]().items() if found else ():
            old = bytes(batch.payload(rows[ext])) if ext in rows else None
            if isinstance(value, dict):
                value = self._merge(ext, b"{}" if old is None else old, value)
            elif old is not None and old != value:
                self._refuse(ext)
                value = old if self.options.duplicates == "first" else value
            if value != old:
                new[ext] = value
        return new

    def _merge(self, ext: str, old: bytes, columns: dict[str, Any]) -> bytes:
        """JSON with columns in it; as it was where it has them all."""
        try:
            there = _json.loads(old)
        except ValueError:
            there = None
        if not isinstance(there, dict):
            raise DataError(f"{ext} is no JSON object, which columns could go into.", code="E_SCHEMA", hint="Make fields of them: fields=.")
        if others := [name for name in columns if name in there and there[name] != columns[name]]:
            self._refuse(f"{ext}.{others[0]}")
        both = columns | there if self.options.duplicates == "first" else there | columns
        if both == there:
            return old
        try:
            return _json.dumps(both, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # half a surrogate pair, which JSON can write in ASCII alone
            return _json.dumps(both).encode()

    def _refuse(self, name: str) -> None:
        if self.options.duplicates == "error":
            raise _twice(f"{name} is in both, with different values")


def _twice(what: str) -> DataError:
    return DataError(f"{what}.", code="E_DUP_FIELD", hint="duplicates='first' or 'last' takes one of them.")


@verb_base.verb(
    "join",
    example=["tarviz join a.tar 'b-{0..3}.tar' -o c.tar", "tarviz join a.tar labels.csv --on filename --as cls=label -o c.tar"],
)
@click.argument("a", shell_complete=verb_base.complete_shards)
@click.argument("b", metavar="B|TABLE", shell_complete=verb_base.complete_shards)
@verb_base.output_option
@click.option("--on", metavar="COLUMN", help="Where a table has its keys. [default: __key__ or key]")
@click.option("--as", "pairs", multiple=True, metavar="FIELD=COLUMN", help="A field of its own for a column, or of B; the others stay out.")
@verb_base.choice("how", get_args(How), "Keep what finds no partner, or not.")
@click.option("--match", default="{key}", show_default=True, metavar="TEMPLATE", help="What to look up, of {key} {folder} {base}.")
@click.option("--tmp", type=click.Path(file_okay=False, exists=True), metavar="DIR", help="Where a table, a pipe, a packed shard is kept.")
@tool_options
def command(a: str, b: str, output: str | None, pairs: tuple[str, ...], as_json: bool, **options: Any) -> Any:
    """Join records with those of the same key in other shards, or with the rows of a table (CSV, TSV, JSON lines, Parquet).

    New fields stand behind the old ones; columns go into the field json, or with --as into fields of their own. A field that both have is
    an error unless its bytes are the same; --duplicates first takes that of A, last that of B. A table needs the extra `table`.
    """
    return verb_base.emit(join(a, b, output or "-", fields=columns(pairs) or None, **options), as_json)
