"""Run a command, a script or a chain of ops on each record, in parallel, and write what comes of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any, NamedTuple, Unpack, get_args

import click

from tarviz.cli import verb_base
from tarviz.cli.shard_map import Mapped, MappedKeywords, engine_options, shard_to_shard
from tarviz.cli.tar_tool_options import Made, Tar, command_shards, inputs_argument, tool_options
from tarviz.model import config
from tarviz.model.errors import DataError, SchemaError, UsageError, safe
from tarviz.model.processors import processors
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.process import ended_by_signals
from tarviz.outputs.tar_output import Piece, TarOutput
from tarviz.read.spans import Batch, intake
from tarviz.read.stream import ReadOptions, ReadReport, with_changes
from tarviz.stores import URLs
from tarviz.tools import field_selection
from tarviz.tools.record_faults import place_error, settle
from tarviz.tools.record_files import Collecting
from tarviz.tools.record_shell import Came, Left
from tarviz.tools.record_work import ChainWork, Commands, FieldFiles, Work, script_line
from tarviz.tools.text_records import KEY, Mode, tar_of

_AHEAD = 4  # records waiting for each worker


class RecordResult(NamedTuple):
    """A record and what came of it."""

    batch: Batch
    record: int
    future: Future[Came]


@dataclass
class Processed(Made):
    """The tar written. `others` counts the names of files that commands left and that are not fields: those are not written."""

    others: Counter[str] = field(default_factory=Counter)

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.others:
            names = ", ".join(f"{safe(name)} ×{count}" for name, count in self.others.most_common(3))
            yield f"Commands left {sum(self.others.values()):,} files that are not fields and are not written: {names}."

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"others": dict(self.others.most_common(100))}


def _of_shards(mapped: Mapped, _: str) -> Processed:
    return Processed(mapped.outputs, mapped.report, sum((made.others for made in mapped.made), Counter()))


@shard_to_shard(_of_shards)
def proc(
    urls: URLs = "-",
    output: str | PathLike[str] = "-",
    *,
    command: str | None = None,
    script: str | PathLike[str] | None = None,
    interpreter: str | None = None,
    op: Any = None,
    workers: int | None = None,
    ordered: bool = True,
    fields: str | None = None,
    require: bool = False,
    only_fields: bool = False,
    base: str = "sample",
    others: bool = False,
    separator: str = "",
    include: str | None = None,
    exclude: str | None = None,
    add_log: str | None = None,
    keep_failed: bool = False,
    count: int | None = None,
    any_key: bool = False,
    mode: Mode = "tar",
    timeout: float | None = None,
    seed: int = 0,
    epoch: int = 0,
    tmp: str | PathLike[str] | None = None,
    files: str | None = None,
    **reading: Unpack[MappedKeywords],
) -> Processed:
    """Runs something on each record and writes the records it leaves; one of `command`, `script`, `op`.

    `command` is a line for bash (sh where there is none). It runs in a private folder in which every field is a file `sample.<ext>`;
    the key is in `TARVIZ_KEY`. Files it changes, adds or removes are fields changed, added or removed; a file `sample-7.png` makes
    a further record, its key followed by `separator` and `-7`; with `others` so does `note.txt`, else files not named after `base` are
    left behind. With no file left the record is gone. `include` and `exclude` are regular expressions for names of files to write. What
    the command prints goes to standard error, or with `add_log` into a field of that extension. `script` is a file, run by itself or by
    `interpreter`. `fields` limits which fields become files; the others pass, or with `only_fields` do not. `require`: a record without
    one of them is an error.

    `op` is chain text or ops (`"decode(jpg)|resize(jpg, (256, 256))|encode(jpg, quality=90)"`): the same without any process; random
    ops draw from `seed` and `epoch`. `workers` records are worked on at a time (0: one per processor; None: one, for ops as configured).
    The order of records stays unless `ordered` is false. A record that fails is an error, or with `on_error="skip"` is left out and
    counted; with `keep_failed` it is written with whatever the command left, with a warning. After `count` records no more is read.

    `mode` says what the inputs are: tars, or texts of which each of the `lines` or `pages` is a record with the field `txt` (the key counts
    them from 0), or each of the `keys` one without fields, its key in the file `sample.__key__`.

    An output with a counter (`x-{}.tar`) makes a tar of each shard by itself, `jobs` at a time, on the engine (`"local"`, `"ray"`) at
    `address`; `resume` keeps outputs that their manifest proves.
    """
    options = with_changes(ReadOptions(), reading)
    if sum(each is not None for each in (command, script, op)) != 1:
        raise UsageError("one of command, script and op says what to do.")
    number = config.options(workers=workers).workers if op is not None else 1 if workers is None else workers
    number = number or processors()
    report = ReadReport()
    tool: Commands | ChainWork
    if op is not None:
        tool = ChainWork(op, seed, epoch)
    else:
        line = command if command is not None else script_line(fspath(script or ""), interpreter)
        left_out = exclude if mode != "keys" else rf"^{re.escape(base)}\.{KEY}$" + (f"|{exclude}" if exclude else "")
        collecting = Collecting(base, others, separator, include, left_out, add_log, keep_failed)
        files_of = None if fields is None else FieldFiles(field_selection.picks(fields.replace(",", " ")), require, only_fields)
        tool = Commands(line, collecting, files_of, any_key=any_key, timeout=timeout, tmp=tmp)
    given = command_shards(urls, files)
    writer = _Writer(report, skip=options.on_error == "skip")
    with (
        verb_base.silent_warnings(),
        tar_of(given, mode, tmp) as targets,
        tool,
        TarOutput(fspath(output), inputs=Inputs(given)) as outlet,
        verb_base.progress(None, "records") as bar,
        closing(intake(targets, options, report, stop=count)) as batches,
        closing(_results(batches, tool.work, number, ordered, tool.kill)) as results,
    ):
        for done in results:
            writer.put(outlet, done)
            bar.add()
    return Processed([Tar(fspath(output), outlet.records, outlet.bytes)], report, writer.others)


def _results(
    batches: Iterator[Batch], work: Work, workers: int, ordered: bool, kill: Callable[[], None]
) -> Generator[RecordResult, None, None]:
    """Each record with its future, in order, or as they are done."""
    waiting: dict[Future[Came], RecordResult] = {}
    pool = ThreadPoolExecutor(workers, thread_name_prefix="proc")

    def take() -> RecordResult:
        return waiting.pop(next(iter(waiting) if ordered else as_completed(waiting)))

    try:
        for batch in batches:
            for record in range(len(batch)):
                future = pool.submit(work, batch, record)
                waiting[future] = RecordResult(batch, record, future)
                if len(waiting) >= workers * _AHEAD:
                    yield take()
            del batch
        while waiting:
            yield take()
    except BaseException:
        kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Writer:
    """Writes what was made of records, and counts what failed."""

    def __init__(self, report: ReadReport, *, skip: bool) -> None:
        self.report, self.skip = report, skip
        self.form = field_selection.Form(report=report)
        self.others: Counter[str] = Counter()

    def put(self, outlet: TarOutput, done: RecordResult) -> None:
        record = done.record
        try:
            came = done.future.result()
            written = [self._pieces(done.batch, record, each) for each in came.left]
        except (DataError, SchemaError) as error:
            settle(error, done.batch, record, self.report, skip=self.skip)
            return
        if came.failure is not None:
            self.report.add(place_error(came.failure, done.batch, record).fault)
        self.others.update(came.others)
        for key, made in written:
            if made:
                self.form.beside(done.batch, record, key)
                outlet.write(made)
                outlet.records += 1

    def _pieces(self, batch: Batch, record: int, left: Left) -> tuple[bytes, list[Piece]]:
        block = batch.block
        first, stop = int(block.rows[record]), int(block.rows[record + 1])
        key = block.keys[record] + left.suffix
        if [value for _, value in left.fields] == list(range(stop - first)):  # nothing was touched
            return key, field_selection.keep_members(batch, range(first, stop))
        rows = {batch.ext(row): row for row in range(first, stop)}
        made: list[Piece] = []
        for ext, value in left.fields:
            if isinstance(value, int):  # untouched, so it has its name
                made += field_selection.keep_members(batch, [first + value])
                continue
            row = rows.get(ext, first)
            name = field_selection.extension(batch, record, row) if ext in rows else ext
            made += [field_selection.header(batch, row, key, name, len(value)), value, bytes(-len(value) % 512)]
        return key, made


@verb_base.verb(
    "proc",
    example=[
        "tarviz proc -j 4 -c 'gm mogrify -resize 256x256 *.jpg' in.tar -o out.tar",
        "tarviz proc -j 4 --op 'decode(jpg)|resize(jpg, (256, 256))|encode(jpg, quality=90)' in.tar -o out.tar",
    ],
)
@verb_base.output_option
@click.option("-c", "--command", "line", metavar="COMMAND", help="A line for bash, run once for each record.")
@click.option("-s", "--script", type=click.Path(dir_okay=False, exists=True), metavar="FILE", help="A script, run once for each record.")
@click.option("--interpreter", metavar="PROGRAM", help="What runs the script. [default: the script itself, or bash]")
@click.option("--op", metavar="CHAIN", help="A chain of ops, run without any process; tarviz compare shows what it does.")
@click.option(
    "-j",
    "-p",
    "--workers",
    type=click.IntRange(min=0),
    metavar="N",
    help="Records at a time; 0: one per processor. [default: 1; 0 with --op]",
)
@click.option("--ordered/--unordered", default=True, show_default=True, help="Whether records keep their order.")
@click.option("-f", "--fields", metavar="LIST", help="Fields that become files; the others pass as they are.")
@click.option("--only-fields", is_flag=True, help="The others do not pass.")
@click.option("--require", is_flag=True, help="A record without one of these fields is an error.")
@click.option("-b", "--base", default="sample", show_default=True, metavar="NAME", help="Base name of the files.")
@click.option("--others", is_flag=True, help="Files of another base name become records too, instead of being left behind.")
@click.option("--separator", default="", metavar="TEXT", help="What separates the key from the rest of a further record's name.")
@click.option("--include", metavar="REGEX", help="Files to write, by their names.")
@click.option("--exclude", metavar="REGEX", help="Files not to write.")
@click.option("--add-log", metavar="EXT", help="Keep what the command prints as a field of this extension.")
@click.option("--keep-failed", is_flag=True, help="Write what a command that fails leaves, with a warning (exit code 1).")
@click.option("-n", "--count", type=click.IntRange(min=0), metavar="N", help="Records to read at most.")
@click.option("--any-key", is_flag=True, help="Run on keys that would lead out of a folder, too.")
@verb_base.choice("mode", get_args(Mode), "What the inputs are: tars, or texts, a record for each line, page (^L) or key.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Kill a command that takes longer.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of random ops.")
@click.option("--tmp", type=click.Path(file_okay=False, exists=True), metavar="DIR", help="Where the private folders are made.")
@inputs_argument
@engine_options
@tool_options
def command(urls: tuple[str, ...], output: str | None, line: str | None, as_json: bool, **options: Any) -> Any:
    """Run a command, a script or a chain of ops on each record; write what comes of it.

    The command runs in a private folder with the fields as files sample.<ext> and the key in TARVIZ_KEY. Files changed, added or
    removed are fields changed, added or removed; sample-7.png becomes a further record, key-7. What it prints goes to standard error.
    A command that fails ends the work (exit code 2), or is left out and counted with --on-error skip (exit code 1), or kept as it is with
    --keep-failed (exit code 1).
    """
    with ended_by_signals():
        return verb_base.emit(proc(urls, output or "-", command=line, **options), as_json)
