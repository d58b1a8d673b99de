"""Tar to TFRecord in one process, against the usual loop and against what the machine can do at all."""

from __future__ import annotations

import atexit
import io
import os
import shutil
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import Figure, Side, sweep
from bench._data import PHOTO, TINY
from bench._figure import Prepare

PEER_RECORDS = 12_000  # the loop's records, held in memory


def out() -> Path:
    """A folder for outputs that is in memory where the system has one: the disk is not what is measured."""
    shared = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="tarviz-bench-", dir=shared if os.access(shared, os.W_OK) else None))


def kept(make: Callable[[], str | Path] = out) -> Path:
    """A folder that is gone when this process is."""
    folder = Path(make())
    atexit.register(shutil.rmtree, folder)
    return folder


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


def anew(image: str) -> Callable[[bytes, bytes, int], Any]:
    """A new message from its parts."""
    from tensorflow import train

    def make(key: bytes, payload: bytes, cls: int) -> Any:
        features = {
            "__key__": train.Feature(bytes_list=train.BytesList(value=[key])),
            image: train.Feature(bytes_list=train.BytesList(value=[payload])),
            "cls": train.Feature(int64_list=train.Int64List(value=[cls])),
        }
        return train.Example(features=train.Features(feature=features))

    return make


def in_place(image: str, *, again: bool) -> Callable[[bytes, bytes, int], Any]:
    """A message filled in its place: a new one, or the same one `again` and again."""
    from tensorflow import train

    kept = train.Example()

    def make(key: bytes, payload: bytes, cls: int) -> Any:
        example = kept if again else train.Example()
        example.Clear()
        feature = example.features.feature
        feature["__key__"].bytes_list.value.append(key)
        feature[image].bytes_list.value.append(payload)
        feature["cls"].int64_list.value.append(cls)
        return example

    return make


class Framed:
    """A file of frames, summed by google_crc32c."""

    def __init__(self, path: str) -> None:
        from google_crc32c import value

        self._file, self._crc = open(path, "wb", 1 << 20), value  # noqa: SIM115  closed by __exit__

    def _masked(self, part: bytes) -> bytes:
        crc = self._crc(part)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    def write(self, record: bytes) -> None:
        length = struct.pack("<Q", len(record))
        self._file.write(length + self._masked(length))
        self._file.write(record)
        self._file.write(self._masked(record))

    def __enter__(self) -> Framed:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def tensorflow_writer(path: str) -> Any:
    import tensorflow as tf

    return tf.io.TFRecordWriter(path)


def loop(template: str, image: str, message: Callable[[str], Callable[[bytes, bytes, int], Any]], writer: Callable[[str], Any]) -> Prepare:
    def prepare(data: Path) -> Callable[[], int]:
        from tarviz import records

        make, held = message(image), []
        for record in records(str(data / template)):
            held.append((record.key.encode(), bytes(record[image]), int(bytes(record["cls"]))))
            if len(held) == PEER_RECORDS:
                break

        def work() -> int:
            folder = out()
            try:
                with writer(str(folder / "x.tfrecord")) as sink:
                    for fields in held:
                        sink.write(make(*fields).SerializeToString())
                return len(held)
            finally:
                shutil.rmtree(folder)

        return work

    return prepare


def loops(template: str, image: str) -> dict[str, Prepare]:
    messages = {"new Examples": anew, "filled in place": partial(in_place, again=False), "one filled again": partial(in_place, again=True)}
    return sweep(partial(loop, template, image), messages, {"TFRecordWriter": tensorflow_writer, "framed in Python": Framed})


def copy(template: str, count: int, size: int, kept: bool) -> Prepare:
    """Blocks of `size` bytes, each new or in a buffer that is `kept`."""

    def prepare(data: Path) -> Callable[[], int]:
        import google_crc32c
        from braceexpand import braceexpand

        paths, buffer = [data / name for name in braceexpand(template)], np.empty(size, np.uint8)
        content = buffer[:]
        content.flags.writeable = False  # google_crc32c asks for that

        def blocks(source: io.FileIO) -> Iterator[Any]:
            if not kept:
                yield from iter(partial(source.read, size), b"")
            while kept and (got := source.readinto(buffer)):
                yield content[:got]

        def work() -> int:
            folder = out()
            try:
                for path in paths:
                    crc = 0
                    with path.open("rb", buffering=0) as source, (folder / path.name).open("wb", buffering=0) as sink:
                        for block in blocks(source):
                            crc = google_crc32c.extend(crc, block)
                            sink.write(block)
                return count
            finally:
                shutil.rmtree(folder)

        return work

    return prepare


LOOP = "loop of tf.train.Example over records in memory"
COPY = "copying the same bytes with CRC32C over them (the limit)"


def limits(name: str, template: str, count: int, *, wall: float) -> list[Figure]:
    """Against what no conversion can go without, on the clock and in processor time."""
    what = f"tar → TFRecord, one process, {name}"
    sizes = {f"{size} kB": size << 10 for size in (64, 256, 1024, 4096)}
    copies = sweep(partial(copy, template, count), sizes, {"new blocks": False, "one buffer": True})
    figure = partial(Figure, ours=Side("tarviz", tarviz(template)), peer=Side(COPY, copies), sets=(name,))
    return [
        figure(f"convert-{name}-limit", what, at_least=wall),
        figure(f"convert-{name}-cpu", f"{what} (CPU seconds of all threads)", at_most=1.3, clock=time.process_time),
    ]


FIGURES = [
    Figure(
        "convert-tiny",
        "tar → TFRecord, one process, tiny",
        Side("tarviz", tarviz(TINY)),
        Side(LOOP, loops(TINY, "png")),
        at_least=4,
        sets=("tiny",),
    ),
    Figure(
        "convert-photo",
        "tar → TFRecord, one process, photo",
        Side("tarviz", tarviz(PHOTO)),
        Side(LOOP, loops(PHOTO, "jpg")),
        at_least=1.8,
        sets=("photo",),
    ),
    *limits("tiny", TINY, 120_000, wall=0.6),
    *limits("photo", PHOTO, 6_000, wall=0.85),
]
