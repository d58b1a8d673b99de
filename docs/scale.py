"""What a conversion on a cluster costs and where it stops scaling, on paper: `bench/scale.json` and a model of three lines.

A worker takes `shard + byte × size` seconds for a shard, and `workers` of them work at once. The process that sends tasks (the driver)
takes `task(workers)` seconds for each, one after the other; where outputs are cut by size every byte comes back through it as well.
What takes longer is what a run takes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SHARDS = 100_000
WORKERS = (10, 100, 1000)
SIZES = (1e6, 1e7, 1e8, 1e9)
UNDER_WAY = 2  # tasks a processor: one runs, one is ready


@dataclass(frozen=True)
class Model:
    """Seconds: of a worker for a shard and a byte; of the driver for a task, for each task beside it, for a byte that comes back."""

    shard: float
    byte: float
    task: float
    beside: float
    back: float

    @classmethod
    def of(cls, measured: dict[str, Any]) -> Model:
        """Straight lines through what was measured."""
        beside, task = np.polyfit(*np.array(measured["under_way"]["driver"]).T, 1)
        back, _ = np.polyfit(*np.array(measured["bytes"]["driver"]).T, 1)
        around = max(measured["shard"]["driver"] - measured["under_way"]["driver"][0][1], 0.0)  # entries, reports, proofs
        return cls(measured["shard"]["local"], measured["byte"], max(task, 0.0) + around, max(beside, 0.0), max(back, 0.0))

    def driver(self, workers: int) -> float:
        """Seconds of the driver for a task."""
        return self.task + self.beside * UNDER_WAY * workers

    def worker(self, size: float) -> float:
        """Seconds of a worker for a shard."""
        return self.shard + self.byte * size

    def most(self, size: float) -> int:
        """How many workers one driver keeps at work."""
        a, b, c = self.beside * UNDER_WAY, self.task, -self.worker(size)
        return int((-b + (b * b - 4 * a * c) ** 0.5) / (2 * a)) if a else int(-c / b)

    def run(self, workers: int, size: float, shards: int = SHARDS) -> tuple[float, str]:
        """Seconds for all shards, and who is waited for."""
        by_workers, by_driver = shards * self.worker(size) / workers, shards * self.driver(workers)
        return max(by_workers, by_driver), "workers" if by_workers >= by_driver else "driver"


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "bench" / "scale.json").read_text("utf-8"))
    return found


def shown(seconds: float) -> str:
    """A time as people say it.

    >>> shown(0.00012), shown(12.4), shown(400), shown(90_000)
    ('120 µs', '12 s', '6.7 min', '25 h')
    """
    for least, unit in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= least * (2 if unit in ("h", "min") else 1):
            return f"{seconds / least:.2g} {unit}" if seconds / least < 99.5 else f"{seconds / least:,.0f} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def size(value: float) -> str:
    return f"{value / 1e9:g} GB" if value >= 1e9 else f"{value / 1e6:g} MB"


def costs() -> list[tuple[str, str]]:
    """What was measured, and the lines of the model."""
    measured = read()
    model, one = Model.of(measured), measured["shard"]
    under_way = ", ".join(f"{shown(value)} ({count:,} under way)" for count, value in measured["under_way"]["driver"])
    return [
        ("task that does nothing: processor time of the driver", under_way),
        ("the same, on the clock, two workers", ", ".join(f"{shown(each)} ({n:,})" for n, each in measured["under_way"]["clock"])),
        ("shard of ten small records converted, here, one process", shown(one["local"])),
        ("the same, a task on two workers: on the clock", shown(one["clock"])),
        ("the same: processor time of the driver", shown(one["driver"])),
        ("the same, kept by `--resume`", shown(one["kept"])),
        ("manifest beside an output", f"{one['manifest_bytes']:,.0f} bytes"),
        ("GB of large records converted, one worker", shown(model.byte * 1e9)),
        ("GB that comes back through the driver (outputs cut by size)", shown(model.back * 1e9)),
    ]


def table() -> list[tuple[str, ...]]:
    """100 000 shards of several sizes by 10, 100, 1 000 workers; who is waited for; how many workers one driver feeds; what they read."""
    model, rows = Model.of(read()), []
    for each in SIZES:
        times = [f"{shown(seconds)} ({who})" for seconds, who in (model.run(workers, each) for workers in WORKERS)]
        cut = shown(SHARDS * each * model.back)
        read_ = f"{min(WORKERS[-1], model.most(each)) * each / model.worker(each) / 1e9:.2g} GB/s"
        rows.append((size(each), *times, f"{model.most(each):,}", read_, cut))
    return rows


HEADER = ("shard", *(f"{workers:,} workers" for workers in WORKERS), "workers a driver feeds", "then read", "cut by size: at least")


def when() -> str:
    measured = read()
    return f"{measured['machine'].rpartition(';')[0]}. Measured {measured['date']}, {measured['commit']}."
