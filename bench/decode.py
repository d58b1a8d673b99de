"""Decode, resize to 224 and batch photos from tars, against the same graph over bytes that are in memory already."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import Figure, Side

CHAIN = "decode(jpg)|resize(jpg, (224, 224))"
BATCH = 64
PHOTOS = "photo-0.tar"


def drain(dataset: Any) -> int:
    """Every batch once; returns the number of records."""
    return sum(int(images.shape[0]) for images, _ in dataset)


def tarviz(data: Path) -> Callable[[], int]:
    from tarviz import Pipeline

    dataset = Pipeline(str(data / PHOTOS), CHAIN, select=("jpg", "cls")).tf(batch=BATCH)
    return lambda: drain(dataset)


def memory(data: Path) -> Callable[[], int]:
    import tensorflow as tf

    from tarviz import records
    from tarviz.ops import parse_chain

    held = [(bytes(record["jpg"]), bytes(record["cls"])) for record in records(str(data / PHOTOS))]
    chain = parse_chain(CHAIN)

    def graph(image: Any, cls: Any) -> Any:
        record = {"jpg": image, "cls": cls}
        for op in chain:
            record = op.run_tf(record, None)
        return record["jpg"], record["cls"]

    source = tf.data.Dataset.from_tensor_slices(([image for image, _ in held], [cls for _, cls in held]))
    dataset = source.map(graph, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(2)
    return lambda: drain(dataset)


FIGURES = [
    Figure(
        "decode-photo",
        "decode + resize 224 + batch, photo",
        Side("tarviz", tarviz),
        Side("the same graph over bytes in memory", memory),
        at_least=0.95,
        sets=("photo",),
    ),
]
