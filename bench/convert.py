"""Tar to TFRecord in one process, against the usual loop and against what the machine can do at all."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import Figure, Side
from bench._data import PHOTO, TINY

PEER_RECORDS = 12_000  # the loop's records, held in memory
BLOCK = 1 << 20


def out() -> Path:
    """A folder for outputs that is in memory where the system has one: the disk is not what is measured."""
    shared = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="tarviz-bench-", dir=shared if os.access(shared, os.W_OK) else None))


def tarviz(template: str) -> Callable[[Path], Callable[[], int]]:
    def prepare(data: Path) -> Callable[[], int]:
        from tarviz import convert

        def work() -> int:
            folder = out()
            try:
                made = convert(str(data / template), str(folder / "x-{}.tfrecord"), types={"cls": "int64"}, num_workers=1)
                return made.records
            finally:
                shutil.rmtree(folder)

        return work

    return prepare


def loop(template: str, image: str) -> Callable[[Path], Callable[[], int]]:
    def prepare(data: Path) -> Callable[[], int]:
        import tensorflow as tf

        from tarviz import records

        feature, train = tf.train.Feature, tf.train
        held = []
        for record in records(str(data / template)):
            held.append((record.key.encode(), bytes(record[image]), int(bytes(record["cls"]))))
            if len(held) == PEER_RECORDS:
                break

        def work() -> int:
            folder = out()
            try:
                with tf.io.TFRecordWriter(str(folder / "x.tfrecord")) as writer:
                    for key, payload, cls in held:
                        features = {
                            "__key__": feature(bytes_list=train.BytesList(value=[key])),
                            image: feature(bytes_list=train.BytesList(value=[payload])),
                            "cls": feature(int64_list=train.Int64List(value=[cls])),
                        }
                        writer.write(train.Example(features=train.Features(feature=features)).SerializeToString())
                return len(held)
            finally:
                shutil.rmtree(folder)

        return work

    return prepare


def copy(template: str, count: int) -> Callable[[Path], Callable[[], int]]:
    def prepare(data: Path) -> Callable[[], int]:
        import google_crc32c
        from braceexpand import braceexpand

        paths = [data / name for name in braceexpand(template)]

        def work() -> int:
            folder = out()
            try:
                for path in paths:
                    crc = 0
                    with path.open("rb", buffering=0) as source, (folder / path.name).open("wb", buffering=0) as sink:
                        while block := source.read(BLOCK):
                            crc = google_crc32c.extend(crc, block)
                            sink.write(block)
                return count
            finally:
                shutil.rmtree(folder)

        return work

    return prepare


LOOP = "loop of tf.train.Example + TFRecordWriter over records in memory"
COPY = "copying the same bytes with CRC32C over them (the limit)"


def limits(name: str, template: str, count: int, *, wall: float) -> list[Figure]:
    """Against what no conversion can go without, on the clock and in processor time."""
    what = f"tar → TFRecord, one process, {name}"
    figure = partial(Figure, ours=Side("tarviz", tarviz(template)), peer=Side(COPY, copy(template, count)), sets=(name,))
    return [
        figure(f"convert-{name}-limit", what, at_least=wall),
        figure(f"convert-{name}-cpu", f"{what} (CPU seconds of all threads)", at_most=1.3, clock=time.process_time),
    ]


FIGURES = [
    Figure(
        "convert-tiny",
        "tar → TFRecord, one process, tiny",
        Side("tarviz", tarviz(TINY)),
        Side(LOOP, loop(TINY, "png")),
        at_least=4,
        sets=("tiny",),
    ),
    Figure(
        "convert-photo",
        "tar → TFRecord, one process, photo",
        Side("tarviz", tarviz(PHOTO)),
        Side(LOOP, loop(PHOTO, "jpg")),
        at_least=1.8,
        sets=("photo",),
    ),
    *limits("tiny", TINY, 120_000, wall=0.6),
    *limits("photo", PHOTO, 6_000, wall=0.85),
]
