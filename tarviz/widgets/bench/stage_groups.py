"""What the threads of a run that is timed were busy with."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from tarviz.model.wording import plural
from tarviz.runners.eager import Eager
from tarviz.runners.stage_timer import CUT, READ, SCAN, StageTimer


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


def groups(timer: StageTimer, workers: int) -> list[Group]:
    """What the threads were busy with so far."""
    seconds = timer.clock() - timer.begun
    main, worked = dict(timer.main), timer.so_far()
    if not workers:
        first = {name: main.pop(name) for name in (READ, SCAN, CUT)}
        return [Group("this thread", 1, seconds, {**first, **worked, **main})]
    return [
        Group("reading thread", 1, seconds, main, "for the workers"),
        Group(plural(workers, "worker"), workers, seconds, worked, "for records"),
    ]


def count_steps(run: Eager, timer: StageTimer) -> Generator[tuple[int, int], None, None]:
    """(records, bytes of payload) of each step of a run; what was read ahead is shared out over the records cut."""
    before, told = 0, 0
    for _ in run:
        size = timer.bytes * timer.records // max(timer.taken, 1)
        yield timer.records - before, max(0, size - told)
        before, told = timer.records, max(told, size)
