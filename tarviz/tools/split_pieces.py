"""Splitting on an engine: shards are measured each by itself, the cuts follow from that, and outputs are written many at a time.

Every shard is read twice, and a third time in part: an output that begins in it may end in the one after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tarviz.engines import Tick
from tarviz.model.errors import ChangedError, Fault, StoreError, redact
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL
from tarviz.outputs import Exists
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.limits import Limits
from tarviz.outputs.manifest import find_kept, prove
from tarviz.outputs.tar_output import TarOutput
from tarviz.read.chosen import version
from tarviz.read.spans import Batch, intake, pieces
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.stores import Whole
from tarviz.tools.field_selection import Form
from tarviz.tools.shard_command import run_for

Ints = NDArray[np.int64]


def sizes(batch: Batch) -> Ints:
    """Bytes of tar that each record takes."""
    begin, end, row = pieces(batch)
    own = np.concatenate(([0], np.cumsum(np.bincount(row, end - begin, len(batch.block.members)).astype(np.int64))))
    taken: Ints = own[batch.block.rows[1:]] - own[batch.block.rows[:-1]]
    return taken


def run_on(command: str, url: URL, report: ReadReport, *, skip: bool) -> None:
    """Run the command on a finished shard; `StoreError` where it fails, or a fault in the report where such are passed over."""
    if code := run_for(command, url):
        text = f"the command ended with {code} on this shard, which is written."
        if not skip:
            raise StoreError(text, code="E_COMMAND", shard=url)
        report.add(Fault("E_COMMAND", text, url), skipped=True)


@dataclass(frozen=True, slots=True)
class OutputPart:
    """One output: its number, and its records: so many from `first` of shard `shard` on, the last of them in shard `last`."""

    number: int
    records: int
    shard: int
    first: int
    last: int


def cut(shards: Iterable[Ints], limits: Limits, most: int | None = None) -> Iterator[OutputPart]:
    """The outputs, from the sizes of the records of one shard after the other; no shard is asked for that `most` outputs do not need.

    >>> [(part.records, part.shard, part.last) for part in cut([np.full(3, 512), np.full(2, 512)], Limits(count=2))]
    [(2, 0, 0), (2, 0, 1), (1, 1, 1)]
    """
    number = records = size = 0
    for shard, each in enumerate(shards):
        ends, first = np.cumsum(each), 0
        while first < len(ends):
            if records == 0:
                begin = shard, first  # the record's place in it
            stop = limits.fit(ends, first, records, size)
            if stop > first:
                size += int(ends[stop - 1]) - (int(ends[first - 1]) if first else 0)
                records, last = records + stop - first, shard
            first = stop
            if stop < len(ends) or records == limits.count:
                yield OutputPart(number, records, *begin, last)
                number, records, size = number + 1, 0, 0
                if number == most:
                    return
    if records:
        yield OutputPart(number, records, *begin, last)


@dataclass(eq=False, repr=False)
class OutputSeries(Whole):
    """Outputs one after the other, of as many records as the limits of its number let each have; `finish` is told of those complete."""

    name: Callable[[int], URL]
    limits: Callable[[int], Limits]
    inputs: Inputs
    exists: Exists
    form: Form
    finish: Callable[[int, TarOutput], object]
    most: int | None = None
    done: int = 0
    _outlet: TarOutput | None = None

    def put(self, batch: Batch) -> bool:
        """Write the records of a batch; whether there may be more outputs."""
        ends, first = np.cumsum(sizes(batch)), 0
        while first < len(batch) and self.done != self.most:
            if self._outlet is None:
                self._outlet = TarOutput(self.name(self.done), inputs=self.inputs, exists=self.exists)
                self.form.forget()
            outlet, limits = self._outlet, self.limits(self.done)
            last = limits.fit(ends, first, outlet.records, outlet.bytes)
            if last > first:
                self.form.put(outlet, batch.part(first, last))
                first = last
            if last < len(batch) or outlet.records == limits.count:
                self.commit()
        return self.done != self.most

    def commit(self) -> None:
        """Finish the output that is open."""
        if self._outlet is not None:
            outlet, number = self._outlet, self.done
            outlet.commit()
            self._outlet, self.done = None, number + 1
            self.finish(number, outlet)

    def abort(self) -> None:
        """Drop the output that is open; those before it stay."""
        if self._outlet is not None:
            self._outlet.abort()


@dataclass(slots=True)
class Measured:
    """What one shard holds: bytes of each record, which version of it was read, and the report."""

    sizes: Ints
    version: dict[str, Any]
    report: ReadReport


def measure(options: ReadOptions, url: URL, file: IO[bytes] | None, tick: Tick) -> Measured:
    """The sizes of a shard's records."""
    now, report, found = version(url), ReadReport(), [np.zeros(0, np.int64)]
    with closing(intake([url], options, report)) as batches:
        for batch in batches:
            found.append(sizes(batch))
            tick(int(found[-1].sum()))
            del batch
    return Measured(np.concatenate(found), now, report)


@dataclass(frozen=True, slots=True)
class OutputTask:
    """The outputs that begin in one shard: their parts and names, and the shards that they are of, from that one on, with versions."""

    parts: tuple[OutputPart, ...]
    names: tuple[URL, ...]
    urls: tuple[URL, ...]
    versions: tuple[dict[str, Any], ...]

    __repr__ = redacted_repr


def output_tasks(
    parts: Iterable[OutputPart], urls: Sequence[URL], versions: Sequence[dict[str, Any]], name: Callable[[int], URL]
) -> list[OutputTask]:
    """A task for each shard in which outputs begin: what lies in it is read once for all of them."""
    tasks = []
    for shard, group in groupby(parts, lambda part: part.shard):
        own = tuple(group)
        there = slice(shard, own[-1].last + 1)
        tasks.append(OutputTask(own, tuple(name(part.number) for part in own), tuple(urls[there]), tuple(versions[there])))
    return tasks


@dataclass(slots=True)
class WrittenOutputs:
    """Records and bytes of each output of a task, and what was met when they were put together."""

    made: list[tuple[int, int]]
    report: ReadReport


@dataclass(frozen=True)
class OutputJob:
    """Writes the outputs of a task. `recipe`, if not None, is what the manifest beside each says of the verb; `command` is run on each."""

    options: ReadOptions
    exists: Exists
    recipe: Mapping[str, Any] | None
    resume: bool
    command: str | None

    def __call__(self, task: OutputTask, file: IO[bytes] | None, tick: Tick) -> WrittenOutputs:
        for url, was in zip(task.urls, task.versions, strict=True):
            if version(url) != was:
                raise ChangedError("the shard was replaced after it was measured.", shard=url, hint="Split again.")
        report = ReadReport()
        kept = [self._find_kept(task, at) for at in range(len(task.parts))]
        made: list[tuple[int, int]] = []
        for there, group in groupby(range(len(task.parts)), lambda at: kept[at] is not None):
            run = list(group)
            made += [found for at in run if (found := kept[at]) is not None] if there else self._write(task, run, report, tick)
        return WrittenOutputs(made, report)

    def _facts(self, task: OutputTask, at: int) -> dict[str, Any]:
        part = task.parts[at]
        own = range(part.last - part.shard + 1)
        sources = [{"number": part.shard + at, "shard": redact(task.urls[at]), **task.versions[at]} for at in own]
        return {**(self.recipe or {}), "part": {"first": part.first, "records": part.records}, "sources": sources}

    def _find_kept(self, task: OutputTask, at: int) -> tuple[int, int] | None:
        provable = self.recipe is not None and self.recipe["options"] is not None
        found = find_kept(task.names[at], self._facts(task, at)) if self.resume and provable else None
        return None if found is None else (found.records, found.bytes)

    def _write(self, task: OutputTask, run: Sequence[int], report: ReadReport, tick: Tick) -> list[tuple[int, int]]:
        """Write outputs that follow each other, in one pass over their shards."""
        parts, made = [task.parts[at] for at in run], list[tuple[int, int]]()
        start, stop = parts[0].first, parts[0].first + sum(part.records for part in parts)

        def finish(number: int, outlet: TarOutput) -> None:
            made.append(self._finish(task, run[number], outlet, report))
            tick(outlet.bytes)

        series = OutputSeries(
            lambda number: task.names[run[number]],
            lambda number: Limits(parts[number].records),
            Inputs(task.urls),
            self.exists,
            Form(report=report),
            finish,
            len(run),
        )
        # What is wrong with the shards was told when they were measured.
        with closing(intake(task.urls, self.options, ReadReport(), start=start, stop=stop)) as batches, series:
            for batch in batches:
                series.put(batch)
                del batch
            if len(made) < len(run):
                raise ChangedError("the shard holds fewer records than when it was measured.", shard=task.urls[-1], hint="Split again.")
        return made

    def _finish(self, task: OutputTask, at: int, outlet: TarOutput, report: ReadReport) -> tuple[int, int]:
        if self.recipe is not None:
            prove(task.names[at], outlet.records, self._facts(task, at))
        if self.command is not None:
            run_on(self.command, task.names[at], report, skip=self.options.on_error == "skip")
        return outlet.records, outlet.bytes
