"""Where the time of an eager run goes: a clock handed into the runner, at every stage. Without one the runner asks no clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from typing import TypeAlias

from tarviz.model.types import Block
from tarviz.ops.base import Op

Clock: TypeAlias = Callable[[], float]

READ, SCAN, CUT, DRAW, PICK, BATCH = "read", "scan", "cut", "draw", "pick", "batch"


class StageTimer:
    """Seconds by stage of one iteration: `main` those of the thread that reads, `worked` those that ran the chain, of all threads together.

    `read` is time without work while bytes are waited for, `scan` the work on headers; both by the difference of the clock and the
    thread's processor time. `bytes` are those of the payloads read, `taken` the records cut, `records` those delivered. Ops that the
    chain does together are one stage: `decode|resize`.
    """

    def __init__(self, clock: Clock = time.perf_counter, cpu: Clock = time.thread_time) -> None:
        self.clock = clock
        self._cpu = cpu
        self._lock = threading.Lock()
        self._stages: list[str] | None = None
        self.begun = clock()
        self.main: dict[str, float] = {READ: 0.0, SCAN: 0.0, CUT: 0.0}
        self.worked: dict[str, float] = {}
        self.bytes = self.records = self.taken = 0

    def read(self, blocks: Generator[Block, None, None]) -> Generator[Block, None, None]:
        """The blocks, with the time until each divided into waiting for bytes and working on them."""
        with closing(blocks):
            while True:
                begin, work = self.clock(), self._cpu()
                block = next(blocks, None)
                spent, worked = self.clock() - begin, self._cpu() - work
                self.main[SCAN] += min(worked, spent)
                self.main[READ] += max(0.0, spent - worked)
                if block is None:
                    return
                self.bytes += int(block.size.sum())
                yield block

    def note_cut(self, begin: float) -> None:
        """A record was cut since `begin`."""
        self.main[CUT] += self.clock() - begin
        self.taken += 1

    def note_batch(self, begin: float, records: int) -> None:
        """A batch was made since `begin`."""
        self.main[BATCH] = self.main.get(BATCH, 0.0) + self.clock() - begin
        self.records += records

    def laps(self, chain: Iterable[Op]) -> Laps:
        """The stop-watch of one thread for some records; `add` hands its times over."""
        if self._stages is None:
            self._stages = stages(list(chain))
        return Laps(self.clock, self._stages)

    def so_far(self) -> dict[str, float]:
        """A copy of `worked`, whatever threads are at."""
        with self._lock:
            return dict(self.worked)

    def add(self, laps: Laps) -> None:
        """What a thread's stop-watch measured; any thread may say so."""
        with self._lock:
            for name, seconds in laps.busy.items():
                self.worked[name] = self.worked.get(name, 0.0) + seconds


class Laps:
    """A stop-watch: called with the name of the stage that ends now, which began when the one before ended."""

    def __init__(self, clock: Clock, stages: Sequence[str]) -> None:
        self._clock = clock
        self._stages = stages
        self._last = clock()
        self.busy: dict[str, float] = {}

    def __call__(self, stage: str) -> None:
        now = self._clock()
        self.busy[stage] = self.busy.get(stage, 0.0) + now - self._last
        self._last = now

    def note_step(self, first: int, after: int) -> None:
        """The ops `first`…`after` of the chain were done, together where they are several."""
        self(self._stages[first] if after == first + 1 else "|".join(self._stages[first:after]))


def stages(ops: Sequence[Op]) -> list[str]:
    """The ops as stages: `decode`; with the field, or a mark, where there are two of a name."""
    names: list[str] = []
    plain = [op.name for op in ops]
    for op in ops:
        name = f"{op.name}({op.ext})" if plain.count(op.name) > 1 and hasattr(op, "ext") else op.name
        while name in names:
            name += "′"
        names.append(name)
    return names
