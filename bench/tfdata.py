"""Tar to tf.data: two bytes fields a record, against a generator of records and against TFRecord files of the same records."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from bench import Figure, Side
from bench._data import PHOTO, TINY

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


def generator(template: str, image: str) -> Callable[[Path], Callable[[], int]]:
    def prepare(data: Path) -> Callable[[], int]:
        import tensorflow as tf

        from tarviz import records

        def pairs() -> Any:
            for record in islice(records(str(data / template)), PEER_RECORDS):
                yield bytes(record[image]), bytes(record["cls"])

        spec = tf.TensorSpec((), tf.string)
        return lambda: drain(tf.data.Dataset.from_generator(pairs, output_signature=(spec, spec)).batch(BATCH))

    return prepare


def tfrecord(template: str, image: str, single: bool = False) -> Callable[[Path], Callable[[], int]]:
    """TFRecord files as TensorFlow's guide reads them: in batches, files and examples in parallel; or an example at a time."""

    def prepare(data: Path) -> Callable[[], int]:
        import tensorflow as tf

        from tarviz import convert

        folder = data / "tfrecord"
        name = template.partition("-")[0]
        paths = list(convert(str(data / template), str(folder / f"{name}-{{}}.tfrecord"), types={"cls": "bytes"}))
        features = {image: tf.io.FixedLenFeature((), tf.string), "cls": tf.io.FixedLenFeature((), tf.string)}

        def parse(examples: Any) -> Any:
            parsed = (tf.io.parse_single_example if single else tf.io.parse_example)(examples, features)
            return parsed[image], parsed["cls"]

        files = tf.data.TFRecordDataset(paths, num_parallel_reads=len(paths))
        if single:
            dataset = files.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
            return lambda: sum(1 for _ in dataset)
        dataset = files.batch(BATCH).map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        return lambda: drain(dataset)

    return prepare


def pair(name: str, template: str, image: str, peer: Side, reach: float, single: bool = False) -> Figure:
    data = template.partition("-")[0]
    ours = Side("tarviz", tarviz(template, image, single))
    what = "a record at a time" if single else "batches of 256"
    return Figure(f"tfdata-{data}-{name}", f"tar → tf.data, two bytes fields, {what}, {data}", ours, peer, at_least=reach, sets=(data,))


GENERATOR = "from_generator over records"
BATCHED = "TFRecordDataset.batch().map(parse_example), files and calls in parallel"
SINGLE = "TFRecordDataset.map(parse_single_example), files and calls in parallel"

FIGURES = [
    pair("generator", TINY, "png", Side(GENERATOR, generator(TINY, "png")), 25),
    pair("generator", PHOTO, "jpg", Side(GENERATOR, generator(PHOTO, "jpg")), 2),
    pair("tfrecord", TINY, "png", Side(BATCHED, tfrecord(TINY, "png")), 0.9),
    pair("tfrecord", PHOTO, "jpg", Side(BATCHED, tfrecord(PHOTO, "jpg")), 0.9),
    pair("tfrecord-single", TINY, "png", Side(SINGLE, tfrecord(TINY, "png", True)), 0.9, True),
    pair("tfrecord-single", PHOTO, "jpg", Side(SINGLE, tfrecord(PHOTO, "jpg", True)), 0.9, True),
]
