"""Find the first record that a condition chooses, and write one of its fields."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any, Unpack

import click

from tarviz import stores
from tarviz.cli import verb_base
from tarviz.cli.tar_tool_options import command_shards, inputs_argument, tool_options
from tarviz.model import plugins
from tarviz.model.config import format_size
from tarviz.model.errors import Fault, UsageError, redact, safe
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL
from tarviz.outputs.inputs import Inputs
from tarviz.read.chosen import Chosen, resolve
from tarviz.read.keywords import CutKeywords
from tarviz.read.stream import ReadOptions, ReadReport, records, with_changes
from tarviz.stores import URLs
from tarviz.tools import field_selection
from tarviz.tools.sample_names import without_sample

PICTURES = "img;image;ppm;pgm;pbm;jpeg;jpg;png"


@dataclass
class FirstRecord(verb_base.Result):
    """The record found, its field's name and payload; `key` is None when no record was."""

    key: str | None = None
    shard: str | None = None
    index: int | None = None
    ext: str | None = None
    payload: bytes = b""
    output: str = "-"
    report: ReadReport = field(default_factory=ReadReport)

    __repr__ = redacted_repr

    @property
    def exit_code(self) -> int:
        return 1 if self.key is None or self.report.warnings or self.report.skipped else 0

    def __str__(self) -> str:
        if self.key is None:
            return f"no such record among {self.report.records:,}"
        name = f"{safe(self.key)}.{safe(self.ext or '')}"
        return f"{safe(redact(self.shard or ''))} record {self.index}: {name}, {format_size(len(self.payload))}"

    def notes(self) -> Iterator[str]:
        faults: list[Fault] = [*self.report.skipped, *self.report.warnings]
        yield from map(str, faults[:20])

    def to_dict(self) -> dict[str, Any]:
        shard = None if self.shard is None else redact(self.shard)
        found = {"key": self.key, "shard": shard, "index": self.index, "ext": self.ext, "size": len(self.payload)}
        return {**found, "read": self.report.to_dict()}


def first(
    urls: URLs = "-",
    output: str | PathLike[str] | None = None,
    *,
    where: str = "",
    keys: str | tuple[str, ...] = (),
    select: str = "",
    field: str = PICTURES,
    files: str | None = None,
    **reading: Unpack[CutKeywords],
) -> FirstRecord:
    """The first record that has the field and that `where` chooses; `select` is a condition too, in which a record may be called `_` as
    in tarproc's tools (`_["cls"] == 3`).

    `field` names alternatives, the first that is there is taken; a record without any is passed over. With `output` its payload is
    written there. What lies after the record is not read. Nothing is found: `key` is None and nothing is written.
    """
    if select:
        where = plugins.load("table", "choice").join_conditions([where, f"({without_sample(select)}) is true"])
    options = with_changes(ReadOptions(), {**reading, "where": where, "keys": keys})
    chosen = field_selection.picks(field)
    if len(chosen) != 1:
        raise UsageError(f"{field!r} names {len(chosen)} fields.", hint='Alternatives are joined by ";": "jpg;png".')
    targets = command_shards(urls, files)
    if output is not None:
        Inputs(targets).refuse(fspath(output))
    options = _stream_condition(targets, options)
    found = FirstRecord(output="-" if output is None else fspath(output))
    with verb_base.silent_warnings(), verb_base.progress(None, "records") as bar, closing(records(targets, options=options)) as run:
        found.report = run.report
        for record in run:
            ext = next((ext for ext in chosen[0].exts if ext in record), None)
            if ext is not None:
                found.key, found.shard, found.index = record.key, record.shard, record.index
                found.ext, found.payload = ext, bytes(record[ext])
                break
            bar.add()
    if isinstance(options.where, Chosen) and (condition := options.where.condition) is not None:
        found.report.records = condition.seen
        if found.key is None and condition.lacking and "-" not in targets:
            resolve(targets, replace(options, where=options.where.where))  # says what is near
    if output is not None and found.key is not None and not (found.output == "-" and _on_terminal(found.payload)):
        stores.write(found.output, found.payload)
    return found


def _stream_condition(urls: list[URL], options: ReadOptions) -> ReadOptions:
    """The options with a condition that is asked of records while they come, so that no more is read than must be; the table is asked
    where the condition needs all of them."""
    if not options.where or options.keys or options.group == "shard":
        return options
    choice = plugins.load("table", "choice")
    try:
        return replace(options, where=choice.choose_streamed(urls, str(options.where)))
    except UsageError:
        return resolve(urls, options)


def _on_terminal(payload: bytes) -> bool:
    """Show a text where standard output is a terminal; a terminal gets no other bytes."""
    try:
        if sys.stdout is None or not sys.stdout.isatty() or b"\0" in payload:
            return False
        text = payload.decode()
    except (UnicodeDecodeError, ValueError):
        return False
    sys.stdout.write("\n".join(map(safe, text.splitlines())) + "\n")
    return True


@verb_base.verb(
    "first", example=["tarviz first -S 'cls == 3' -f jpg data.tar > three.jpg", "tarviz first -S 'json.w > 300' -o a.png data.tar"]
)
@verb_base.output_option
@click.option("-S", "--select", default="", metavar="CONDITION", help='Like --where; `_["cls"] == 3` is cls = 3.')
@click.option("-f", "--field", default=PICTURES, show_default=True, metavar="A;B", help="The field to write, or alternatives.")
@inputs_argument
@tool_options
def command(urls: tuple[str, ...], output: str | None, as_json: bool, **options: Any) -> Any:
    """Write a field of the first record that a condition chooses; its name goes to standard error.

    Records without the field are passed over. Exit code 1: there is no such record.
    """
    return verb_base.emit(first(urls, output or "-", **options), as_json, err=True)
