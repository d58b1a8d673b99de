"""Indexing a shard, and reading random records through the index."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench import Figure, Side, sweep
from bench._figure import Prepare
from bench.convert import kept, out

SHARD = "tiny-0.tar"
READS = 300
PEER_MEMBERS = 120_000


def tarviz_build(data: Path) -> Callable[[], int]:
    from tarviz import index

    return lambda: len(index(str(data / SHARD), cache=False))


def ratarmount(data: Path, threads: int, folder: Path | None) -> Any:
    """The shard opened by ratarmountcore, its index made anew: in a file, or kept in memory without a folder."""
    from ratarmountcore.mountsource.formats.tar import SQLiteIndexedTar

    index = {"writeIndex": bool(folder), "indexFilePath": f"{folder}/index.sqlite" if folder else ":memory:"}
    return SQLiteIndexedTar(str(data / SHARD), clearIndexCache=True, parallelization=threads, printDebug=0, **index)


def ratarmount_build(threads: int, place: Callable[[], str | Path] | None) -> Prepare:
    def prepare(data: Path) -> Callable[[], int]:
        folder = place and kept(place)

        def work() -> int:
            with ratarmount(data, threads, folder):
                return PEER_MEMBERS // 2

        return work

    return prepare


def numbers() -> list[int]:
    return np.random.default_rng(0).integers(0, 60_000, READS).tolist()


def tarviz_read(data: Path) -> Callable[[], int]:
    from tarviz import index

    made = index(str(data / SHARD), cache=False)

    def work() -> int:
        found = (made[f"tiny/{number:08d}"] for number in numbers())
        return sum(len(record["png"]) + len(record["cls"]) > 0 for record in found)

    return work


def ratarmount_read(opened: bool, place: Callable[[], str | Path] | None) -> Prepare:
    """Members `opened` as files, or read in one call."""

    def prepare(data: Path) -> Callable[[], int]:
        archive = ratarmount(data, 1, place and kept(place))

        def member(name: str) -> bytes:
            info = archive.lookup(name)
            if not opened:
                return archive.read(info, info.size, 0)  # type: ignore[no-any-return,unused-ignore]
            with archive.open(info, buffering=0) as file:
                return file.read()  # type: ignore[no-any-return,unused-ignore]

        def work() -> int:
            return sum(len(member(f"/tiny/{number:08d}.png")) + len(member(f"/tiny/{number:08d}.cls")) > 0 for number in numbers())

        return work

    return prepare


THREADS = {"one thread": 1, "2 threads": 2}
PLACES = {"index in memory": None, "index on disk": tempfile.mkdtemp, "index in shared memory": out}

FIGURES = [
    Figure(
        "index-build",
        "index a shard, tiny",
        Side("tarviz", tarviz_build),
        Side("ratarmountcore", sweep(ratarmount_build, THREADS, PLACES)),
        at_least=30,
        sets=("tiny",),
        rounds=3,
    ),
    Figure(
        "index-read",
        "read a random record by its key, tiny (time)",
        Side("tarviz", tarviz_read),
        Side("ratarmountcore", sweep(ratarmount_read, {"open": True, "read": False}, PLACES)),
        at_most=0.3,
        sets=("tiny",),
    ),
]
