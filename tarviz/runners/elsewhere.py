"""Passes whose records are worked on elsewhere: tasks of an engine that give back values, taken in the order of the records.

A task is a piece of a shard. What a plain local shard holds is cut by its index, so that a shard is shared by workers, and so that what
a task gives fits into what may wait to be taken; any other shard is one task. Values are the same wherever they are made: random numbers
come of seed, epoch and key.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from tarviz import engines, stores
from tarviz.model.errors import TarvizError, TarvizWarning, UsageError
from tarviz.ops import Func
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.read.indexed import usable_index
from tarviz.read.stream import ReadReport
from tarviz.runners.arguments import whole_numbers
from tarviz.runners.plans import Trail
from tarviz.runners.shares import Piece, trusted_index
from tarviz.stores import Stat

Worked: TypeAlias = "Callable[[Pipeline, Piece, int, ReadReport, bool], Generator[list[MadeRow], None, None]]"

PART = 4 << 20  # bytes of values that are given back together: each time costs an engine some milliseconds
MOST = 2048  # records that are
_TASK = 32 << 20  # bytes of values of a task: less than what an engine lets wait
_RECORDS = 16, 64, 8192  # of a task: least, at first, most
_BIG = 16 << 20  # bytes of a shard from which on it is indexed here, to be cut


@dataclass(frozen=True, slots=True)
class MadeRow:
    """What was made of a record: the value, or the error in its place; and the number of the record after it in its shard."""

    key: str
    behind: int
    value: Any


@dataclass(frozen=True, slots=True)
class PiecePart:
    """Rows of piece `at`, what reading met since the part before, and which version of the shard is read."""

    at: int
    rows: list[MadeRow]
    report: ReadReport
    opened: Stat | None


@dataclass(frozen=True, slots=True)
class _Task:
    at: int
    piece: Piece
    epoch: int
    last: bool = True  # of its piece


@dataclass(frozen=True, slots=True)
class _PassJob:
    """What a worker does with a task. `stops`: an error of a record ends it, as nothing after it is wanted."""

    pipeline: Pipeline
    stops: bool
    work: Worked

    def __call__(self, task: _Task) -> Iterator[PiecePart]:
        report = ReadReport()
        if task.piece.start:
            trusted_index(task.piece.url, self.pipeline.options)  # an index, kept on that machine: a part of a shard is found by it
        with closing(self.work(self.pipeline, task.piece, task.epoch, report, self.stops)) as found:
            for rows in found:
                if not task.last:
                    report.shards = 0  # one that is cut counts once
                yield PiecePart(task.at, rows, report.split_off(), report.opened)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The engine that works on records, where it is, how many tasks it runs at a time, and whether parts come in their order.

    `keeps`: who takes the values keeps them. Without, large arrays are views of the engine's memory, for who copies them at once.
    """

    engine: str
    address: str | None = None
    count: int | None = None
    ordered: bool = True
    keeps: bool = True
    fit: Callable[[Mapping[str, Any], Any], Any] | None = field(default=None, compare=False)
    """What is made here of a value: `fit(places, value)`; a `TarvizError` of it is the record's."""

    @contextmanager
    def start(self, pipeline: Pipeline, work: Worked, *, stops: bool) -> Iterator[RowSource]:
        """The engine at work for this pipeline."""
        plan = engines.EnginePlan(self.count, address=self.address)
        with engines.stream(self.engine, _PassJob(pipeline, stops, work), plan) as streams:
            yield PassWorkers(self, pipeline, streams)


class RowSource(Protocol):
    """An engine at work for the passes of one iteration."""

    def rows(
        self, pieces: list[Piece], epoch: int, report: ReadReport, trail: Trail | None = None, number: int = 0
    ) -> Generator[tuple[int, MadeRow], None, None]:
        """(piece, row) of each record of pieces in a row, from piece `number` on."""
        ...


def elsewhere(
    pipeline: Pipeline,
    engine: str | Elsewhere | None,
    address: str | None,
    count: int | None,
    *,
    send_functions: bool = False,
    ordered: bool = True,
) -> Elsewhere | None:
    """Where the records of a pipeline are worked on; None is here. `UsageError` says what cannot travel or is not there."""
    if isinstance(engine, Elsewhere):
        return engine
    if engine is None or engine == "local":
        if address is not None:
            raise UsageError(
                f"address={address!r} is that of a cluster, and the work is done here.", hint="engine='ray' goes to a cluster."
            )
        return None
    if engine == "tf-service":
        raise UsageError("a tf.data service feeds Pipeline.tf() alone.", hint="engine='ray' feeds every runner.")
    whole_numbers(num_workers=count)
    engines.check_streams(engine, address)
    check_sendable(pipeline, send_functions=send_functions)
    return Elsewhere(engine, address, count or None, ordered)


def check_sendable(pipeline: Pipeline, *, send_functions: bool) -> None:
    """`UsageError` where a pipeline cannot be run elsewhere; `send_functions` lets functions go."""
    if (error := obstacle(pipeline)) is not None and not (send_functions and isinstance(error, _FunctionError)):
        raise error


class _FunctionError(UsageError):
    """A function would have to travel."""


def obstacle(pipeline: Pipeline) -> UsageError | None:
    """Why a pipeline cannot be run elsewhere as it is: a shard of this process alone, or a function that nobody let go; None: it can."""
    if bound := [url for url in stream.shards(pipeline.urls) if engines.is_own(url) or url.startswith("pipe:")]:
        return engines.unreachable(bound[0])
    if functions := [op for op in pipeline.chain if isinstance(op, Func)]:
        what = f"{functions[0]} holds a function, and functions are pickled and run on the cluster only where that is allowed."
        return _FunctionError(what, hint="send_functions=True allows it; engine='local' runs it here.")
    return None


class PassWorkers:
    """An engine at work for the passes of one iteration. `lost` counts the tasks that were begun again."""

    def __init__(self, place: Elsewhere, pipeline: Pipeline, streams: engines.Streams) -> None:
        self._place = place
        self._pipeline = pipeline
        self._streams = streams
        self._size = _RECORDS[1]

    @property
    def lost(self) -> int:
        return self._streams.lost

    def rows(
        self, pieces: list[Piece], epoch: int, report: ReadReport, trail: Trail | None = None, number: int = 0
    ) -> Generator[tuple[int, MadeRow], None, None]:
        """(piece, row) of each record of pieces in a row, from piece `number` on."""
        with closing(self._streams.run(self._tasks(pieces, epoch, number), ordered=self._place.ordered)) as parts:
            for part in parts:
                self._note(part, report)
                if trail is not None:
                    trail.open(part.at, part.opened)
                for row in part.rows:
                    yield part.at, self._fit(pieces[part.at], row)

    def _tasks(self, pieces: list[Piece], epoch: int, number: int) -> Iterator[_Task]:
        few = len(pieces) < 4 * (self._place.count or _RECORDS[0])
        for at, piece in enumerate(pieces[number:], number):
            *parts, last = self._cut(piece, few=few)
            yield from (_Task(at, part, epoch, last=False) for part in parts)
            yield _Task(at, last, epoch)

    def _cut(self, piece: Piece, *, few: bool) -> list[Piece]:
        """Parts of a piece that workers can find in its shard without reading what stands before; the piece where there are none."""
        count, size = self._count(piece, few=few) or 0, self._size
        return [piece.part(low, low + size if low + size < count else None) for low in range(0, max(count, 1), size)]

    def _count(self, piece: Piece, *, few: bool) -> int | None:
        options = self._pipeline.options
        if piece.only is not None:
            return len(piece.only)
        if piece.of > 1 or not stores.is_local(piece.url):
            return None
        if few or (stores.of(piece.url).stat(piece.url).size or 0) > _BIG:
            trusted_index(piece.url, options)
        found = usable_index(piece.url, options)
        return None if found is None else piece.length(len(found[0]))

    def _note(self, part: PiecePart, report: ReadReport) -> None:
        told = report.counts()
        report.merge(part.report)
        report.opened = part.opened
        for fault in (*part.report.warnings, *part.report.skipped):
            if fault.code not in told:
                told[fault.code] = 1
                warnings.warn(str(fault), TarvizWarning, stacklevel=2)
        if part.rows:
            fitting = _TASK * len(part.rows) // (1 + sum(weight(row.value) for row in part.rows))
            self._size = min(max(fitting, _RECORDS[0]), _RECORDS[2])

    def _fit(self, piece: Piece, row: MadeRow) -> MadeRow:
        fit = self._place.fit
        if self._place.keeps:
            row = replace(row, value=own_arrays(row.value))
        if fit is None or isinstance(row.value, TarvizError):
            return row
        try:
            return MadeRow(row.key, row.behind, fit({"__key__": row.key, "__shard__": piece.url, "__index__": row.behind - 1}, row.value))
        except TarvizError as error:
            return MadeRow(row.key, row.behind, error)


def own_arrays(value: Any) -> Any:
    """The value with arrays that may be written to: copies of those that may not.

    >>> own_arrays({"x": np.frombuffer(b"ab", np.uint8)})["x"].flags.writeable
    True
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else value.copy()
    if type(value) is dict:
        return {name: own_arrays(part) for name, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(own_arrays, value))
    return value


def weight(value: Any) -> int:
    """About how many bytes a value is.

    >>> weight({"jpg": np.zeros((2, 2), np.uint8), "cls": 3})
    12
    """
    if isinstance(value, np.ndarray | np.generic):
        return value.nbytes
    if isinstance(value, bytes | bytearray | memoryview | str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(weight, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(weight, value))
    return 8
