"""Run a command, a script or a chain of ops on each record, in parallel, and write what comes of it."""

from __future__ import annotations

import os
import queue
import shlex
import shutil
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any, NamedTuple, TypeAlias

import click
import numpy as np

from tarviz.cli import verb_base
from tarviz.cli.tar_tool_options import Made, Tar, inputs_argument, opened, tool_options
from tarviz.model import config
from tarviz.model.errors import DataError, SchemaError, UsageError, safe
from tarviz.model.types import to_bytes, to_text
from tarviz.read.spans import Batch, intake, pieces, ranges
from tarviz.read.stream import ReadOptions, ReadReport, with_changes
from tarviz.stores import URLs
from tarviz.tools import field_selection
from tarviz.tools.process import ended_by_signals
from tarviz.tools.record_shell import Given, Left, Worker, check_names, checked_base
from tarviz.write.inputs import Inputs
from tarviz.write.tar_output import Outlet, Piece, Range

_AHEAD = 4  # records waiting for each worker
Work: TypeAlias = Callable[[Batch, int], tuple[list[Left], list[str]]]


class Done(NamedTuple):
    """A record and what came of it."""

    batch: Batch
    record: int
    future: Future[tuple[list[Left], list[str]]]


@dataclass
class Processed(Made):
    """The tar written. `others` counts the names of files that commands left and that are no fields: those are not written."""

    others: Counter[str] = field(default_factory=Counter)

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.others:
            names = ", ".join(f"{safe(name)} ×{count}" for name, count in self.others.most_common(3))
            yield f"Commands left {sum(self.others.values()):,} files that are no fields and are not written: {names}."

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"others": dict(self.others.most_common(100))}


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
    base: str = "sample",
    any_key: bool = False,
    timeout: float | None = None,
    seed: int = 0,
    epoch: int = 0,
    tmp: str | PathLike[str] | None = None,
    files: str | None = None,
    **reading: Any,
) -> Processed:
    """Runs something on each record and writes the records it leaves; one of `command`, `script`, `op`.

    `command` is a line for bash (sh where there is none). It runs in a private folder in which every field is a file `sample.<ext>`;
    the key is in `TARVIZ_KEY`. Files it changes, adds or removes are fields changed, added or removed; a file `sample-7.png` makes
    a further record, its key followed by `-7`; with no file left the record is gone. What it prints goes to standard error. `script`
    is a file, run by itself or by `interpreter`. `fields` limits which fields become files; the others pass.

    `op` is chain text or ops (`"decode(jpg)|resize(jpg, (256, 256))|encode(jpg, quality=90)"`): the same without any process; random
    ops draw from `seed` and `epoch`. `workers` records are worked on at a time (0: one a processor; None: one, for ops as configured).
    The order of records stays unless `ordered` is false. A record that fails is an error, or with `on_error="skip"` is left out and
    counted.
    """
    options = with_changes(ReadOptions(), reading)
    if sum(each is not None for each in (command, script, op)) != 1:
        raise UsageError("one of command, script and op says what to do.")
    number = config.options(workers=workers).workers if op is not None else 1 if workers is None else workers
    number = number or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    report = ReadReport()
    targets = opened([fspath(url) for url in ([urls] if isinstance(urls, str | PathLike) else urls)], files)
    chosen = None if fields is None else frozenset(ext for pick in field_selection.picks(fields.replace(",", " ")) for ext in pick.exts)
    tool: _Commands | _Chain
    if op is not None:
        tool = _Chain(op, seed, epoch)
    else:
        line = command if command is not None else _script(fspath(script or ""), interpreter)
        tool = _Commands(line, checked_base(base), chosen, any_key, timeout, tmp)
    writer = _Writer(report, skip=options.on_error == "skip")
    with (
        verb_base.silent_warnings(),
        tool,
        Outlet(fspath(output), inputs=Inputs(targets)) as outlet,
        verb_base.progress(None, "records") as bar,
        closing(intake(targets, options, report)) as batches,
        closing(_results(batches, tool.work, number, ordered, tool.kill)) as results,
    ):
        for done in results:
            writer.put(outlet, done)
            bar.add()
    return Processed([Tar(fspath(output), outlet.records, outlet.bytes)], report, writer.others)


def _script(path: str, interpreter: str | None) -> str:
    """The line that runs a script file, whatever folder it runs in."""
    if not os.path.isfile(path):
        raise UsageError(f"there is no script {path!r}.")
    full = shlex.quote(os.path.abspath(path))
    if interpreter:
        return f"exec {' '.join(map(shlex.quote, shlex.split(interpreter)))} {full}"
    return f"exec {full}" if os.access(path, os.X_OK) else f". {full}"


def _results(batches: Iterator[Batch], work: Work, workers: int, ordered: bool, kill: Callable[[], None]) -> Generator[Done, None, None]:
    """Each record with its future, done: in order, or as they come."""
    waiting: deque[Done] = deque()
    ready: queue.SimpleQueue[Done] = queue.SimpleQueue()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="proc")
    running = 0
    try:
        for batch in batches:
            for record in range(len(batch)):
                done = Done(batch, record, pool.submit(work, batch, record))
                running += 1
                if ordered:
                    waiting.append(done)
                else:
                    done.future.add_done_callback(lambda _, done=done: ready.put(done))  # type: ignore[misc]
                if running >= workers * _AHEAD:
                    yield _next(waiting, ready, ordered)
                    running -= 1
            del batch
        for _ in range(running):
            yield _next(waiting, ready, ordered)
    except BaseException:
        kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _next(waiting: deque[Done], ready: queue.SimpleQueue[Done], ordered: bool) -> Done:
    if not ordered:
        return ready.get()
    done = waiting.popleft()
    done.future.exception()  # waits
    return done


class _Commands:
    """Commands in private folders: one folder and one shell for each thread."""

    def __init__(
        self, line: str, base: str, fields: frozenset[str] | None, any_key: bool, timeout: float | None, tmp: str | PathLike[str] | None
    ) -> None:
        self.line, self.base, self.fields, self.any_key, self.timeout = line, base, fields, any_key, timeout
        self.limit = config.options().max_member_bytes
        self.tmp = tmp
        self._local = threading.local()
        self._workers: list[Worker] = []
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="tarviz-proc-", dir=self.tmp)  # mode 0700

    def __exit__(self, *_: object) -> None:
        self.kill()
        for worker in self._workers:
            worker.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        for worker in list(self._workers):
            worker.kill()

    def _worker(self) -> Worker:
        worker: Worker | None = getattr(self._local, "worker", None)
        if worker is None:
            with self._lock:
                folder = os.path.join(self._folder, str(len(self._workers)))
                worker = self._local.worker = Worker(folder, self.line, self.base, self.limit, self.timeout)
                self._workers.append(worker)
        return worker

    def work(self, batch: Batch, record: int) -> tuple[list[Left], list[str]]:
        rows = [row for row in batch.rows(record) if self.fields is None or batch.ext(row) in self.fields]
        key = batch.block.keys[record]
        check_names(key, [batch.ext(row) for row in rows], any_key=self.any_key)
        left, others = self._worker().run(key, [Given(batch.ext(row), batch.payload(row)) for row in rows])
        first = int(batch.block.rows[record])
        for each in left:
            each.fields = [(ext, value if isinstance(value, bytes) else rows[value] - first) for ext, value in each.fields]
        passed = [(batch.ext(row), row - first) for row in batch.rows(record) if row not in rows]
        if passed:
            if not left or left[0].suffix:
                left.insert(0, Left(b"", []))
            left[0].fields = sorted([*left[0].fields, *passed], key=_place)
        return left, others


def _place(field: tuple[str, bytes | int]) -> int:
    """Fields that were there stand in their order, new ones behind them."""
    return field[1] if isinstance(field[1], int) else 1 << 30


class _Chain:
    """A chain of ops instead of a command."""

    def __init__(self, op: Any, seed: int, epoch: int) -> None:
        from tarviz.ops import Chain, draws

        self.chain = Chain.of(op)
        self._draws, self.seed, self.epoch = draws, seed, epoch

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        return

    def kill(self) -> None:
        return

    def work(self, batch: Batch, record: int) -> tuple[list[Left], list[str]]:
        block, rows = batch.block, batch.rows(record)
        given = {batch.ext(row): batch.payload(row) for row in rows}
        key = block.keys[record]
        facts = {"__key__": to_text(key), "__shard__": block.shard, "__index__": block.first + record}
        drawn = self._draws(self.chain, [key], self.seed, self.epoch)[0] if self.chain.draws else None
        made = self.chain.run({**facts, **given}, drawn)
        places = {id(payload): (ext, at) for at, (ext, payload) in enumerate(given.items())}
        fields: list[tuple[str, bytes | int]] = []
        for ext, value in made.items():
            if not ext.startswith("__"):
                same = places.get(id(value))
                fields.append((ext, same[1] if same is not None and same[0] == ext else _payload(ext, value)))
        return [Left(b"", fields)], []


def _payload(ext: str, value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return to_bytes(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value).encode()
    what = type(value).__name__
    raise DataError(
        f"the field {ext!r} is a {what} behind the chain, no bytes.", code="E_SCHEMA", hint=f"End the chain with encode({ext})."
    )


class _Writer:
    """Writes what was made of records, and counts what failed."""

    def __init__(self, report: ReadReport, *, skip: bool) -> None:
        self.report, self.skip = report, skip
        self.form = field_selection.Form(report=report)
        self.others: Counter[str] = Counter()

    def put(self, outlet: Outlet, done: Done) -> None:
        block, record = done.batch.block, done.record
        try:
            left, others = done.future.result()
            written = [self._pieces(done.batch, record, each) for each in left]
        except (DataError, SchemaError) as error:
            place = int(block.members.start[int(block.rows[record])])
            error.at(shard=block.shard, key=to_text(block.keys[record]), offset=place, records_before=block.first + record)
            if not self.skip:
                raise
            self.report.add(error.fault, skipped=True)
            return
        self.others.update(others)
        for key, made in written:
            if made:
                self.form.beside(done.batch, record, key)
                outlet.write(made)
                outlet.records += 1

    def _pieces(self, batch: Batch, record: int, left: Left) -> tuple[bytes, list[Piece]]:
        block = batch.block
        first, stop = int(block.rows[record]), int(block.rows[record + 1])
        key = block.keys[record] + left.suffix
        if not left.suffix and [value for _, value in left.fields] == list(range(stop - first)):  # nothing was touched
            return key, _raw(batch, first, stop)
        rows = {batch.ext(row): row for row in range(first, stop)}
        made: list[Piece] = []
        for ext, value in left.fields:
            if isinstance(value, int) and not left.suffix:
                made += _raw(batch, first + value, first + value + 1)
                continue
            row = rows.get(ext, first)
            name = field_selection.extension(batch, record, row) if ext in rows else ext
            payload = value if isinstance(value, bytes) else bytes(batch.payload(first + value))
            made += [field_selection.header(batch, row, key, name, len(payload)), payload, bytes(-len(payload) % 512)]
        return key, made


def _raw(batch: Batch, first: int, stop: int) -> list[Piece]:
    """The members `first`…`stop` as they are."""
    begin, end, _ = pieces(batch, np.arange(first, stop))
    spans = zip(*(each.tolist() for each in ranges(begin, end)), strict=True)
    return [batch.raw(a, b) if batch.source is None else Range(batch.source, a, b) for a, b in spans]


@verb_base.verb(
    "proc",
    example=[
        "tarviz proc -j 4 -c 'gm mogrify -resize 256x256 *.jpg' in.tar -o out.tar",
        "tarviz proc -j 4 --op 'decode(jpg)|resize(jpg, (256, 256))|encode(jpg, quality=90)' in.tar -o out.tar",
    ],
)
@inputs_argument
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
    help="Records at a time; 0: one a processor. [default: 1; 0 with --op]",
)
@click.option("--ordered/--unordered", default=True, show_default=True, help="Whether records keep their order.")
@click.option("-f", "--fields", metavar="LIST", help="Fields that become files; the others pass as they are.")
@click.option("-b", "--base", default="sample", show_default=True, metavar="NAME", help="Base name of the files.")
@click.option("--any-key", is_flag=True, help="Run on keys that would lead out of a folder, too.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Kill a command that takes longer.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of random ops.")
@click.option("--tmp", type=click.Path(file_okay=False, exists=True), metavar="DIR", help="Where the private folders are made.")
@click.option("-T", "--files", metavar="FILE", help="Read the names of shards from a list, one a line.")
@tool_options
def command(urls: tuple[str, ...], output: str | None, line: str | None, as_json: bool, **options: Any) -> Any:
    """Run a command, a script or a chain of ops on each record; write what comes of it.

    The command runs in a private folder with the fields as files sample.<ext> and the key in TARVIZ_KEY. Files changed, added or
    removed are fields changed, added or removed; sample-7.png becomes a further record, key-7. What it prints goes to standard error.
    A command that fails ends the work (exit code 2), or is counted with --on-error skip (exit code 1).
    """
    with ended_by_signals():
        result = proc(urls, output or "-", command=line, **options)
    return verb_base.emit(result, as_json, err=result.to_stdout)
