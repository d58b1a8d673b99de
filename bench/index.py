"""Indexing a shard, and reading random records through the index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench import Figure, Side

SHARD = "tiny-0.tar"
READS = 300
PEER_MEMBERS = 120_000


def tarviz_build(data: Path) -> Callable[[], int]:
    from tarviz import index

    return lambda: len(index(str(data / SHARD), cache=False))


def ratarmount_build(data: Path) -> Callable[[], int]:
    from ratarmountcore.mountsource.formats.tar import SQLiteIndexedTar

    def work() -> int:
        with SQLiteIndexedTar(str(data / SHARD), writeIndex=False, clearIndexCache=True, parallelization=1, printDebug=0):
            return PEER_MEMBERS // 2

    return work


def numbers() -> list[int]:
    return np.random.default_rng(0).integers(0, 60_000, READS).tolist()


def tarviz_read(data: Path) -> Callable[[], int]:
    from tarviz import index

    made = index(str(data / SHARD), cache=False)

    def work() -> int:
        found = (made[f"tiny/{number:08d}"] for number in numbers())
        return sum(len(record["png"]) + len(record["cls"]) > 0 for record in found)

    return work


def ratarmount_read(data: Path) -> Callable[[], int]:
    from ratarmountcore.mountsource.formats.tar import SQLiteIndexedTar

    archive = SQLiteIndexedTar(str(data / SHARD), writeIndex=False, clearIndexCache=True, parallelization=1, printDebug=0)

    def member(name: str) -> bytes:
        info = archive.lookup(name)
        assert info is not None, name
        with archive.open(info) as file:
            return file.read()

    def work() -> int:
        return sum(len(member(f"/tiny/{number:08d}.png")) + len(member(f"/tiny/{number:08d}.cls")) > 0 for number in numbers())

    return work


FIGURES = [
    Figure(
        "index-build",
        "index a shard, tiny",
        Side("tarviz", tarviz_build),
        Side("ratarmountcore", ratarmount_build),
        at_least=30,
        sets=("tiny",),
        rounds=3,
    ),
    Figure(
        "index-read",
        "read a random record by its key, tiny (time)",
        Side("tarviz", tarviz_read),
        Side("ratarmountcore", ratarmount_read),
        at_most=0.3,
        sets=("tiny",),
    ),
]
