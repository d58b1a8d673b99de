"""Workers of a Ray on this machine: loops fed by two of them against two threads here, and Ray Data's own reader of shards."""

from __future__ import annotations

import atexit
import functools
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import Figure, Side
from bench._data import PHOTO, TINY
from bench.decode import THREADS, batches, pipeline

BATCH = 64


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


def rows(dataset: Any) -> int:
    """Every row once."""
    return sum(len(batch) for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow"))


def ours(name: str) -> Callable[[Path], Callable[[], int]]:
    def prepare(data: Path) -> Callable[[], int]:
        cluster()
        import tarviz

        return lambda: rows(tarviz.read_ray(str(data / name)))

    return prepare


def theirs(name: str) -> Callable[[Path], Callable[[], int]]:
    def prepare(data: Path) -> Callable[[], int]:
        ray = cluster()
        from tarviz.stores import expand

        paths = expand(str(data / name))
        return lambda: rows(ray.data.read_webdataset(list(paths), decoder=None))

    return prepare


PEER = "ray.data.read_webdataset, decoder=None"

FIGURES = [
    Figure(
        "ray-stream",
        "decode + resize 224 + batch, photo, eager, 2 workers of Ray",
        Side("tarviz, engine='ray'", streamed),
        Side("tarviz, 2 threads", threads),
        at_least=0.8,
        sets=("photo",),
        packages=("ray",),
    ),
    *(
        Figure(
            f"ray-data-{name}",
            f"records as they are into Ray Data, {name}",
            Side("tarviz.read_ray", ours(urls)),
            Side(PEER, theirs(urls)),
            at_least=least,
            sets=(name,),
            packages=("ray", "pandas"),
        )
        for name, urls, least in (("tiny", TINY, 5), ("photo", PHOTO, 2))
    ),
]
