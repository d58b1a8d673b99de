"""Tasks of an engine as they end, in a notebook: shards done and failed, speed, time left, and the same of each worker.

The cell's output is written anew while the work goes on; what it showed last is what a saved notebook holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

    def add(self, good: bool, records: int, size: int) -> None:
        self.shards += good
        self.failed += not good
        self.records += records
        self.bytes += size

    def cells(self, seconds: float) -> tuple[str, ...]:
        """As a row of the table."""
        speed = f"{self.records / seconds:,.0f}", f"{format_size(self.bytes / seconds)}/s"
        return f"{self.shards:,}", f"{self.failed:,}" if self.failed else "", f"{self.records:,}", *speed


@dataclass
class ShardTable:
    """The table of one run over `total` shards.

    >>> table = ShardTable(4, "convert", lambda records: (records, None), clock=iter([0.0, 2.0, 2.0]).__next__)
    >>> table.heard(engines.Done(0, "here:7", True, 100, 5_000_000))
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

    def __post_init__(self) -> None:
        self._begin = self._now = self.clock()

    def cut(self, shards: int, parts: int) -> None:
        """So many of the shards are worked on in so many parts; these are counted from now on."""
        if parts > shards:
            self.total, self.unit = self.total + parts - shards, "parts"

    def heard(self, done: engines.Done) -> None:
        """A task ended."""
        self._now = self.clock()
        records, size = self.amount(done.value) if done.good else (0, 0)
        for work in (self.all, self.workers.setdefault(done.worker, Work())):
            work.add(done.good, records, done.size if size is None else size)
        if not done.good:
            code = done.value.code if isinstance(done.value, TarvizError) else type(done.value).__name__
            self.errors[code] = self.errors.get(code, 0) + 1

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
                for part in Work.__slots__:
                    setattr(rest, part, getattr(rest, part) + getattr(work, part))
            rows.append((f"{len(busy) - SHOWN:,} more", *rest.cells(self.seconds)))
        share = 100 * (self.all.shards + self.all.failed) / max(self.total, 1)
        shown = html_page.table([*rows, ("all", *self.all.cells(self.seconds))], header=("worker", self.unit, *_HEAD), right=range(1, 6))
        return html_page.fragment(f"<p>{html_page.text(self.text())}</p>{_BAR.format(min(share, 100))}{shown}")

    def bundle(self) -> dict[str, str]:
        """What a cell shows."""
        return {"text/plain": self.text(), "text/html": self.html()}


class Listener:
    """Hears of tasks that ended: call it with each. `cut(shards, parts)` tells that tasks are parts of shards."""

    def __call__(self, done: engines.Done) -> None:
        return

    def cut(self, shards: int, parts: int) -> None:
        return


class _Drawn(Listener):
    """One that draws a table."""

    def __init__(self, table: ShardTable) -> None:
        self._table, self.show, self._due = table, _cell(table.bundle()), 0.0

    def __call__(self, done: engines.Done) -> None:
        self._table.heard(done)
        if (now := time.monotonic()) >= self._due:
            self._due = now + _EVERY
            self.show(self._table.bundle())

    def cut(self, shards: int, parts: int) -> None:
        self._table.cut(shards, parts)


@contextmanager
def shown(total: int, label: str, amount: Amount, engine: str) -> Iterator[Listener]:
    """What an engine tells of tasks that ended, shown below the cell where this is a notebook and the work is done elsewhere."""
    if not (engines.travels(engine) and verb_base.in_notebook()):
        yield Listener()
        return
    table = ShardTable(total, label, amount)
    drawn = _Drawn(table)
    try:
        yield drawn
    except GeneratorExit:  # no more of it is wanted
        raise
    except BaseException as error:
        table.over = "interrupted" if isinstance(error, KeyboardInterrupt) else "ended by an error"
        raise
    finally:
        table.over = table.over or "done"
        drawn.show(table.bundle())


def _cell(first: dict[str, str]) -> Show:
    """Show something below the cell that runs; what is returned puts another thing in its place."""
    from IPython.display import display

    handle = display(first, raw=True, display_id=True)
    return lambda bundle: handle.update(bundle, raw=True)
