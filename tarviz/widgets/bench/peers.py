"""Peers of a bench: the same records, the same ops and selection, but read by others."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

from tarviz.model.errors import UsageError, require
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.runners.eager import collate
from tarviz.widgets.bench.bench_jobs import Counts, Trial, count_batches, mean_bytes


def of_peer(name: str, pipeline: Pipeline, setting: dict[str, Any]) -> Trial:
    """One of `_PEERS` on the shards of the pipeline, with its ops and selection. `UsageError` for an unknown one."""
    if name not in _PEERS:
        raise UsageError(f"There is no peer {name!r} to compare with.", hint=f"There are {', '.join(_PEERS)}.")
    start, note = _PEERS[name]
    return Trial(name, "peer", lambda: start(pipeline, setting), setting, note=note)


def _webdataset(pipeline: Pipeline, setting: Mapping[str, Any]) -> Counts:
    webdataset = require("webdataset", "Comparing with it", "bench")
    urls = [str(url) for url in stream.shards(pipeline.urls)]
    size, batch, count = mean_bytes(pipeline), setting.get("batch"), setting.get("batch") or 1
    values: list[Any] = []
    found = True
    while found:
        found = False
        for number, sample in enumerate(webdataset.WebDataset(urls, shardshuffle=False, empty_check=False)):
            found = True
            record = {"__key__": sample.pop("__key__"), "__shard__": sample.pop("__url__"), "__index__": number}
            record |= {ext: value for ext, value in sample.items() if not ext.startswith("__")}
            values.append(pipeline.select.pick(pipeline.chain.run(record)))
            if len(values) == count:
                if batch is not None:
                    collate(values)
                values = []
                yield count, int(size * count)


def _spec(tf: Any, structure: Any, batch: int | None) -> Any:
    if isinstance(structure, Mapping):
        return {name: _spec(tf, part, batch) for name, part in structure.items()}
    if isinstance(structure, tuple | list):
        return tuple(_spec(tf, part, batch) for part in structure)
    dtype = tf.string if structure.dtype in ("bytes", "str", "object") else tf.as_dtype(structure.dtype)
    return tf.TensorSpec([batch, *structure.shape] if batch else structure.shape, dtype)


def _tensorflow() -> Any:
    return require("tensorflow", "Comparing with tf.data", "tensorflow")


def _from_generator(pipeline: Pipeline, setting: Mapping[str, Any]) -> Counts:
    tf, batch = _tensorflow(), setting.get("batch")
    spec = _spec(tf, pipeline.schema(), batch)

    def values() -> Generator[Any, None, None]:  # whole batches: record by record it takes TensorFlow up to thirty times as long
        for value in pipeline.eager(batch=batch, repeat=None, drop_remainder=True):
            yield {name: value[name] for name in spec} if isinstance(spec, dict) else value

    data = tf.data.Dataset.from_generator(values, output_signature=spec)
    yield from _count(data, setting, mean_bytes(pipeline), batched=True)


def _count(data: Any, setting: Mapping[str, Any], size: float, batched: bool = False) -> Counts:
    batch = setting.get("batch")
    return count_batches((data if batched else data.batch(batch)).prefetch(2) if batch else data, batch or 1, size)


def _tfrecord(pipeline: Pipeline, setting: Mapping[str, Any]) -> Counts:
    tf = _tensorflow()
    ops: list[Any] = list(pipeline.chain)
    plan = pipeline.plan()
    for op in ops:
        if not op.lowers:
            raise UsageError(f"{op} has no form in the graph, so TFRecord cannot be compared.", hint="Leave the op out, or this peer.")
    fields = [name for name in plan.fields if plan.needs is None or name in plan.needs]
    spec = {name: tf.io.FixedLenFeature([], tf.string) for name in ("__key__", *fields)}

    def work(record: Any) -> Any:
        values = {**record, "__shard__": tf.constant(""), "__index__": tf.constant(0, tf.int64)}
        for op in ops:
            values = op.run_tf(values, tf.random.uniform([op.draws], dtype=tf.float64) if op.draws else None)
        return pipeline.select.pick_tf(values)

    with tempfile.TemporaryDirectory(prefix="tarviz-bench-") as folder:
        raw = pipeline.with_chain(None).with_select({name: name for name in fields})
        files = [str(file) for file in raw.convert(Path(folder) / "{}.tfrecord", types=dict.fromkeys(fields, "bytes"), manifest=False)]
        data = tf.data.TFRecordDataset(files).repeat()
        batch = setting.get("batch")
        if not ops and batch:
            whole = data.batch(batch).map(lambda rows: work(tf.io.parse_example(rows, spec)))
            yield from _count(whole, setting, mean_bytes(pipeline), batched=True)
            return
        workers = setting.get("workers") or tf.data.AUTOTUNE
        single = data.map(lambda row: work(tf.io.parse_single_example(row, spec)), num_parallel_calls=workers)
        yield from _count(single, setting, mean_bytes(pipeline))


_PEERS: dict[str, tuple[Callable[[Pipeline, Mapping[str, Any]], Counts], str]] = {
    "webdataset": (_webdataset, "webdataset reads and groups, the ops are the same"),
    "from_generator": (_from_generator, "tf.data.Dataset.from_generator over the batches of the eager runner"),
    "tfrecord": (_tfrecord, "converted before (not counted); TFRecordDataset and parse_example, the ops in the graph"),
}
"""Name → how it is run, and what is measured."""
