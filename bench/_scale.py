"""What a task on a cluster costs, and where it stops scaling. `python -m bench._scale` writes `bench/scale.json`.

Measured on a Ray of two workers on this machine: seconds of processor time of the process that sends tasks (the driver) for a task,
by how many are under way at once; for a byte of a result that comes back; for a shard before and after the tasks (its entry, its
manifest); seconds of a worker for a shard and a byte of it. `docs/scale.py` makes the tables from that.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from bench.__main__ import FOLDER, commit, machine
from bench._growth import keys, shard
from tarviz import engines

RESULTS = FOLDER / "scale.json"
ROUNDS = 3
TASKS = 400
SHARDS = 200
MB = 1_000_000


def idle(task: Any, file: IO[bytes] | None, tick: engines.Tick) -> Any:
    """A task that does nothing."""
    return task


def spooled(task: int, file: IO[bytes] | None, tick: engines.Tick) -> int:
    """A task whose result comes with a file of so many bytes."""
    assert file is not None
    file.write(b"x" * task)
    return task


def driven(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds on the clock, and of processor time of this process (all threads)."""
    begin, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begin, time.process_time() - used


def median(work: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, float]:
    found = [driven(work) for _ in range(rounds)]
    return statistics.median(each[0] for each in found), statistics.median(each[1] for each in found)


def tasks(name: str, count: int, under_way: int) -> Callable[[], None]:
    def work() -> None:
        with engines.start(name, idle, engines.EnginePlan(under_way)) as engine:
            for _ in engine.run(range(count)):
                pass

    return work


def by_under_way() -> dict[str, list[tuple[int, float]]]:
    """Seconds of the driver, and on the clock, for a task, by how many are under way."""
    found: dict[str, list[tuple[int, float]]] = {"driver": [], "clock": []}
    tasks("ray", 40, 2)()
    for under_way in (2, 20, 200, 2000):
        count = max(TASKS, 2 * under_way)
        clock, used = median(tasks("ray", count, under_way))
        found["driver"].append((under_way, used / count))
        found["clock"].append((under_way, clock / count))
    return found


def by_bytes(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Seconds of the driver for a task whose result comes with a file, by the bytes of that file."""
    found: dict[str, list[tuple[int, float]]] = {"driver": [], "clock": []}
    for size in (0, MB, 10 * MB):

        def work(size: int = size) -> None:
            with engines.start("ray", spooled, engines.EnginePlan(2, spool=str(folder))) as engine:
                for _ in engine.run([size] * 10):
                    pass

        work()
        clock, used = median(work)
        found["driver"].append((size, used / 10))
        found["clock"].append((size, clock / 10))
    return found


def converting(folder: Path) -> dict[str, float]:
    """Seconds for a shard: of the driver around the tasks, of a worker, of a rerun that keeps all; and the bytes of a manifest."""
    from tarviz import convert

    urls = [str(shard(folder / f"s-{at:04d}.tar", keys(10, at * 10), b"x" * 100)) for at in range(SHARDS)]

    def run(**options: Any) -> Callable[[], Any]:
        return lambda: convert(urls, str(folder / "out" / "t-{:04d}.tfrecord"), **options)

    local, _ = median(run(num_workers=1))
    clock, driver = median(run(engine="ray", num_workers=2))
    kept, _ = median(run(engine="ray", num_workers=2, resume=True))
    manifests = [path.stat().st_size for path in (folder / "out").glob("*.json")]
    return {
        "local": local / SHARDS,
        "clock": clock / SHARDS,
        "driver": driver / SHARDS,
        "kept": kept / SHARDS,
        "manifest_bytes": statistics.median(manifests),
    }


def per_byte(folder: Path) -> float:
    """Seconds of one worker for a byte of a shard of photos' size, converted."""
    from tarviz import convert

    size, count = 110_000, 1000
    url = str(shard(folder / "large.tar", keys(count), b"x" * size))
    work = lambda: convert(url, str(folder / "large.tfrecord"), num_workers=1)  # noqa: E731
    work()
    return median(work)[0] / (size * count)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench._scale", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    from bench.ray import cluster

    cluster()
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="tarviz-scale-", dir=shared if os.access(shared, os.W_OK) else None) as name:
        folder = Path(name)
        content = {
            "under_way": by_under_way(),
            "bytes": by_bytes(folder),
            "shard": converting(folder),
            "byte": per_byte(folder),
            "machine": machine(),
            "commit": commit(),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
        }
    options.results.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(content, indent=1), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
