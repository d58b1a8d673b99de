"""Sort the records of shards by key or by a field, or shuffle them all; larger than memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias, Unpack, get_args

import click
import numpy as np
from numpy.typing import NDArray

from tarviz.cli import verb_base
from tarviz.cli.shard_map import MappedKeywords, engine_options, shard_to_shard
from tarviz.cli.tar_tool_options import Made, Tar, command_shards, inputs_argument, tool_options
from tarviz.formats import sniff
from tarviz.formats.field_path import field_path
from tarviz.model.errors import DataError, TarvizError, UsageError
from tarviz.model.types import URL, to_text
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.tar_output import TarOutput
from tarviz.read.chosen import Chosen, resolve
from tarviz.read.spans import Batch, plain, shard_batches
from tarviz.read.stream import ReadOptions, ReadReport, with_changes
from tarviz.stores import URLs
from tarviz.tools import sort_table
from tarviz.tools.field_selection import merge_warning
from tarviz.tools.record_faults import settle
from tarviz.tools.spool import spool_shard

SortAs: TypeAlias = Literal["text", "int", "float"]
_LONGEST = 64 << 10  # bytes of a text that is sorted by
_KEY = ("key", "__key__")


@shard_to_shard()
def sort(
    urls: URLs = "-",
    output: str | PathLike[str] = "-",
    *,
    by: str = "key",
    to: SortAs = "text",
    shuffle: bool = False,
    seed: int = 0,
    reverse: bool = False,
    tmp: str | PathLike[str] | None = None,
    files: str | None = None,
    **reading: Unpack[MappedKeywords],
) -> Made:
    """Writes all records of shards in order: by key, by a field (`cls`) or a path into one (`json.w`), compared as bytes, `int` or `float`.

    The sort is stable and drops nothing: records of equal rank keep the order they had. `shuffle` gives every record a place drawn from its
    key and `seed`, whatever the order before. Members of a record that stood apart come together. Headers are read once, payloads are
    copied once; memory holds about 60 bytes a record. What is not a plain file here (a pipe, a packed or a remote shard) goes through a
    file in the folder `tmp`. A record whose field is missing or is not a number is an error of code E_SCHEMA, or is left out with
    `on_error="skip"`.

    An output with a counter (`x-{}.tar`) sorts each shard by itself, `jobs` at a time, on the engine (`"local"`, `"ray"`) at `address`;
    `resume` keeps outputs that their manifest proves.
    """
    options = with_changes(ReadOptions(), reading)
    report = ReadReport()
    if shuffle and (by not in _KEY or to != "text" or reverse):
        raise UsageError("a shuffle has no other order: leave out by, to and reverse.")
    ranks = None if by in _KEY and to == "text" else _SortValues(by, to, options.on_error == "skip", report)
    targets = command_shards(urls, files)
    options = resolve(targets, options)
    with verb_base.silent_warnings(), tempfile.TemporaryDirectory(prefix="tarviz-sort-", dir=tmp) as folder:
        table = sort_table.SortTable()
        with verb_base.progress(None, "records", label="reading headers") as bar:
            for number, url in enumerate(targets):
                _read(url, os.path.join(folder, str(number)), table, ranks, options, report, bar.add)
        values = sort_table.mix(table.hash, seed) if shuffle else table.keys if ranks is None else ranks.values()
        order = sort_table.ascending(values, reverse=reverse)
        del values, ranks
        groups = table.apart()
        parts = {group[0]: group[1:] for group in groups}
        if parts:
            order = order[~np.isin(order, np.concatenate([group[1:] for group in groups]))]
        keys = table.keys[order]
        for at in np.flatnonzero(keys[1:] == keys[:-1]).tolist():
            report.add(merge_warning(fspath(output), bytes(keys[at])))
        del keys
        with TarOutput(fspath(output), inputs=Inputs(targets)) as outlet, verb_base.progress(len(order), "records", label="copying") as bar:
            for sources, begin, end, count in table.runs(order, parts):
                outlet.pick(sources, begin, end)
                bar.add(count)
    return Made([Tar(fspath(output), len(order), outlet.bytes)], report)


def _read(
    url: URL,
    spool: str,
    table: sort_table.SortTable,
    ranks: _SortValues | None,
    options: ReadOptions,
    report: ReadReport,
    seen: Callable[[float], None],
) -> None:
    """The records of a shard into the table; faults name the shard, not the file it went through."""
    there = ReadReport()
    source = plain(url)
    try:
        if source is None:
            source = spool_shard(url, spool, options, there)
            if plain(source.url) is None and os.path.getsize(spool):  # else it would be inflated once more, and its places be wrong
                with open(spool, "rb") as file:
                    raise sniff.not_a_tar(file.read(512), url)
        if isinstance(options.where, Chosen) and source.url != url:
            options = replace(options, where=options.where.at_place(url, source.url))
        with closing(shard_batches(source.url, options, there, returning=True)) as batches:
            for batch in batches:
                keep = ranks.add(batch) if ranks is not None else None
                table.add(source, batch, keep)
                seen(len(batch))
                del batch
    except DataError as error:
        error.shard = url
        if options.on_error == "raise":
            raise
        there.add(error.fault, skipped=True)
    except TarvizError as error:
        error.shard = url if error.shard == spool else error.shard
        raise
    finally:
        report.records += there.records
        report.bytes += there.bytes
        report.shards += 1
        for fault in there.warnings:
            report.add(replace(fault, shard=url))
        for fault in there.skipped:
            report.add(replace(fault, shard=url), skipped=True)


class _SortValues:
    """What records are sorted by, collected batch by batch."""

    def __init__(self, by: str, to: SortAs, skip: bool, report: ReadReport) -> None:
        self.by, self.to, self.skip, self.report = by, to, skip, report
        self.path = field_path(by)
        self._dtype: Any = {"text": "S8", "int": np.int64, "float": np.float64}[to]
        self._column = sort_table.GrowingArray(self._dtype)

    def add(self, batch: Batch) -> NDArray[np.bool_]:
        """Which records of the batch have a value; theirs are kept."""
        keep = np.ones(len(batch), np.bool_)
        found = []
        for record in range(len(batch)):
            try:
                found.append(self._value(batch, record))
            except (ValueError, OverflowError) as error:
                keep[record] = False
                fault = DataError(f"{error}.", code="E_SCHEMA", hint="--on-error skip leaves such records out.")
                settle(fault, batch, record, self.report, skip=self.skip)
        self._column.extend(sort_table.texts(found) if self.to == "text" else np.array(found, self._dtype))
        return keep

    def _value(self, batch: Batch, record: int) -> Any:
        fields = batch.fields(record)
        if self.by in fields:
            payload: Any = bytes(batch.payload(fields[self.by])[: _LONGEST + 1])
        elif self.by in _KEY:
            payload = batch.block.keys[record]
        else:
            needed = {ext: bytes(batch.payload(row)) for ext, row in fields.items() if ext in self.path.needs}
            payload = self.path.value({"__key__": to_text(batch.block.keys[record]), **needed})
        if payload is None:
            raise ValueError(f"there is no {self.by} in the record; it has {' '.join(fields)}")
        if self.to == "text":
            payload = payload if isinstance(payload, bytes) else str(payload).encode("utf-8", "surrogateescape")
            if len(payload) > _LONGEST:
                raise ValueError(f"{self.by} has more than {_LONGEST} bytes, too many to sort by")
            return payload
        if isinstance(payload, bytes) and len(payload) > 400:
            raise ValueError(f"{self.by} is not a number")
        try:
            value = int(payload) if self.to == "int" else float(payload)
            return np.int64(value) if self.to == "int" else value
        except (ValueError, TypeError, OverflowError):
            raise ValueError(
                f"{self.by} is {payload[:40] if isinstance(payload, bytes) else payload!r}, which is not of the type {self.to}"
            ) from None

    def values(self) -> NDArray[Any]:
        """One value a record, in the table's order."""
        return self._column.array()


@verb_base.verb("sort", example=["tarviz sort --by cls --as int in.tar -o out.tar", "tarviz sort --shuffle --seed 3 in.tar > out.tar"])
@verb_base.output_option
@click.option("-k", "--by", default="key", show_default=True, metavar="FIELD", help="key, a field (cls), or a path into one (json.w).")
@verb_base.choice("as", get_args(SortAs), "How values compare.", "to")
@click.option("--shuffle", is_flag=True, help="A random order, drawn from each key and the seed.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the shuffle.")
@click.option("-r", "--reverse", is_flag=True, help="The largest first.")
@click.option(
    "--tmp", type=click.Path(file_okay=False, exists=True), metavar="DIR", help="Where a pipe or a packed shard is kept meanwhile."
)
@inputs_argument
@engine_options
@tool_options
def command(output: str | None, as_json: bool, **options: Any) -> Any:
    """Sort the records of shards by key or by a field, or shuffle them.

    Nothing is dropped, equal ranks keep their order, and members of one record that stood apart come together. Only headers (and the
    field sorted by) are held in memory: about 60 bytes a record.
    """
    return verb_base.emit(sort(output=output or "-", **options), as_json)
