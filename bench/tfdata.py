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


def tarviz(template: str, image: str) -> Callable[[Path], Callable[[], int]]:
    def prepare(data: Path) -> Callable[[], int]:
        from tarviz import Pipeline

        dataset = Pipeline(str(data / template), select=(image, "cls")).tf().batch(BATCH)
        return lambda: drain(dataset)

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


def tfrecord(template: str, image: str) -> Callable[[Path], Callable[[], int]]:
    def prepare(data: Path) -> Callable[[], int]:
        import tensorflow as tf

        from tarviz import convert

        folder = data / "tfrecord"
        name = template.partition("-")[0]
        paths = list(convert(str(data / template), str(folder / f"{name}-{{}}.tfrecord"), types={"cls": "bytes"}))
        features = {image: tf.io.FixedLenFeature((), tf.string), "cls": tf.io.FixedLenFeature((), tf.string)}

        def parse(examples: Any) -> Any:
            parsed = tf.io.parse_example(examples, features)
            return parsed[image], parsed["cls"]

        dataset = tf.data.TFRecordDataset(paths).batch(BATCH).map(parse, num_parallel_calls=2).unbatch().batch(BATCH)
        return lambda: drain(dataset)

    return prepare


def pair(name: str, template: str, image: str, peer: Side, reach: float) -> Figure:
    data = template.partition("-")[0]
    ours = Side("tarviz", tarviz(template, image))
    return Figure(f"tfdata-{data}-{name}", f"tar → tf.data, two bytes fields, {data}", ours, peer, at_least=reach, sets=(data,))


GENERATOR, FILES = "from_generator over records", "TFRecordDataset + parse_example on the converted files"

FIGURES = [
    pair("generator", TINY, "png", Side(GENERATOR, generator(TINY, "png")), 25),
    pair("generator", PHOTO, "jpg", Side(GENERATOR, generator(PHOTO, "jpg")), 2),
    pair("tfrecord", TINY, "png", Side(FILES, tfrecord(TINY, "png")), 0.6),
    pair("tfrecord", PHOTO, "jpg", Side(FILES, tfrecord(PHOTO, "jpg")), 0.75),
]
