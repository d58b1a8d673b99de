"""Split records into shards of a given number of records or bytes, and run a command on each finished one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from os import PathLike, fspath
from typing import Any, Unpack

import click
import numpy as np
from numpy.typing import NDArray

from tarviz import engines
from tarviz.cli import shard_table, verb_base
from tarviz.cli.shard_map import engine_options
from tarviz.cli.tar_tool_options import Made, Tar, command_shards, inputs_argument, tool_options
from tarviz.model.config import parse_size
from tarviz.model.errors import ChangedError, UsageError
from tarviz.model.types import URL, to_bytes
from tarviz.outputs import Exists, Names, has_counter
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.limits import Limits
from tarviz.outputs.manifest import check_seen
from tarviz.outputs.piped import is_command
from tarviz.outputs.tar_output import TarOutput
from tarviz.read.chosen import resolve
from tarviz.read.keywords import ReadKeywords
from tarviz.read.spans import intake
from tarviz.read.stream import ReadOptions, ReadReport, with_changes
from tarviz.stores import URLs, before_suffix
from tarviz.tools import field_selection, split_pieces
from tarviz.tools.parts import Parts
from tarviz.tools.shard_command import line

DEFAULT_COUNT, DEFAULT_SIZE = 100_000, 10**9
_BYTES = ("on_error", "strict", "key_split", "duplicates", "concatenated")  # options that change what is written


def split(
    urls: URLs = "-",
    output: str | PathLike[str] = "split-{shard:06d}.tar",
    *,
    count: int | None = None,
    size: int | float | str | None = None,
    maxshards: int | None = None,
    start: int = 0,
    command: str | None = None,
    files: str | None = None,
    exists: Exists = "replace",
    engine: str = "local",
    address: str | None = None,
    jobs: int | None = None,
    resume: bool = False,
    ratio: str | Mapping[str, float] = "",
    by: str = "",
    **reading: Unpack[ReadKeywords],
) -> Made:
    """Writes records into shards of at most `count` records and `size` bytes; with neither, 100 000 and 10⁹.

    `size` counts the bytes of the tar file (before packing), end mark included; only a record that is larger by itself makes a larger
    shard, and a record is never cut. `output` holds a counter: `{shard:06d}` or `%06d` from `start`, `{}` from `start` + 1; a bare name
    gets `-000000.tar`. After `maxshards` no more is read. `command` is a line for bash, run on each finished shard: `{shard}`, `{abspath}`,
    `{basename}`, `{dirname}`, `{base}` and `{ext}` are parts of its name, quoted as they need; a plain command gets the name as its last
    argument. `exists`: `"replace"` an output when the new one is complete, or `"error"`.

    On an engine (`"local"` with `jobs`, `"ray"`, at `address`) shards are measured first, many at a time, then outputs are written, those
    that begin in one shard by one task; bytes are the same, but nothing is written where a shard is damaged. Outputs then have a
    manifest beside them, unless there is a `command`; `resume` keeps those that it proves.

    `ratio` (`"train=0.8,val=0.1,test=0.1"`, or a mapping) deals records out to parts by a hash of the key, or of the column or
    expression `by` (`"json.patient"`: records of one patient stay together; one that has none goes by its key), so that no record
    changes its part when shards are added. `{part}` in `output` is its name.
    """
    options = with_changes(ReadOptions(), reading)
    limits = _limits(count, size, maxshards)
    targets = command_shards(urls, files)
    parts = _parts(ratio, by, fspath(output))
    plan = _Plan(targets, _names(fspath(output), parts), limits, start, maxshards, command, exists, options)
    plan.check()
    spread = engine != "local" or address is not None or jobs is not None or resume
    if parts is not None and (spread or maxshards is not None):
        raise UsageError("parts are written by one process, all of them.", hint="Leave out engine, jobs, resume and maxshards.")
    return _OnEngine(plan, engine, address, jobs, resume).write() if spread else _here(plan, parts, by)


def _limits(count: int | None, size: int | float | str | None, shards: int | None) -> Limits:
    """What a shard holds at most."""
    if count is None and size is None:
        count, size = DEFAULT_COUNT, DEFAULT_SIZE
    limit = None if size is None else parse_size(size)
    if any(each is not None and each < 1 for each in (count, limit, shards)):
        raise UsageError("a shard holds at least one record, and there is at least one.")
    return Limits(count, limit)


def _parts(ratio: str | Mapping[str, float], by: str, output: str) -> Parts | None:
    """The parts that records are dealt out to; None where there is no ratio."""
    parts = Parts.of(ratio) if ratio else None
    if (parts is not None) != ("{part}" in output):
        raise UsageError(
            "a ratio and {part} in the names of outputs go together.", hint="--ratio train=0.9,test=0.1 -o '{part}-{shard:06d}.tar'"
        )
    if parts is None and by:
        raise UsageError("a group is for a ratio.", hint="Add --ratio train=0.9,test=0.1.")
    return parts


def _names(output: str, parts: Parts | None) -> list[Names]:
    """The names of outputs: those of each part, or of all."""
    return [Names(pattern(output.replace("{part}", part))) for part in (parts.names if parts is not None else ("",))]


@dataclass(frozen=True)
class _Plan:
    """What is split into what: shards, the names of outputs (of each part), what one holds, their first number and how many there are."""

    urls: list[URL]
    names: list[Names]
    limits: Limits
    start: int
    most: int | None
    command: str | None
    exists: Exists
    options: ReadOptions

    @cached_property
    def inputs(self) -> Inputs:
        return Inputs(self.urls)

    def check(self) -> None:
        """`UsageError` for what is wrong with outputs and command, before anything is read."""
        for names in self.names:
            self.inputs.refuse_any(names, first=self.start, count=self.most)
            if self.exists == "error":
                names.refuse_taken()
        if self.command is not None:
            line(self.command)

    def series(self, names: Names, done: list[Tar], report: ReadReport) -> split_pieces.OutputSeries:
        """The outputs of these names; `done` gets each that is complete, on which the command is run."""

        def finish(number: int, outlet: TarOutput) -> None:
            done.append(Tar(outlet.url, outlet.records, outlet.bytes))
            if self.command is not None:
                split_pieces.run_on(self.command, outlet.url, report, skip=self.options.on_error == "skip")

        form = field_selection.Form(report=report)
        limits, name = (lambda _: self.limits), (lambda number: names.at(self.start + number))
        return split_pieces.OutputSeries(name, limits, self.inputs, self.exists, form, finish, self.most)


def _here(plan: _Plan, parts: Parts | None, group: str) -> Made:
    """By this process, in one pass: the records in the outputs, those of each part in its own."""
    report = ReadReport()
    done = [list[Tar]() for _ in plan.names]
    values = _values(plan.urls, group, plan.options) if group else None
    with (
        verb_base.silent_warnings(),
        verb_base.progress(None, "records") as bar,
        closing(intake(plan.urls, plan.options, report)) as batches,
        ExitStack() as stack,
    ):
        outputs = [plan.series(names, tars, report) for names, tars in zip(plan.names, done, strict=True)]
        for series in reversed(outputs):  # the first is finished first
            stack.enter_context(series)
        for batch in batches:
            keys: list[bytes] = batch.block.keys
            more, runs = True, [(0, 0, len(batch))]
            for part, first, end in runs if parts is None else parts.runs(keys if values is None else _next_groups(keys, values)):
                more = outputs[part].put(batch.part(first, end))
            bar.add(len(batch))
            del batch
            if not more:
                break
    return Made([*chain.from_iterable(done)], report)


def _next_groups(keys: list[bytes], values: Iterator[str | None]) -> list[bytes]:
    """The next values, and keys in the place of those that are missing."""
    found = [key if value is None else to_bytes(value) for key, value in zip(keys, values, strict=False)]
    if len(found) < len(keys):
        raise ChangedError("the shards have more records than when their groups were looked up.", hint="Split them again.")
    return found


def _values(targets: list[URL], group: str, options: ReadOptions) -> Iterator[str | None]:
    """What an expression is, for each record in the order they lie, as text."""
    twice = len(set(targets)) < len(targets)
    if twice or "-" in targets or options.where or options.keys or options.on_error == "skip":
        raise UsageError("a group is looked up for whole shards, each named once.", hint="Choose records first, with tarviz cat --where.")
    from tarviz.table.table import Table

    cut = {name: getattr(options, name) for name in ("key_split", "duplicates", "concatenated")}
    table = Table(targets, **cut)
    found = table.fetched_arrow(f"SELECT shard, n, CAST({table.expression(group)} AS VARCHAR) AS value FROM records")
    place = table.place(found)
    order = np.lexsort((place.n, place.shard))
    return iter(found.column("value").take(order).to_pylist())


@dataclass(frozen=True, slots=True)
class _OnEngine:
    """By tasks on an engine: every shard is measured, the cuts follow from that, then outputs are written."""

    plan: _Plan
    engine: str
    address: str | None
    jobs: int | None
    resume: bool

    def write(self) -> Made:
        plan, [names] = self.plan, self.plan.names
        if own := [url for url in [*plan.urls, names.text] if engines.is_own(url) or is_command(url)]:
            raise engines.unreachable(own[0], "workers")
        if self.resume and plan.command is not None:
            what = "no manifest proves that a command was run on a shard."
            raise UsageError(what, hint="Leave out resume, or run the command afterwards.")
        away = engines.travels(self.engine)
        kept = plan.command is None and (self.resume or away)
        options = resolve(plan.urls, plan.options)
        writing = split_pieces.OutputJob(options, plan.exists, self._recipe() if kept else None, self.resume, plan.command)
        result, versions = Made(), list[dict[str, Any]]()
        with verb_base.silent_warnings():
            with closing(self._sizes(options, versions, result.report)) as sizes:
                parts = list(split_pieces.cut(sizes, plan.limits, plan.most))
            tasks = split_pieces.output_tasks(parts, plan.urls, versions, lambda number: names.at(plan.start + number))
            with closing(self._each("write", "tasks", writing, tasks, lambda found: sum(records for records, _ in found.made))) as results:
                for task, written in results:
                    if kept and away:
                        for name in task.names:
                            check_seen(name)
                    result.outputs += [Tar(name, *each) for name, each in zip(task.names, written.made, strict=True)]
                    result.report.merge(written.report)
        return result

    def _recipe(self) -> dict[str, Any]:
        """What manifests say of the verb."""
        from tarviz import __version__

        reading = self.plan.options
        # What a condition chooses may change without its text changing: tags, a list of keys.
        sure = not (reading.where or reading.keys)
        limits = {"count": self.plan.limits.count, "size": self.plan.limits.size}
        options = {**limits, **{name: getattr(reading, name) for name in _BYTES}} if sure else None
        return {"format": "tar", "verb": "split", "tarviz": __version__, "options": options}

    def _sizes(self, options: ReadOptions, versions: list[dict[str, Any]], report: ReadReport) -> Generator[NDArray[np.int64], None, None]:
        """The sizes of each shard's records, as they are asked for; its version and report go where they belong."""
        job = partial(split_pieces.measure, options)
        with closing(self._each("measure", "shards", job, self.plan.urls, lambda found: len(found.sizes))) as results:
            for _, measured in results:
                versions.append(measured.version)
                report.merge(measured.report)
                yield measured.sizes

    def _each(
        self, label: str, unit: str, job: engines.Job, tasks: Sequence[Any], records: Callable[[Any], int]
    ) -> Generator[tuple[Any, Any], None, None]:
        return shard_table.each_task(
            label, job, tasks, lambda found: (records(found), None), self.engine, self.address, self.jobs, unit=unit
        )


def pattern(text: str) -> str:
    """The names of outputs as `writer.Names` reads them.

    >>> pattern("imagenet_train"), pattern("s-%04d.tar"), pattern("a.tar.gz")
    ('imagenet_train-{shard:06d}.tar', 's-%04d.tar', 'a-{shard:06d}.tar.gz')
    """
    if has_counter(text) or "{" in text or text == "-" or is_command(text):
        return text
    return before_suffix(text, "-{shard:06d}")


@verb_base.verb(
    "split",
    example=[
        "tarviz split -n 25000 -o 's-{shard:04d}.tar' all.tar",
        "tar -cf - --sort=name train | tarviz split -s 1GB -o train",
        "tarviz split --ratio train=0.8,val=0.1,test=0.1 -o '{part}-{shard:06d}.tar' data/",
    ],
)
@click.option("-o", "--output", default="split-{shard:06d}.tar", show_default=True, metavar="PATTERN", help="Names: {shard:06d}, %06d, {}.")
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="Records of a shard at most.")
@click.option("-s", "--size", type=verb_base.size, metavar="BYTES", help="Bytes of a shard at most: 1e9, 1GB, 500MiB.")
@click.option("--maxshards", type=click.IntRange(min=1), metavar="N", help="Stop after this many shards.")
@click.option("--start", type=click.IntRange(min=0), default=0, metavar="N", help="The first shard's number.")
@click.option("-C", "--command", "ready", metavar="COMMAND", help="A line for bash, run on each finished shard.")
@click.option(
    "--ratio",
    default="",
    metavar="A=X,B=Y",
    help="Parts by a hash of the key, as large as their weights say: train=9,test=1 with {part} in -o.",
)
@click.option("--group", "by", default="", metavar="COLUMN", help="With --ratio: by a column, json.patient.")
@inputs_argument
@verb_base.exists_option
@engine_options
@tool_options
def command(urls: tuple[str, ...], ready: str | None, as_json: bool, **options: Any) -> Any:
    """Split records into shards of a given number of records or bytes each, by default 100 000 and 1 GB.

    Bytes are those of the tar file; only a record that is larger by itself makes a larger one. Records are never cut. Each shard gets its
    name when it is complete. In the command of -C {shard}, {abspath}, {basename}, {dirname}, {base} and {ext} (with its dot) stand for
    parts of the name and need no quotes; a plain command without them gets the name as its last argument. With --engine or --jobs shards
    are measured first, then outputs are written, many at a time.
    """
    return verb_base.emit(split(urls, command=ready, **options), as_json)
