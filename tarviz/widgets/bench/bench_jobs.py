"""What a bench runs: the pipeline under one setting, the graph with fewer ops, or any iterable; each as a stream of counts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tarviz.model.errors import UsageError
from tarviz.model.wording import plural
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.runners.eager import Eager
from tarviz.runners.stage_timer import StageTimer
from tarviz.widgets.bench.rate_meter import Clock
from tarviz.widgets.bench.stage_groups import Group, count_steps, groups

Counts: TypeAlias = Generator[tuple[int, int], None, None]
"""(records, bytes of payload) of each step, as it comes."""

PerItem: TypeAlias = int | Callable[[Any], int] | None
"""Records of an item: so many, what the function says, or counted (None)."""

RUNNERS = {"eager": "eager", "tf": "tf", "tf.data": "tf"}
"""Name → runner of those that can be measured."""


@dataclass(slots=True)
class Trial:
    """One thing to be measured. `start` begins it and gives its counts; `groups` says what the threads of the run begun last did.

    `kind` is `tarviz`, `peer`, `stage` (the graph with fewer ops) or `iterable`; `setting` holds workers, batch and prefetch as far as
    they are set.
    """

    label: str
    kind: str
    start: Callable[[], Counts]
    setting: dict[str, Any] = field(default_factory=dict)
    groups: Callable[[], list[Group]] = list
    note: str = ""


def label(setting: Mapping[str, Any]) -> str:
    """A setting in words: `2 workers × batch 32`."""
    workers = setting.get("workers")
    parts = [] if workers is None else [plural(workers, "worker")]
    parts += [f"{name} {setting[name]}" for name in ("batch", "prefetch") if setting.get(name) is not None]
    return " × ".join(parts) or "as it is"


def of_pipeline(pipeline: Pipeline, runner: str, setting: dict[str, Any], clock: Clock, cpu: Clock) -> Trial:
    """The pipeline run by `eager` or `tf`."""
    name = label(setting)
    if runner != "eager":
        return Trial(f"tf.data, {name}", "tarviz", lambda: _tf(pipeline, setting), setting)
    if setting["prefetch"] is not None:
        raise UsageError("The eager runner keeps nothing ready ahead; prefetch is for runner='tf'.", hint="Sweep workers and batch.")
    running: list[StageTimer] = []
    workers = setting["workers"] or 0

    def start() -> Counts:
        running[:] = [timer := StageTimer(clock, cpu)]
        return count_steps(Eager(pipeline, batch=setting["batch"], num_workers=workers, repeat=None).measure(timer), timer)

    return Trial(name, "tarviz", start, setting, lambda: groups(running[0], workers) if running else [])


def _tf(pipeline: Pipeline, setting: Mapping[str, Any]) -> Counts:
    size = mean_bytes(pipeline)
    data = pipeline.tf(batch=setting["batch"], repeat=None, num_workers=setting.get("workers") or None, prefetch=setting.get("prefetch"))
    yield from count_batches(data, setting["batch"] or 1, size)


def count_batches(data: Iterable[Any], records: int, size: float) -> Counts:
    """Batches of so many records of `size` bytes; each is whole, since the passes over the shards have no end."""
    for _ in data:
        yield records, int(size * records)


def stages_of_graph(pipeline: Pipeline, setting: dict[str, Any]) -> list[Trial]:
    """The graph without its last ops, one less each time: what an op takes is what the graph is faster without it."""
    found = []
    for count in range(len(pipeline.chain)):
        shorter = pipeline.with_chain(pipeline.chain[:count]).with_select(None)
        name = f"up to {pipeline.chain[count - 1]}" if count else "reading alone"
        found.append(Trial(name, "stage", functools.partial(_part_of_graph, shorter, setting), setting))
    return found


def _part_of_graph(pipeline: Pipeline, setting: Mapping[str, Any]) -> Counts:
    """The graph, of each field only the first value: pictures of different sizes batch, and no op can be left out as unused."""
    import tensorflow as tf

    data = pipeline.tf(repeat=None, num_workers=setting.get("workers") or None)
    thin = data.map(lambda record: {name: tf.reshape(value, [-1])[:1] for name, value in record.items()})
    batch = setting.get("batch") or 32
    yield from count_batches(thin.batch(batch).prefetch(2), batch, 0)


def of_iterable(source: Any, per_item: PerItem) -> Trial:
    """Any iterable, or a function that makes one; `per_item` says how many records an item has."""

    def start() -> Counts:
        items = source() if callable(source) and not isinstance(source, Iterable) else source
        for item in items:
            yield (count_of(item) if per_item is None else per_item(item) if callable(per_item) else per_item), 0

    return Trial(type(source).__name__ if not callable(source) else getattr(source, "__name__", "items"), "iterable", start)


def count_of(item: Any) -> int:
    """How many records an item of a foreign iterable is: a batch where several arrays in it agree on their first dimension, else 1."""
    parts = list(item.values()) if isinstance(item, Mapping) else list(item) if isinstance(item, tuple | list) else [item]
    if any(isinstance(part, memoryview) for part in parts):
        return 1
    lengths = {int(shape[0]) if (shape := getattr(part, "shape", None)) else None for part in parts}
    return lengths.pop() or 1 if len(parts) > 1 and len(lengths) == 1 else 1


def mean_bytes(pipeline: Pipeline) -> float:
    """Bytes of payload of a record, from the first block that has records."""
    for url in stream.shards(pipeline.urls):
        with closing(stream.blocks(url, pipeline.options)) as blocks:
            for block in blocks:
                if len(block):
                    return float(block.size.sum()) / len(block)
    return 0.0
