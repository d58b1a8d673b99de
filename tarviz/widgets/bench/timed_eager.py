"""The eager runner with a clock at every stage: reading, scanning, cutting, each op, picking, batching."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from tarviz.model.errors import TarvizError
from tarviz.model.types import Block, Record, to_bytes
from tarviz.ops.chains import run_step
from tarviz.ops.random_draws import draws
from tarviz.read import stream
from tarviz.read.stream import ReadReport
from tarviz.runners.batch_rows import Offers
from tarviz.runners.eager import Eager, Item, Piece, collate, placed
from tarviz.widgets.bench.rate_meter import Clock

READ, SCAN, CUT, DRAW, PICK, BATCH = "read", "scan", "cut", "draw", "pick", "batch"


@dataclass(slots=True)
class Group:
    """Threads that do the same work: what they were busy with (stage → seconds, of all threads together), over `seconds` of time.

    `waits` says for what they waited otherwise.
    """

    name: str
    threads: int
    seconds: float
    busy: dict[str, float]
    waits: str = ""

    @property
    def capacity(self) -> float:
        """Seconds of work there could have been."""
        return self.threads * self.seconds

    @property
    def share(self) -> float:
        """The part of the time it was busy, 0…1."""
        return min(1.0, sum(self.busy.values()) / self.capacity) if self.capacity > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        shares = {name: round(seconds / self.capacity, 4) if self.capacity > 0 else 0.0 for name, seconds in self.busy.items()}
        return {"name": self.name, "threads": self.threads, "busy": shares, "waits": self.waits, "waiting": round(1 - self.share, 4)}


class Measured(Eager):
    """The eager runner, its stages timed. Iterate it once; `counted` yields (records, bytes) a step instead of the values.

    `read` is time without work while bytes are waited for, `scan` the work on headers; both by the difference of the clock and the
    thread's processor time.
    """

    def __init__(self, *args: Any, clock: Clock = time.perf_counter, cpu: Clock = time.thread_time, **options: Any) -> None:
        super().__init__(*args, **options)
        self._clock = clock
        self._cpu = cpu
        self._begun = clock()
        self._lock = threading.Lock()
        self._main: dict[str, float] = {READ: 0.0, SCAN: 0.0, CUT: 0.0}
        self._worked: dict[str, float] = {}
        self.bytes = 0.0
        self.records = 0

    def counted(self) -> Iterator[tuple[int, int]]:
        """(records, bytes of payload) of each step."""
        before, told = 0, 0.0
        for _ in self:
            size = self.bytes * self.records / max(self._taken, 1)
            yield self.records - before, max(0, int(size - told))
            before, told = self.records, max(told, size)

    _taken = 0

    def groups(self) -> list[Group]:
        """What the threads were busy with so far."""
        seconds = self._clock() - self._begun
        with self._lock:
            worked = dict(self._worked)
        main = dict(self._main)
        if not self.num_workers:
            first = {name: main.pop(name) for name in (READ, SCAN, CUT)}
            return [Group("this thread", 1, seconds, {**first, **worked, **main})]
        return [
            Group("reading thread", 1, seconds, main, "for the workers"),
            Group(f"{self.num_workers} worker{'' if self.num_workers == 1 else 's'}", self.num_workers, seconds, worked, "for records"),
        ]

    # ---- the runner's own steps, timed

    def _opened(self, piece: Piece, start: int, report: ReadReport) -> Generator[Block, None, None]:
        with closing(stream.blocks(piece.url, self.pipeline.options, report=report, start=start, stop=piece.stop)) as blocks:
            yield from self._read(blocks)

    def _unpacked(self, record: Record) -> dict[str, Any]:
        begin = self._clock()
        values = super()._unpacked(record)
        self._main[CUT] += self._clock() - begin
        self._taken += 1
        return values

    def _read(self, blocks: Iterator[Any]) -> Iterator[Any]:
        """Blocks, with the time until each divided into waiting for bytes and working on them."""
        while True:
            begin, work = self._clock(), self._cpu()
            block = next(blocks, None)
            spent, worked = self._clock() - begin, self._cpu() - work
            self._main[SCAN] += min(worked, spent)
            self._main[READ] += max(0.0, spent - worked)
            if block is None:
                return
            self.bytes += int(block.size.sum())
            yield block

    def _process(self, chunk: list[Item], epoch: int, offers: Offers | None = None) -> list[Any]:
        chain, select, clock = self.pipeline.chain, self.pipeline.select, self._clock
        busy: dict[str, float] = {}
        drawn, slices = None, chain.draw_slices
        if chain.draws:
            begin = clock()
            drawn = draws(chain, [to_bytes(record["__key__"]) for record, _ in chunk], self.pipeline.seed, epoch)
            busy[DRAW] = clock() - begin
        names = _names(chain)
        results: list[Any] = []
        for number, (record, origin) in enumerate(chunk):
            values = record
            try:
                for op, name, columns in zip(chain, names, slices, strict=True):
                    begin = clock()
                    values = run_step(op, values, None if drawn is None or not op.draws else drawn[number, columns])
                    busy[name] = busy.get(name, 0.0) + clock() - begin
                begin = clock()
                results.append(select.pick(values))
                busy[PICK] = busy.get(PICK, 0.0) + clock() - begin
            except TarvizError as error:
                results.append(placed(error, origin))
                if self.pipeline.options.on_error == "raise":
                    break
        with self._lock:
            for name, seconds in busy.items():
                self._worked[name] = self._worked.get(name, 0.0) + seconds
        return results

    def _steps(self, *args: Any) -> Generator[Any, None, None]:
        for value in super()._steps(*args):
            if self.batch is None:
                self.records += 1
            yield value

    def _batches(self, values: Iterator[Any], size: int, *_: Any) -> Iterator[Any]:
        batch: list[Any] = []
        for value in values:
            batch.append(value)
            if len(batch) == size:
                yield self._collated(batch)
                batch = []
        if batch and not self.drop_remainder:
            yield self._collated(batch)

    def _collated(self, values: list[Any]) -> Any:
        begin = self._clock()
        made = collate(values)
        self._main[BATCH] = self._main.get(BATCH, 0.0) + self._clock() - begin
        self.records += len(values)
        return made


def _names(chain: Any) -> list[str]:
    """The ops as stages: `decode`; with the field, or a number, where there are two of a name."""
    names: list[str] = []
    plain = [op.name for op in chain]
    for op in chain:
        name = op.name
        if plain.count(name) > 1 and hasattr(op, "ext"):
            name = f"{name}({op.ext})"
        while name in names:
            name += "′"
        names.append(name)
    return names
