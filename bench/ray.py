"""Workers of a Ray on this machine: loops fed by two of them against two threads here, and Ray Data's own reader of shards."""

from __future__ import annotations

import atexit
import functools
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import ITSELF, Figure, Side, Value, sweep
from bench._data import PHOTO, TINY
from bench._figure import Prepare
from bench.decode import THREADS, batches, pipeline

BATCH = 64
OVERHEAD = 200  # shards


@functools.cache
def cluster() -> Any:
    """A Ray of two processors, ended with this process."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    warnings.simplefilter("ignore")
    ray.init(address="local", num_cpus=THREADS, include_dashboard=False, log_to_driver=False, logging_level="error")
    ray.data.DataContext.get_current().enable_progress_bars = False
    atexit.register(ray.shutdown)
    return ray


def streamed(data: Path) -> Callable[[], int]:
    cluster()
    return batches(pipeline(data, name=PHOTO).eager(batch=BATCH, engine="ray", num_workers=THREADS))


def threads(data: Path) -> Callable[[], int]:
    return batches(pipeline(data, name=PHOTO).eager(batch=BATCH, num_workers=THREADS))


def overhead(data: Path) -> float:
    """Milliseconds that a shard costs more as a task on Ray than in a worker process here: 200 shards of ten small records, two workers."""
    cluster()
    from bench._growth import keys, shard
    from tarviz import convert

    with tempfile.TemporaryDirectory(prefix="tarviz-overhead-") as folder:
        urls = [str(shard(Path(folder, f"s-{at:03d}.tar"), keys(10), b"x" * 100)) for at in range(OVERHEAD)]

        def seconds(engine: str) -> float:
            begin = time.perf_counter()
            convert(urls, f"{folder}/{engine}-{{:03d}}.tfrecord", engine=engine, num_workers=THREADS)
            return time.perf_counter() - begin

        seconds("ray")  # its workers have begun
        found = [seconds("ray") - seconds("local") for _ in range(3)]
    return 1000 * statistics.median(found) / OVERHEAD


def rows(dataset: Any) -> int:
    """Every row once."""
    return sum(len(batch) for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow"))


def ours(name: str) -> Callable[[Path], Callable[[], int]]:
    def prepare(data: Path) -> Callable[[], int]:
        cluster()
        import tarviz

        return lambda: rows(tarviz.read_ray(str(data / name)))

    return prepare


def theirs(name: str, blocks: int | None, at_once: int | None) -> Prepare:
    def prepare(data: Path) -> Callable[[], int]:
        ray = cluster()
        from tarviz.stores import expand

        paths = list(expand(str(data / name)))
        return lambda: rows(ray.data.read_webdataset(paths, decoder=None, override_num_blocks=blocks, concurrency=at_once))

    return prepare


PEER = "ray.data.read_webdataset, decoder=None"
BLOCKS = {"its own blocks": None, "one block": 1, "4 blocks": 4}
AT_ONCE = {"as many tasks as it likes": None, "2 tasks": 2}

FIGURES = [
    Figure(
        "ray-task",
        "what a shard costs more as a task of Ray than here, 200 tiny shards converted by 2 workers",
        Value(overhead, "ms"),
        at_most=50,
        packages=("ray",),
    ),
    Figure(
        "ray-stream",
        "decode + resize 224 + batch, photo, eager, 2 workers of Ray",
        Side("tarviz, engine='ray'", streamed),
        Side("tarviz, 2 threads", threads, few=ITSELF),
        at_least=0.8,
        sets=("photo",),
        packages=("ray",),
    ),
    *(
        Figure(
            f"ray-data-{name}",
            f"records as they are into Ray Data, {name}",
            Side("tarviz.read_ray", ours(urls)),
            Side(PEER, sweep(functools.partial(theirs, urls), BLOCKS, AT_ONCE)),
            at_least=least,
            sets=(name,),
            packages=("ray", "pandas"),
        )
        for name, urls, least in (("tiny", TINY, 5), ("photo", PHOTO, 2))
    ),
]
