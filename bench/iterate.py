"""Iterating records, raw bytes of every field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench import Figure, Side
from bench._data import PHOTO, TINY


def tarviz(template: str, image: str) -> Callable[[Path], Callable[[], int]]:
    def prepare(data: Path) -> Callable[[], int]:
        from tarviz import records

        def work() -> int:
            count = 0
            for record in records(str(data / template)):
                _, _, count = record[image], record["cls"], count + 1
            return count

        return work

    return prepare


def webdataset(template: str, image: str) -> Callable[[Path], Callable[[], int]]:
    def prepare(data: Path) -> Callable[[], int]:
        from webdataset import WebDataset

        def work() -> int:
            count = 0
            for record in WebDataset(str(data / template), shardshuffle=False):
                _, _, count = record[image], record["cls"], count + 1
            return count

        return work

    return prepare


FIGURES = [
    Figure(
        "iterate-tiny",
        "iterate records, raw bytes, tiny",
        Side("tarviz", tarviz(TINY, "png")),
        Side("webdataset", webdataset(TINY, "png")),
        at_least=30,
        sets=("tiny",),
    ),
    Figure(
        "iterate-photo",
        "iterate records, raw bytes, photo",
        Side("tarviz", tarviz(PHOTO, "jpg")),
        Side("webdataset", webdataset(PHOTO, "jpg")),
        at_least=6,
        sets=("photo",),
    ),
]
