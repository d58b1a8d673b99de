"""The graph that workers of a tf.data service run: runs of records read by their places, cut into fields, and worked on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tarviz.model.types import Feature, to_bytes
from tarviz.pipeline import Pipeline
from tarviz.runners.tf.served import Places
from tarviz.runners.tf.steps import GraphStep, leaves


def graph(
    pipeline: Pipeline, places: Places, fields: Sequence[str], steps: Sequence[GraphStep], features: Sequence[Feature], calls: int | None
) -> Any:
    """A `tf.data.Dataset` of (run, numbers, values): values of records of a run, a tensor for each of `features`.

    Their numbers count from 0 in the pass; a record that an op refuses is not among them. A run ends with an element without records.
    Where sizes vary, each record comes by itself. `calls` records are worked on at the same time; None leaves it to TensorFlow.
    """
    column = {
        "number": tf.range(len(places.keys), dtype=tf.int64),
        "draws": tf.constant(places.draws),
        "__key__": tf.constant(np.array(places.keys, object), tf.string),
        "__index__": tf.constant(places.index),
    }
    offset, size = tf.constant(places.offset), tf.constant(places.size)
    whole = np.array([file.size for file in places.files], np.int64)
    of = [places.files[piece] for piece in places.piece.tolist()]
    runs = tf.data.Dataset.from_tensor_slices(
        {
            "run": np.arange(len(places)),
            "shard": np.array([to_bytes(file.url) for file in of], object),
            "path": np.array([to_bytes(file.path) for file in of], object),
            "begin": places.begin,
            "length": places.length,
            "rest": whole[places.piece] - places.begin - places.length,
            "low": places.first[:-1],
            "high": places.first[1:],
        }
    )
    together = all(feature.dtype in ("bytes", "str") or None not in feature.shape for feature in features)
    empty = (tf.zeros(0, tf.int64), tuple(map(_nothing, features)))

    def work(part: dict[str, Any]) -> Any:
        record = {name: part[name] for name in ("__key__", "__index__", "__shard__", *fields)}
        for step in steps:
            drawn = part["draws"][step.draws]
            for op, piece in zip(step.chain, step.chain.draw_slices, strict=True):
                record = op.run_tf(record, drawn[piece])  # type: ignore[attr-defined]
        return part["number"], tuple(leaves(pipeline.select.pick_tf(record)))

    def opened(run: dict[str, Any]) -> Any:
        low, high = run["low"], run["high"]
        bytes_read = tf.data.FixedLengthRecordDataset(run["path"], run["length"], run["begin"], run["rest"])

        def cut(data: Any) -> Any:
            part = {name: values[low:high] for name, values in column.items()} | {"__shard__": tf.fill([high - low], run["shard"])}
            for at, name in enumerate(fields):
                part[name] = tf.strings.substr(data, offset[low:high, at], size[low:high, at])
            records = tf.data.Dataset.from_tensor_slices(part)
            worked = records.map(_plain(work), num_parallel_calls=calls or tf.data.AUTOTUNE, deterministic=True)
            return worked.ignore_errors(log_warning=False).batch(high - low if together else 1)

        parts = bytes_read.flat_map(_plain(cut)).concatenate(tf.data.Dataset.from_tensors(empty))
        return parts.map(_plain(lambda numbers, values: (run["run"], numbers, values)))

    options = tf.data.Options()
    # An op may call Python for pictures that TensorFlow does not decode as PIL does. There is none of ours in a worker: such a record is
    # refused there, and worked on here.
    options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    return runs.flat_map(_plain(opened)).with_options(options)


def _nothing(feature: Feature) -> Any:
    if feature.dtype in ("bytes", "str"):
        return tf.zeros(0, tf.string)
    return tf.zeros([0, *(side or 0 for side in feature.shape)], feature.dtype)


def _plain(function: Callable[..., Any]) -> Any:
    return tf.autograph.experimental.do_not_convert(function)
