"""Tasks of an engine as they end, in a notebook: shards done and failed, speed, time left, and the same of each worker.

The cell's output is written anew while the work goes on; what it showed last is what a saved notebook holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tarviz import engines
from tarviz.cli import html_page, verb_base
from tarviz.model.config import format_size
from tarviz.model.errors import TarvizError

Amount = Callable[[Any], tuple[int, int | None]]
"""Records and bytes of a task's result; None: as many bytes as the task told of."""
Show = Callable[[dict[str, str]], None]

SHOWN = 20  # workers with a row of their own
_EVERY = 0.3  # seconds between two drawings
_HEAD = ("failed", "records", "records/s", "bytes/s")
_BAR = (
    '<div style="height: 6px; border-radius: 3px; background: var(--line); overflow: hidden">'
    '<div style="height: 100%; width: {:.1f}%; background: var(--mark)"></div></div>'
)


@dataclass(slots=True)
class Work:
    """What was done: by one worker, or by all."""

    shards: int = 0
    failed: int = 0
    records: int = 0
    bytes: int = 0

    def add(self, other: Work) -> None:
        for part in Work.__slots__:
            setattr(self, part, getattr(self, part) + getattr(other, part))

    def cells(self, seconds: float) -> tuple[str, ...]:
        """As a row of the table."""
        speed = f"{self.records / seconds:,.0f}", f"{format_size(self.bytes / seconds)}/s"
        return f"{self.shards:,}", f"{self.failed:,}" if self.failed else "", f"{self.records:,}", *speed


@dataclass
class ShardTable:
    """The table of one run over `total` shards.

    >>> table = ShardTable(4, "convert", lambda records: (records, None), clock=iter([0.0, 2.0, 2.0]).__next__)
    >>> table.heard(engines.TaskEnd(0, "here:7", True, 100, 5_000_000))
    >>> print(table.text())
    convert: 1 of 4 shards, 50 records/s, 2.50 MB/s, 6 s left
    """

    total: int
    label: str
    amount: Amount
    unit: str = "shards"
    clock: Callable[[], float] = time.monotonic
    all: Work = field(default_factory=Work)
    workers: dict[str, Work] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    over: str = ""  # how the run ended
    show: Show | None = None  # what draws it

    def __post_init__(self) -> None:
        self._begin = self._now = self._due = self.clock()

    def cut(self, shards: int, parts: int) -> None:
        """So many of the shards are worked on in so many parts; these are counted from now on."""
        if parts > shards:
            self.total, self.unit = self.total + parts - shards, "parts"

    def heard(self, done: engines.TaskEnd) -> None:
        """A task ended."""
        self._now = self.clock()
        records, size = self.amount(done.value) if done.good else (0, 0)
        one = Work(int(done.good), int(not done.good), records, done.size if size is None else size)
        for work in (self.all, self.workers.setdefault(done.worker, Work())):
            work.add(one)
        if not done.good:
            code = done.value.code if isinstance(done.value, TarvizError) else type(done.value).__name__
            self.errors[code] = self.errors.get(code, 0) + 1
        if self.show is not None and self._now >= self._due:
            self._due = self._now + _EVERY
            self.show(self.bundle())

    @property
    def seconds(self) -> float:
        """From the beginning to the task that ended last."""
        return max(self._now - self._begin, 1e-3)

    def text(self) -> str:
        """The line above the table."""
        ended = self.all.shards + self.all.failed
        failed = [f"{self.all.failed:,} failed ({', '.join(f'{count:,} × {code}' for code, count in self.errors.items())})"]
        speed = [f"{self.all.records / self.seconds:,.0f} records/s", f"{format_size(self.all.bytes / self.seconds)}/s"]
        parts = [f"{self.label}: {self.all.shards:,} of {self.total:,} {self.unit}", *(failed if self.all.failed else ()), *speed]
        if self.over or ended >= self.total:
            parts.append(f"{self.over or 'done'} after {self.seconds:.1f} s")
        elif ended:
            parts.append(f"{self.seconds / ended * (self.total - ended):.0f} s left")
        return ", ".join(parts)

    def html(self) -> str:
        """The table, for a light page and a dark one."""
        busy = sorted(self.workers.items(), key=lambda pair: (-pair[1].failed, -pair[1].shards, pair[0]))
        rows = [(name, *work.cells(self.seconds)) for name, work in busy[:SHOWN]]
        if len(busy) > SHOWN:
            rest = Work()
            for _, work in busy[SHOWN:]:
                rest.add(work)
            rows.append((f"{len(busy) - SHOWN:,} more", *rest.cells(self.seconds)))
        share = 100 * (self.all.shards + self.all.failed) / max(self.total, 1)
        shown = html_page.table([*rows, ("all", *self.all.cells(self.seconds))], header=("worker", self.unit, *_HEAD), right=range(1, 6))
        return html_page.fragment(f"<p>{html_page.text(self.text())}</p>{_BAR.format(min(share, 100))}{shown}")

    def bundle(self) -> dict[str, str]:
        """What a cell shows."""
        return {"text/plain": self.text(), "text/html": self.html()}


@contextmanager
def show_tasks(total: int, label: str, amount: Amount, engine: str) -> Iterator[ShardTable]:
    """What counts the tasks that an engine tells of, shown below the cell where this is a notebook and the work is done elsewhere."""
    table = ShardTable(total, label, amount)
    if not (engines.travels(engine) and verb_base.in_notebook()):
        yield table
        return
    table.show = _cell(table.bundle())
    try:
        yield table
    except BaseException as error:
        ends = {KeyboardInterrupt: "interrupted", GeneratorExit: "done"}  # no more of it is wanted
        table.over = ends.get(type(error), "ended by an error")
        raise
    finally:
        table.over = table.over or "done"
        table.show(table.bundle())


def each_task(
    label: str,
    job: engines.Job,
    tasks: Sequence[Any],
    amount: Amount,
    engine: str,
    address: str | None,
    jobs: int | None,
    errors: engines.Errors | None = None,
    unit: str = "shards",
) -> Generator[tuple[Any, Any], None, None]:
    """Each task and its result, in order, `jobs` at a time; how far they are is shown meanwhile.

    An error ends the work, or is kept by `errors`, if given, and raised when all are done.
    """
    count = engines.count(engine, jobs, len(tasks))
    with (
        verb_base.progress(len(tasks), unit, label=label) as bar,
        show_tasks(len(tasks), label, amount, engine) as table,
        engines.start(engine, job, engines.EnginePlan(count, heard=table.heard, address=address)) as workers,
        closing(workers.run(tasks, errors.keep if errors is not None else None)) as results,
    ):
        for task, (result, _) in zip(tasks, results, strict=True):
            bar.add()
            if result is not None:
                yield task, result
    if errors is not None:
        errors.settle()


def _cell(first: dict[str, str]) -> Show:
    """Show something below the cell that runs; what is returned puts another thing in its place."""
    from IPython.display import display

    handle = display(first, raw=True, display_id=True)
    return lambda bundle: handle.update(bundle, raw=True)
