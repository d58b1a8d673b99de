"""Tar to tf.data: two bytes fields a record, against a generator of records and against TFRecord files of the same records."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from bench import Figure, Side, sweep
from bench._data import PHOTO, TINY
from bench._figure import Prepare

BATCH = 256
PEER_RECORDS = 15_000  # of the generator, which needs minutes for all


def drain(dataset: Any) -> int:
    """Every record once, in batches of 256; returns how many."""
    count = 0
    for batch in dataset:
        count += int(batch[0].shape[0])
    return count


def tarviz(template: str, image: str, single: bool = False) -> Callable[[Path], Callable[[], int]]:
    def prepare(data: Path) -> Callable[[], int]:
        from tarviz import Pipeline

        pipeline = Pipeline(str(data / template), select=(image, "cls"))
        if single:
            records = pipeline.tf(prefetch=2)
            return lambda: sum(1 for _ in records)
        batches = pipeline.tf(batch=BATCH)
        return lambda: drain(batches)

    return prepare


def generator(template: str, image: str, batched: bool, ahead: int) -> Prepare:
    """A record at a time out of Python, or as many as a batch has."""

    def prepare(data: Path) -> Callable[[], int]:
        import tensorflow as tf

        from tarviz import records

        def pairs() -> Any:
            for record in islice(records(str(data / template)), PEER_RECORDS):
                yield bytes(record[image]), bytes(record["cls"])

        def batches() -> Any:
            each = pairs()
            while part := list(islice(each, BATCH)):
                yield tuple(zip(*part, strict=True))

        spec = tf.TensorSpec((None,) if batched else (), tf.string)
        dataset = tf.data.Dataset.from_generator(batches if batched else pairs, output_signature=(spec, spec))
        dataset = dataset if batched else dataset.batch(BATCH)
        return lambda: drain(dataset.prefetch(ahead) if ahead else dataset)

    return prepare


def tfrecord(template: str, image: str, batch: int, readers: int | None, first: str) -> Prepare:
    """TFRecord files read one after the other or `readers` at a time, parsed before or behind the batch, or an example at a time (0)."""

    def prepare(data: Path) -> Callable[[], int]:
        import tensorflow as tf

        from tarviz import convert

        folder = data / "tfrecord"
        name = template.partition("-")[0]
        paths = list(convert(str(data / template), str(folder / f"{name}-{{}}.tfrecord"), types={"cls": "bytes"}, resume=True))
        features = {image: tf.io.FixedLenFeature((), tf.string), "cls": tf.io.FixedLenFeature((), tf.string)}

        def parse(examples: Any) -> Any:
            parsed = (tf.io.parse_example if first == "batch" else tf.io.parse_single_example)(examples, features)
            return parsed[image], parsed["cls"]

        files = tf.data.TFRecordDataset(paths, num_parallel_reads=readers)
        if first == "batch":
            dataset = files.batch(batch).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        else:
            dataset = files.map(parse, num_parallel_calls=tf.data.AUTOTUNE if first == "parse" else None)
            dataset = dataset.batch(batch) if batch else dataset
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
        return (lambda: drain(dataset)) if batch else (lambda: sum(1 for _ in dataset))

    return prepare


READERS = {"one reader": None, "2 readers": 2, "AUTOTUNE readers": -1}
ORDERS = {"batch, then parse": "batch", "parse in parallel, then batch": "parse", "parse, then batch": "parse one by one"}


def tfrecords(template: str, image: str, single: bool = False) -> Side:
    """`TFRecordDataset` in every way of a small sweep: readers by what comes first."""
    orders = {"parse in parallel": "parse", "parse": "parse one by one"} if single else ORDERS
    return Side("TFRecordDataset", sweep(partial(tfrecord, template, image, 0 if single else BATCH), READERS, orders))


def generators(template: str, image: str) -> Side:
    batches = {"batches of tf.data": False, "batches of the generator": True}
    ahead = {"none ahead": 0, "2 ahead": 2, "AUTOTUNE ahead": -1}
    return Side("from_generator over records", sweep(partial(generator, template, image), batches, ahead))


def pair(name: str, template: str, image: str, peer: Side, reach: float, single: bool = False) -> Figure:
    data = template.partition("-")[0]
    ours = Side("tarviz", tarviz(template, image, single))
    what = "a record at a time" if single else "batches of 256"
    return Figure(f"tfdata-{data}-{name}", f"tar → tf.data, two bytes fields, {what}, {data}", ours, peer, at_least=reach, sets=(data,))


FIGURES = [
    pair("generator", TINY, "png", generators(TINY, "png"), 25),
    pair("generator", PHOTO, "jpg", generators(PHOTO, "jpg"), 2),
    pair("tfrecord", TINY, "png", tfrecords(TINY, "png"), 0.9),
    pair("tfrecord", PHOTO, "jpg", tfrecords(PHOTO, "jpg"), 0.9),
    pair("tfrecord-single", TINY, "png", tfrecords(TINY, "png", True), 0.9, True),
    pair("tfrecord-single", PHOTO, "jpg", tfrecords(PHOTO, "jpg", True), 0.9, True),
]
