"""The runner `eager`: a pipeline run in this process, yielding NumPy and Python values."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.run_keywords import EagerKeywords, takes
from tarviz.runners.arguments import batches, whole_numbers
from tarviz.runners.batch_memory import LEAST, BatchMemory, BatchRows
from tarviz.runners.elsewhere import elsewhere, own_arrays
from tarviz.runners.plans import ReaderPlan, Resumed, State, Trail, resume, state_of
from tarviz.runners.shares import ShareReader, world_of
from tarviz.runners.stage_timer import StageTimer
from tarviz.runners.walk import Walk


class Eager(Walk, Iterable[Any]):
    """What a pipeline yields.

    `batch`: so many steps become one; numbers and arrays of one shape are stacked along a new first axis, the rest become lists;
    `drop_remainder` leaves out a last batch that is smaller. Memory of batches that nobody holds is kept for others, in later passes
    too (256 MiB at most for each column, or one batch). `shuffle`: shards come in another order in every epoch, and records pass
    through a buffer of so many, as seed and epoch decide. `repeat`: passes over the shards, each an epoch; None goes on for ever.
    `num_workers`: threads that run the chain; the order stays. `epoch` is the number of the first pass: every `iter` goes on to new
    epochs, so that random ops draw anew, unless `set_epoch` pins one. Of several processes, each reads its part as `rank` of
    `world_size` says (`shares.pieces`), with `reshare` another part in every epoch; unlike the other runners, this one does not look for
    them in the environment.

    `engine="ray"`: records are read and worked on by the cluster at `address` (`auto`, `host:6379`, `ray://host:10001`; without it,
    the one this process is in, RAY_ADDRESS, or a Ray of its own on this machine for as long as an iteration lasts), `num_workers` tasks
    at a time (0: one per processor there). Values, order and state are the same. A worker that is lost costs time and no record. With
    `shuffle` it is values that wait in the buffer. `send_functions` lets functions of the chain (`Func`) be pickled and run there.

    `state_dict` and `load_state_dict` go on after any step. `report` tells what the latest pass read, warned of and skipped
    (`on_error="skip"`). One iterator may be used by one thread. `timer` measures the stages of one iteration.
    """

    @takes(EagerKeywords)
    def __init__(self, pipeline: Pipeline, **options: Unpack[EagerKeywords]) -> None:
        batch, shuffle, repeat, workers = options["batch"], options["shuffle"], options["repeat"], options["num_workers"]
        whole_numbers(1, batch=batch)
        whole_numbers(shuffle=shuffle, repeat=repeat, num_workers=workers, epoch=options["epoch"])
        away = elsewhere(pipeline, options["engine"], options["address"], workers, send_functions=options["send_functions"])
        if away is not None:
            away = replace(away, keeps=batch is None or (shuffle or 0) > 1)
        super().__init__(pipeline, shuffle=shuffle or 0, repeat=repeat, num_workers=workers, elsewhere=away)
        self.batch = batch
        self.drop_remainder = options["drop_remainder"]
        self.epoch = options["epoch"]
        self.report = ReadReport()
        self._memory = BatchMemory()
        reader = ShareReader(*world_of(options["rank"], options["world_size"]))
        self._whole = ReaderPlan(pipeline, reader, self.shuffle, options["even"], options["reshare"])
        self._pinned = False
        self._loaded = Resumed(self.epoch)
        self._now: tuple[ReaderPlan, int, Trail] | None = None

    def measure(self, timer: StageTimer) -> Self:
        """The same, its stages measured."""
        self.timer = timer
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.pipeline!r}>"

    def __len__(self) -> int:
        """Steps, of plain local shards of up to 1 GiB together, or where an index of every shard is there; `TypeError` otherwise."""
        if self.repeat is None:
            raise TypeError("a pipeline that repeats for ever has no length")
        records = self._plan().length(range(self.epoch, self.epoch + self.repeat))
        if records is None:
            raise TypeError("the number of records is not known; tarviz.index(urls) counts them and keeps the index")
        return batches(records, self.batch, self.drop_remainder)

    def __bool__(self) -> bool:
        return True

    def set_epoch(self, epoch: int | None) -> None:
        """Pin the first pass of each `iter` to this epoch; None lets every `iter` go on to a new one again."""
        whole_numbers(epoch=epoch)
        if epoch is None and self._pinned:
            self.epoch += self.repeat or 1
        self._pinned = epoch is not None
        self.epoch = self.epoch if epoch is None else epoch
        self._loaded, self._now = Resumed(self.epoch), None

    def __iter__(self) -> Iterator[Any]:
        epoch, loaded = self.epoch, self._loaded
        if not self._pinned:
            self.epoch += self.repeat or 1
        self._loaded = Resumed(self.epoch)
        self.report = ReadReport()
        plan, trail = self._plan(loaded.rest), Trail.of(loaded.marks.get("0"))
        self._now = plan, epoch, trail
        if self.batch is None:
            return self._steps(plan, epoch, self.report, trail)
        rows = None if self.elsewhere else BatchRows(self.batch, self.pipeline.chain.in_place, self._memory)
        return self._batches(self._steps(plan, epoch, self.report, trail, rows), self.batch, rows)

    def _plan(self, rest: tuple[Mapping[str, Any], ...] = ()) -> ReaderPlan:
        return replace(self._whole, rest=rest)

    def _steps(
        self, plan: ReaderPlan, epoch: int, report: ReadReport, trail: Trail, rows: BatchRows | None = None
    ) -> Generator[Any, None, None]:
        with closing(self.values(plan, epoch, report, trail, rows)) as values:
            for place, value in values:
                trail.move(place)
                if self.timer is not None and self.batch is None:
                    self.timer.records += 1
                yield value

    def _batches(self, values: Iterator[Any], size: int, rows: BatchRows | None) -> Iterator[Any]:
        while batch := list(itertools.islice(values, size)):
            if len(batch) == size or not self.drop_remainder:
                begin = 0.0 if self.timer is None else self.timer.clock()
                made = collate(batch, functools.partial(_stack, self._memory, None if rows is None else rows.begin()))
                if self.timer is not None:
                    self.timer.note_batch(begin, len(batch))
                del batch  # it holds memory of the one before
                yield made if self.elsewhere is None else own_arrays(made)  # what no batch is made of may be a view
                del made

    def state_dict(self) -> dict[str, Any]:
        """Where the latest iteration stands, after the steps that were taken from it, as JSON-ready data."""
        if self._now is None:
            return state_of(self._plan(self._loaded.rest), self.epoch, self._loaded.marks)
        plan, epoch, trail = self._now
        return state_of(plan, epoch, {"0": trail.mark(mixed=plan.drawn)})

    def load_state_dict(self, state: State) -> None:
        """Let the next iteration go on where `state` says, and those after it with new epochs.

        It may have been saved with other numbers of workers and ranks, by this runner or that of torch: a list of the states of all
        ranks, where their number was another. `ChangedError` when a shard it stands in was replaced.
        """
        loaded = resume(self._plan(), state)
        self.set_epoch(None)
        self.epoch, self._loaded = loaded.epoch, loaded


run = Eager


def _stack(memory: BatchMemory, whole: Callable[[list[Any]], NDArray[Any] | None] | None, values: list[Any]) -> NDArray[Any]:
    """Arrays of one shape as one: the array whose rows they are already, else in memory that is used again."""
    if whole is not None and (made := whole(values)) is not None:
        return made
    first = np.asarray(values[0])
    if first.dtype.hasobject or first.nbytes * len(values) < LEAST:
        return np.stack(values)
    return np.stack(values, out=memory.empty((len(values), *first.shape), first.dtype))


def collate(values: list[Any], stack: Callable[[list[Any]], NDArray[Any]] = np.stack) -> Any:
    """Steps as one: numbers and arrays of one shape stacked (by `stack`), structures kept, anything else a list.

    >>> collate([(1, b"a"), (2, b"b")])
    (array([1, 2]), [b'a', b'b'])
    """
    first = values[0]
    if isinstance(first, Mapping):
        if any(value.keys() != first.keys() for value in values):
            return values
        return {name: collate([value[name] for value in values], stack) for name in first}
    if isinstance(first, tuple):
        return tuple(collate(list(part), stack) for part in zip(*values, strict=True))
    if isinstance(first, list):
        same = all(len(value) == len(first) for value in values)
        return [collate(list(part), stack) for part in zip(*values, strict=True)] if same else values
    if isinstance(first, np.ndarray | np.generic):
        return stack(values) if len({(np.shape(value), np.asarray(value).dtype) for value in values}) == 1 else values
    if isinstance(first, bool | int | float) and all(type(value) is type(first) for value in values):
        made = np.array(values)
        exact = "f" if type(first) is float else "biu"  # NumPy rounds whole numbers where some are beyond int64
        return made if made.dtype.kind in exact else values
    return values
