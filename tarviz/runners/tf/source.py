"""The Python side of a dataset: what the graph calls to begin, to pull a block, to run Python ops and to report lost records."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import DataError, TarvizError, UsageError
from tarviz.model.types import Feature
from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.runners.arguments import whole_number
from tarviz.runners.batch_memory import ALIGNED, BatchMemory, align
from tarviz.runners.elsewhere import Elsewhere
from tarviz.runners.plans import ReaderPlan, Resumed, State, Track, Trail, resume, state_of
from tarviz.runners.tf.feed import FeedChunk, chunks
from tarviz.runners.tf.leaving import CALLS, too_late
from tarviz.runners.tf.native import batches, receive, room
from tarviz.runners.tf.steps import GraphStep
from tarviz.selection import Structure

HANDLE = np.full(ALIGNED // 8, -1, np.int64)  # no iteration yet
_KEPT = 4  # chunks remembered at least, so that a lost record can be named


@dataclass(frozen=True, slots=True, eq=False)
class Flowing:
    """Nothing went wrong so far."""


@dataclass(frozen=True, slots=True, eq=False)
class Failing:
    """No more records come, because of this error: it is raised after those that are under way in the graph."""

    error: BaseException


@dataclass(frozen=True, slots=True, eq=False)
class Failed:
    """This error was raised. What TensorFlow reads ahead goes on asking, and gets it again."""

    error: BaseException


@dataclass(slots=True, eq=False, weakref_slot=True)
class SourcePass:
    """One iteration of the dataset: where it is, what the graph may still lose, and what went wrong."""

    chunks: Generator[FeedChunk, None, None]
    columns: Iterator[list[NDArray[Any]]]
    close: Callable[[], None]
    report: ReadReport
    track: Track
    kept: deque[FeedChunk]
    memory: Callable[[], NDArray[np.uint8] | None]
    issued: int = 0
    pulled: bool = False
    state: Flowing | Failing | Failed = Flowing()
    refused: dict[int, BaseException] = field(default_factory=dict)  # records by number, and why

    def holds(self, handle: NDArray[np.int64]) -> bool:
        """Whether a handle is in the memory that it was begun with: TensorFlow has made no copy, and its end is that of the iterator."""
        memory = self.memory()
        return memory is not None and memory.ctypes.data == handle.ctypes.data


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Fields go into the graph as they were read. It does these steps, and comes for those in Python."""

    steps: tuple[GraphStep, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Threads:
    """Threads of this process do all of the pipeline, as one step."""

    step: GraphStep


@dataclass(frozen=True, slots=True, eq=False)
class Away:
    """Processes elsewhere do it. `schema`: what the step gives."""

    step: GraphStep
    place: Elsewhere
    schema: Structure


Work = Columns | Threads | Away


@dataclass(slots=True, eq=False)
class Steps:
    """How many steps were taken of an iterator; `unseen`: in a graph of TensorFlow, which tells nobody."""

    taken: int = 0
    unseen: bool = False


@dataclass(eq=False, repr=False)
class PipelineSource:
    """A pipeline as callbacks. One serves all iterations of a dataset, in any threads; `report` and `error` are the latest's."""

    pipeline: Pipeline
    fields: Mapping[str, tuple[str, ...]]
    columns: tuple[str, ...]
    work: Work
    _: KW_ONLY
    plan: ReaderPlan
    epoch: int
    repeat: int | None
    workers: int
    ordered: bool
    extra: bool
    reach: int
    pinned: bool = False
    report: ReadReport = field(default_factory=ReadReport)
    error: BaseException | None = None
    _runs: dict[int, SourcePass] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _memory: weakref.ref[BatchMemory] | None = None
    _asked: Steps | None = None  # of an iterator that has not begun
    _now: tuple[ReaderPlan, int, Track, Steps | None] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.draws = max(self.pipeline.chain.draws, 1)  # TensorFlow 2.21 dies when it unbatches a tensor that has no elements
        self._loaded = Resumed(self.epoch)
        _ = self.pipeline.chain.in_place  # imports what it needs: of TensorFlow's threads one may wait for another inside an import

    def memory(self) -> BatchMemory:
        """The memory of batches, the same for as long as somebody holds it: the dataset does, for TensorFlow keeps this source for good."""
        memory = None if self._memory is None else self._memory()
        if memory is None:
            memory = BatchMemory()
            self._memory = weakref.ref(memory)
        return memory

    def set_epoch(self, epoch: int | None) -> None:
        """Pin the first pass of each iteration to this epoch; None lets every one go on to a new one again."""
        with self._lock:
            if epoch is None and self.pinned:
                self.epoch += self.repeat or 1
            self.pinned = epoch is not None
            self.epoch = self.epoch if epoch is None else epoch
            self._loaded, self._now = Resumed(self.epoch), None

    @property
    def resumes(self) -> bool:
        """Whether the next iteration goes on with one that was begun before."""
        return bool(self._loaded.marks or self._loaded.rest)

    def ask(self) -> Steps:
        """Who takes the steps of the next iteration, and counts them."""
        self._asked, self._now = Steps(), None
        return self._asked

    def state(self, batch: int | None, steps: int | None) -> dict[str, Any]:
        """Where the latest iteration stands behind so many steps of `batch` records each; None: those that were counted."""
        if not self.ordered and self.workers > 1:
            raise UsageError(
                "the place of a dataset whose shards come as they are ready is no one place.", hint="Leave out deterministic=False."
            )
        if self._now is None:
            plan = replace(self.plan, rest=self._loaded.rest)
            return state_of(plan, self.epoch, self._loaded.marks)
        plan, epoch, track, counted = self._now
        if steps is None and (counted is None or counted.unseen):
            raise UsageError(
                "TensorFlow itself takes the steps of this iteration (in Keras's fit, a tf.function, or a dataset built on this one).",
                hint="Say how many were taken: state_dict(steps=…).",
            )
        taken = counted.taken if steps is None and counted is not None else steps or 0
        whole_number("steps", taken)
        return state_of(plan, epoch, {"0": track.mark(taken, batch)})

    def load(self, state: State) -> None:
        """Let the next iteration go on where a state says."""
        loaded = resume(self.plan, state)
        self.set_epoch(None)
        self.epoch, self._loaded = loaded.epoch, loaded

    @CALLS.count
    def start(self, size: int = 0, drop_remainder: bool = False) -> NDArray[np.int64]:
        """Begin an iteration; returns its handle, which TensorFlow holds as long as its iterator lives.

        `take` then gives columns of `size` records each; with 0, as many as come together.

        There is no other sign of an iterator that is dropped half-way (short of `from_generator`, see `tf.py`): the handle's
        memory stays NumPy's, and when the iterator lets go of it, the run is closed.
        """
        with self._lock:
            first, loaded = self.epoch, self._loaded
            if not self.pinned:
                self.epoch += self.repeat or 1
            self._loaded = Resumed(self.epoch)
            plan = replace(self.plan, rest=loaded.rest)
            track = Track(Trail.of(loaded.marks.get("0")), mixed=plan.drawn)
            (self._asked, asked), number = (None, self._asked), next(self._numbers)
            self._now = plan, first, track, asked
        report = ReadReport()
        pulled = chunks(
            self.pipeline,
            self.fields,
            report,
            epoch=first,
            repeat=self.repeat,
            plan=plan,
            track=track,
            workers=self.workers,
            ordered=self.ordered,
            extra=self.extra,
            held=not isinstance(self.work, Columns),
        )
        columns, close = self._begin_work(pulled, plan, first, size, report, track)
        if size:
            columns = even(columns, size, drop_remainder)
        memory = align(np.zeros(2 * ALIGNED, np.uint8), ALIGNED)
        handle = memory.view(np.int64)
        handle[:] = number
        run = self._runs[number] = SourcePass(pulled, columns, close, report, track, deque(), weakref.ref(memory))
        self.report, self.error = report, None
        weakref.finalize(memory, _let_go, weakref.ref(self), number, weakref.ref(run)).atexit = False
        return handle

    def _begin_work(
        self, pulled: Generator[FeedChunk, None, None], plan: ReaderPlan, epoch: int, size: int, report: ReadReport, track: Track
    ) -> tuple[Iterator[list[NDArray[Any]]], Callable[[], None]]:
        """The columns of an iteration, and what ends it."""
        match self.work:
            case Columns():
                return ([chunk.column(name) for name in self.columns] for chunk in pulled), pulled.close
            case Threads(step):
                lose = track.lose if self.pipeline.options.on_error == "skip" else None
                made = batches(pulled, step, size, self.workers, report, self.memory(), lose)
                return made, made.close
            case Away(step, place, schema):
                made = receive(
                    self.pipeline,
                    plan,
                    step,
                    schema,
                    size,
                    track,
                    elsewhere=place,
                    epoch=epoch,
                    repeat=self.repeat,
                    report=report,
                    memory=self.memory(),
                )
                return made, made.close

    @CALLS.count
    def go_on(self, size: int, drop_remainder: bool, handle: NDArray[np.int64], turn: Any) -> NDArray[np.int64]:
        """The handle of an iteration, to be given at its next `turn`; the first, 0, begins it, as `start` does.

        It is always the same memory: an array made of the one given would hold that, and so on, as long as the iteration goes.
        """
        if not turn:
            return self.start(size, drop_remainder)
        run = self._runs.get(int(handle[0]))
        memory = None if run is None else run.memory()
        return handle.copy() if memory is None else memory.view(np.int64)

    @CALLS.count
    def take(self, handle: NDArray[np.int64]) -> tuple[Any, ...]:
        """The next records as they are, in columns; empty ones are the end. What goes wrong is raised."""
        run = self._runs.get(int(handle[0]))  # none: it ended with an error, and somebody asks again
        columns: list[NDArray[Any]] | None = None
        if run is not None and not CALLS.ending:
            run.pulled = run.holds(handle)
            try:
                columns = next(run.columns, None)
            except BaseException as error:
                if not too_late(error):
                    self.error = error
                    self._runs.pop(int(handle[0]), None)
                    raise
        if columns is None:
            if (ended := self._runs.pop(int(handle[0]), None)) is not None:
                ended.report.tell_skipped()
            columns = self._nothing()
        return tuple(columns)

    @CALLS.count
    def pull(self, handle: NDArray[np.int64]) -> tuple[Any, ...]:
        """The next records for the steps: whether there are any, their numbers, random numbers and columns.

        What goes wrong ends them; `settle` raises it, after the records that are under way.
        """
        run = self._runs.get(int(handle[0]))
        chunk: FeedChunk | None = None
        if run is not None and not CALLS.ending:
            run.pulled = True
            try:
                chunk = next(run.chunks, None)
            except BaseException as error:  # noqa: BLE001
                if not too_late(error):
                    run.state, self.error = Failing(error), error
        if run is None or chunk is None:
            return False, np.empty(0, np.int64), np.empty((0, self.draws)), *self._nothing()
        run.issued = chunk.first + len(chunk)
        self._keep(run, chunk)
        drawn = chunk.draws if chunk.draws.size else np.zeros((len(chunk), 1))
        return True, chunk.numbers, drawn, *(chunk.column(name) for name in self.columns)

    def _nothing(self) -> list[NDArray[Any]]:
        if not isinstance(self.work, Columns):
            features = (Feature(feature.dtype, tuple(side or 0 for side in feature.shape)) for feature in self.work.step.tensors)
            return [room(0, feature, BatchMemory()) for feature in features]
        return [np.empty(0, np.int64 if name == "__index__" else object) for name in self.columns]

    def _keep(self, run: SourcePass, chunk: FeedChunk) -> None:
        with self._lock:
            run.kept.append(chunk)
            while len(run.kept) > _KEPT and run.kept[1].first + self.reach < run.kept[-3].first:
                run.kept.popleft()

    @CALLS.count
    def call(self, step: int, handle: NDArray[np.int64], number: Any, draw: NDArray[np.float64], *values: Any) -> list[Any]:
        """What a Python step makes of a record."""
        run = self._runs[int(handle[0])]
        chunk, row = self._find(run, int(number))
        try:
            assert isinstance(self.work, Columns)  # no other comes for single steps
            return self.work.steps[step].call(chunk.places(row), list(values), draw)
        except BaseException as error:
            run.refused[int(number)] = error
            raise

    @CALLS.count
    def settle(self, handle: NDArray[np.int64], expected: Any, numbers: NDArray[np.int64]) -> bool:
        """Account for the records from `expected` on that are not among `numbers`, those that came through; -1: the end.

        By `on_error` a lost record is raised, with shard, key and byte, or counted in the report.
        """
        run = self._runs[int(handle[0])]
        ended = int(numbers[0]) < 0
        if isinstance(run.state, Failed):
            raise run.state.error
        through = run.issued if ended else int(numbers[-1]) + 1
        lost = set(range(int(expected), through)) - ({*numbers.tolist()} if not ended else set())
        for number in sorted(lost):
            error = self._why(run, number)
            if not isinstance(error, TarvizError) or self.pipeline.options.on_error == "raise":
                run.state, self.error = Failed(error), error
                raise error
            run.report.add(error.fault, skipped=True)
            run.track.lose(number)
        if ended:
            self._runs.pop(int(handle[0]), None)
            run.report.tell_skipped()
            if isinstance(run.state, Failing):
                raise run.state.error
        return True

    def _why(self, run: SourcePass, number: int) -> BaseException:
        """The error of a record that did not come through: what Python raised, or raises now for the same record."""
        found = run.refused.pop(number, None)
        chunk, row = self._find(run, number)
        if found is None:
            try:
                drawn = chunk.draws[row]
                self.pipeline.select.pick(self.pipeline.chain.run(chunk.record(row), drawn))
            except TarvizError as error:
                found = error
        if found is None:
            places = chunk.places(row)
            found = DataError(
                f"TensorFlow refuses what {self.pipeline.chain} does to the record, although Python accepts it.",
                code="E_DECODE",
                shard=places["__shard__"],
                key=places["__key__"],
            )
        return chunk.place_error(row, found) if isinstance(found, TarvizError) else found

    def _find(self, run: SourcePass, number: int) -> tuple[FeedChunk, int]:
        with self._lock:
            for chunk in reversed(run.kept):
                if chunk.first <= number:
                    return chunk, number - chunk.first
        raise AssertionError(f"record {number} was let go too early")

    def drop(self, handle: int) -> None:
        """End an iteration that nobody goes on with: its shard is closed."""
        run = self._runs.pop(handle, None)
        if run is not None:
            run.close()


def even(parts: Iterator[list[NDArray[Any]]], size: int, drop_remainder: bool) -> Iterator[list[NDArray[Any]]]:
    """Columns of `size` records each out of columns of any length; the last are fewer, or left out.

    >>> [column.tolist() for column, in even(iter([[np.arange(3)], [np.arange(3, 7)]]), 2, False)]
    [[0, 1], [2, 3], [4, 5], [6]]
    """
    held: list[list[NDArray[Any]]] = []
    count = 0
    for part in parts:
        length, at = len(part[0]), 0
        while count + length - at >= size:
            end = at + size - count
            yield _join([*held, [column[at:end] for column in part]])
            held, count, at = [], 0, end
        if at < length:
            held.append([column[at:] for column in part])
            count += length - at
        del part
    if held and not drop_remainder:
        yield _join(held)


def _join(parts: list[list[NDArray[Any]]]) -> list[NDArray[Any]]:
    return parts[0] if len(parts) == 1 else [np.concatenate(columns) for columns in zip(*parts, strict=True)]


def _let_go(source: weakref.ref[PipelineSource], handle: int, run: weakref.ref[SourcePass]) -> None:
    found, alive = source(), run()
    if found is not None and alive is not None and alive.pulled:  # else TensorFlow made a copy of the handle: it says nothing
        found.drop(handle)
