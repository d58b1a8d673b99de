"""How cost grows: with records, shards, the size of members, and workers. `python -m bench._growth` writes `bench/growth.json`.

A point is the median of three rounds (one for ten thousand shards), in seconds of processor time over all processes (so that
another program on the machine changes it little), but for workers, which is time on the clock. `docs/growth.py` draws what was
measured.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.__main__ import FOLDER, commit, machine, there

RESULTS = FOLDER / "growth.json"
ROUNDS = 3
MILLION = 1_000_000
PER_SHARD = 10  # records of each shard where their number grows
BYTES = 400_000_000  # of each set where the size of members grows


def shard(path: Path, keys: Iterator[str], payload: bytes) -> Path:
    """A tar of records that hold one field."""
    from tarviz.samples import write_shard

    write_shard(path, ((key, {"bin": payload}) for key in keys))
    return path


def keys(count: int, first: int = 0) -> Iterator[str]:
    return (f"{number:08d}" for number in range(first, first + count))


def iterated(urls: Any) -> int:
    from tarviz import records

    return sum(1 for record in records(urls) if record["bin"] is not None)


def indexed(urls: Any) -> None:
    from tarviz import index

    for url in urls:
        index(url, cache=False)


def converted(urls: Any) -> None:
    from tarviz import convert

    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        convert(urls, f"{folder}/x-{{}}.tfrecord", num_workers=1)


def listed(urls: Any) -> None:
    from tarviz.commands.ls import ls

    ls(urls, cache=False)


def spent() -> float:
    """Seconds of processor time of this process and of its children that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def cost(work: Callable[[], Any], clock: Callable[[], float] = spent, rounds: int = ROUNDS) -> float:
    taken = []
    for _ in range(rounds):
        begin = clock()
        work()
        taken.append(clock() - begin)
    return statistics.median(taken)


Point = tuple[float, float]
Works = dict[str, Callable[[Any], Any]]


def by_records(folder: Path) -> dict[str, list[Point]]:
    """Seconds by the number of records of 100 bytes; 10 million are ten shards of a million."""
    works: Works = {"records": iterated, "index": indexed, "convert": converted}
    found: dict[str, list[Point]] = {name: [] for name in works}
    million = ""
    for count in (1, 100, 10_000, MILLION // 10, MILLION, 10 * MILLION):
        if count <= MILLION:
            million = str(shard(folder / f"records-{count}.tar", keys(count), b"x" * 100))
        urls = [million] * max(1, count // MILLION)
        for name, work in works.items():
            found[name].append((count, cost(partial(work, urls))))
    Path(million).unlink()
    return found


def by_shards(folder: Path) -> dict[str, list[Point]]:
    """Seconds by the number of shards of ten records."""
    works: Works = {"records": iterated, "ls": listed, "convert": converted}
    found: dict[str, list[Point]] = {name: [] for name in works}
    urls: list[str] = []
    for count in (1, 10, 100, 1_000, 10_000):
        more = range(len(urls), count)
        urls.extend(str(shard(folder / f"shard-{at:05d}.tar", keys(PER_SHARD, at * PER_SHARD), b"x" * 100)) for at in more)
        for name, work in works.items():
            found[name].append((count, cost(partial(work, list(urls)), rounds=1 if count == 10_000 else ROUNDS)))
    return found


def by_size(folder: Path) -> dict[str, list[Point]]:
    """Seconds per GB by the size of members, in sets of 400 MB."""
    works: Works = {"records": iterated, "index": indexed, "convert": converted}
    found: dict[str, list[Point]] = {name: [] for name in works}
    for size in (100, 1_000, 10_000, 100_000, MILLION, 10 * MILLION, 100 * MILLION):
        count = max(4, min(200_000, BYTES // size))
        url = shard(folder / f"size-{size}.tar", keys(count), b"x" * size)
        for name, work in works.items():
            found[name].append((size, cost(partial(work, [str(url)])) / (count * size / 1e9)))
        url.unlink()
    return found


def by_workers(data: Path) -> dict[str, list[Point]]:
    """Photos a second, decoded, resized and in batches, by the number of workers."""
    from bench import _data
    from bench.decode import BATCH, batches, pipeline

    _data.make(data, "photo")
    found: dict[str, list[Point]] = {"eager": [], "tf": []}
    if there("torch"):
        found["torch"] = []
    for workers in (1, 2, 4, 8, 16):
        for name, points in found.items():
            work = _workers(name, workers, data, batches, pipeline, BATCH)
            count = work()
            points.append((workers, count / cost(work, time.perf_counter)))
    return found


def _workers(name: str, workers: int, data: Path, batches: Any, pipeline: Any, batch: int) -> Callable[[], int]:
    made = pipeline(data)
    if name == "torch":
        from torch.utils.data import DataLoader

        done: Callable[[], int] = batches(DataLoader(made.torch(), batch_size=batch, num_workers=workers, persistent_workers=True))
    else:
        done = batches(getattr(made, name)(batch=batch, num_workers=workers))
    return done


SERIES = {"records": by_records, "shards": by_shards, "size": by_size, "workers": by_workers}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench._growth", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"series: {', '.join(SERIES)}")
    parser.add_argument("--data", type=Path, default=FOLDER / "data")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    known = json.loads(options.results.read_text()) if options.results.is_file() else {}
    if options.one:
        [name] = options.names
        with tempfile.TemporaryDirectory(prefix="tarviz-growth-") as folder:
            lines = SERIES[name](options.data if name == "workers" else Path(folder))
        known[name] = {"lines": lines, "commit": commit(), "date": time.strftime("%Y-%m-%d", time.gmtime())}
        known["machine"] = machine()
        options.results.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
        for line, points in lines.items():
            print(name, line, *(f"{x:g}: {y:.3g}" for x, y in points), file=sys.stderr)
        return 0
    fixed = ["--data", str(options.data), "--results", str(options.results), "--one"]
    return max(
        subprocess.run([sys.executable, "-m", "bench._growth", name, *fixed], cwd=FOLDER.parent, check=False).returncode
        for name in itertools.chain(options.names or SERIES)
    )


if __name__ == "__main__":
    sys.exit(main())
