"""The routes by which a pipeline becomes a `tf.data.Dataset`: where its chain is run, and how what it gives enters the graph."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tarviz.model.types import Feature, Schema
from tarviz.ops.base import unpack
from tarviz.pipeline import Pipeline
from tarviz.runners.elsewhere import Elsewhere
from tarviz.runners.tf import service, typed
from tarviz.runners.tf.native import pays
from tarviz.runners.tf.service import quiet
from tarviz.runners.tf.source import HANDLE, Away, Columns, PipelineSource, Threads, Work
from tarviz.runners.tf.steps import GraphStep, fields_read, has_lists, leaves, part_lists, refill, schemas, steps, whole
from tarviz.selection import Structure

_AHEAD = 1  # blocks
_LARGE = 1 << 20  # bytes of a batch


@dataclass(frozen=True, slots=True, eq=False)
class ShapeOptions:
    """What was asked of types and shapes; `pad` fills up what else are ragged tensors, `ragged` makes such of arrays too."""

    types: Any = None
    shapes: Any = None
    pad: Any = None
    ragged: bool = False
    batched: bool = False

    @property
    def casts(self) -> bool:
        """Whether values are to be cast."""
        return self.types is not None or self.shapes is not None


@dataclass(frozen=True, slots=True, eq=False)
class Route(ABC):
    """A way from shards to tensors. `fields` go into the graph, each under any of its names; `schema` is what the selection gives."""

    fields: Mapping[str, tuple[str, ...]]
    all_fields: bool  # fields that the first record lacks are an error, not left out: nobody said which are wanted
    schema: Structure
    asked: ShapeOptions

    batches_later = False  # whether `dataset.batch(n)` is better done by this route than by TensorFlow

    @property
    @abstractmethod
    def work(self) -> Work:
        """What Python does for it."""

    @abstractmethod
    def values(self, source: PipelineSource, batch: int | None, drop_remainder: bool) -> Any:
        """Dataset of the selected values, as they come."""

    def dataset(self, source: PipelineSource, batch: int | None, drop_remainder: bool) -> Any:
        """Dataset of the selected values, of the types that were asked for; `batch` None: one record each."""
        values = self.values(source, batch, drop_remainder)
        if not self.asked.casts:
            return values
        shapes = _batch_shapes(self.schema, self.asked.shapes, batch)
        return _map(values, lambda element: typed.cast(self.schema, element, self.asked.types, shapes))

    def _open_lists(self, dataset: Any, batch: int | None) -> Any:
        """Lists as ragged tensors, or padded: they travel as strings."""
        schema, pad = self.schema, self.asked.pad
        if has_lists(schema):
            return _map(dataset, lambda element: typed.open_lists(schema, element, batched=batch is not None, pad=pad))
        return dataset


@dataclass(frozen=True, slots=True, eq=False)
class Raw(Route):
    """Fields as the shards hold them: nothing is done to them.

    Records that are large are put together into batches before they become tensors, which saves a copy of each; of small ones a
    block has many batches, and the graph takes it apart faster than it comes for one at a time.
    """

    record_bytes: int  # of the first record

    @property
    def work(self) -> Work:
        return Columns()

    @property
    def batches_later(self) -> bool:  # type: ignore[override]
        return not self.asked.casts

    def values(self, source: PipelineSource, batch: int | None, drop_remainder: bool) -> Any:
        def pick(*columns: Any) -> Any:
            for column in columns:
                column.set_shape((None,))
            return source.pipeline.select.pick_tf(dict(zip(source.columns, columns, strict=True)))

        if batch is not None and batch * self.record_bytes > _LARGE and not self.asked.casts:
            return _columns(source, _kinds(source), pick, batch, drop_remainder)
        picked = _columns(source, _kinds(source), pick)
        return picked.unbatch() if batch is None else picked.rebatch(batch, drop_remainder=drop_remainder)


@dataclass(frozen=True, slots=True, eq=False)
class Graph(Route):
    """The ops that TensorFlow has too run in its graph, the others as calls out of it.

    A record that an op refuses is dropped by the graph (`ignore_errors`); the gap in the numbers brings `Source.settle` in, which
    raises or counts it, with the error that the same record gives in Python. An element numbered -1 marks the end.
    """

    steps: tuple[GraphStep, ...]

    @property
    def work(self) -> Work:
        return Columns(self.steps)

    def values(self, source: PipelineSource, batch: int | None, drop_remainder: bool) -> Any:
        def then(handle: Any, pulled: Any) -> Any:
            def shape(_: Any, numbers: Any, drawn: Any, *columns: Any) -> Any:
                drawn.set_shape((None, source.draws))
                for column in (numbers, *columns):
                    column.set_shape((None,))
                return numbers, drawn, *columns

            def work(number: Any, drawn: Any, *columns: Any) -> Any:
                values = _record(source, self.steps, handle, number, drawn, dict(zip(source.columns, columns, strict=True)))
                return number, refill(part_lists(self.schema), values)

            blocks = pulled.map(quiet(shape)).prefetch(_AHEAD)
            records = blocks.unbatch().map(quiet(work), num_parallel_calls=source.workers, deterministic=True).ignore_errors()
            records = records.map(quiet(lambda number, values: (number[None], values))) if batch is None else records.batch(batch)
            end = tf.nest.map_structure(_zeros, records.element_spec)
            ended = tf.data.Dataset.from_tensors((tf.fill(tf.shape(end[0]), tf.constant(-1, tf.int64)), end[1]))

            def check(expected: Any, numbers: Any, values: Any) -> Any:
                through = tf.logical_and(numbers[0] == expected, numbers[-1] == expected + tf.size(numbers, tf.int64) - 1)
                settle = [handle, expected, numbers]
                settled = tf.cond(through, lambda: True, lambda: tf.ensure_shape(tf.numpy_function(source.settle, settle, tf.bool), ()))
                with tf.control_dependencies([settled]):
                    return tf.identity(numbers[-1] + 1), (tf.identity(numbers), values)

            checked = records.concatenate(ended).scan(tf.constant(0, tf.int64), quiet(lambda state, item: check(state, *item)))
            through = checked.take_while(quiet(lambda numbers, values: numbers[0] >= 0))
            if not drop_remainder or batch is None:
                return through.map(quiet(lambda numbers, values: values))
            whole = through.filter(quiet(lambda numbers, values: tf.size(numbers) == batch))
            return whole.map(quiet(lambda numbers, values: tf.nest.map_structure(lambda value: _set_size(value, batch), values)))

        made = _run(source.start, source.pull, [tf.int64, tf.float64, *_kinds(source)], then)
        return self._open_lists(made, batch)


@dataclass(frozen=True, slots=True, eq=False)
class InThreads(Route):
    """Threads of this process run all of the pipeline, and write what it makes into the tensors of batches."""

    step: GraphStep

    @property
    def work(self) -> Work:
        return Threads(self.step)

    def values(self, source: PipelineSource, batch: int | None, drop_remainder: bool) -> Any:
        def pick(*columns: Any) -> Any:
            for column, feature in zip(columns, features, strict=True):
                column.set_shape((None, *feature.shape))
            return refill(part_lists(self.schema), list(columns))

        features = self.step.tensors
        made = _columns(source, [_dtype(feature) for feature in features], pick, batch or 1, drop_remainder)
        if batch is None:
            made = _map(made, lambda element: tf.nest.map_structure(lambda value: value[0], element))
        return self._open_lists(made, batch)


@dataclass(frozen=True, slots=True, eq=False)
class OnEngine(InThreads):
    """A cluster, or a tf.data service, runs all of the pipeline; tensors are made here of what comes back."""

    place: Elsewhere

    @property
    def work(self) -> Work:
        return Away(self.step, self.place, self.schema)


def choose(pipeline: Pipeline, graph: bool | None, place: Elsewhere | None, asked: ShapeOptions) -> Route:
    """The route for a pipeline. `graph`: True the graph, False threads, None what takes less time; `place`: run elsewhere."""
    plan = pipeline.plan()
    fields = fields_read(pipeline, plan.fields, plan.needs)
    there = Schema({ext: plan.fields[ext] for ext in fields})
    first = plan.first
    lists = asked.ragged or asked.pad is not None
    varies = lists or (asked.shapes is not None and not asked.batched)
    schema = typed.find(pipeline, plan.schema, asked.types, asked.shapes, varies=lists, batched=asked.batched)
    common = fields, plan.needs is None, schema, asked

    def probe() -> dict[str, Any]:
        return unpack(first, plan.needs)

    match place:
        case Elsewhere(engine=service.ENGINE):
            step = whole(pipeline, there, schema)
            parts = steps(pipeline, there, schema, probe, varies=varies)
            return OnEngine(*common, step, service.service(place, fields, parts, step, schema))
        case Elsewhere():
            return OnEngine(*common, whole(pipeline, there, schema), place)
    if pipeline.chain and (pays(pipeline.chain, schemas(pipeline.chain, there, probe), first) if graph is None else not graph):
        return InThreads(*common, whole(pipeline, there, schema))
    if parts := steps(pipeline, there, schema, probe, varies=varies):
        return Graph(*common, tuple(parts))
    return Raw(*common, sum(len(first[ext]) for ext in first if plan.needs is None or ext in plan.needs))


def _map(dataset: Any, function: Callable[[Any], Any]) -> Any:
    """`dataset.map` with each element as one structure: tf.data gives a tuple as arguments, that of one element too."""
    unpacked = isinstance(dataset.element_spec, tuple)
    return dataset.map(quiet(lambda *values: function(values if unpacked else values[0])))


def _batch_shapes(schema: Any, shapes: Any, batch: int | None) -> Any:
    """The shapes given, with the axis of batches."""
    if shapes is None or batch is None:
        return shapes
    return refill(schema, [size if size is None else (None, *size) for size in typed.flat_shapes(schema, shapes)])


def _run(start: Callable[..., Any], pull: Callable[..., Any], kinds: list[Any], then: Callable[[Any, Any], Any]) -> Any:
    """Dataset of what `then(handle, pulled)` makes of what `pull(handle)` gives, of these dtypes, until it gives no more."""

    def begin(_: Any) -> Any:
        handle = tf.numpy_function(start, [], tf.int64)
        pulled = tf.data.Dataset.counter().map(quiet(lambda _: tf.numpy_function(pull, [handle], (tf.bool, *kinds))))
        return then(handle, pulled.take_while(quiet(lambda more, *_: tf.ensure_shape(more, ()))))

    return tf.data.Dataset.from_tensors(0).flat_map(quiet(begin))


def _kinds(source: PipelineSource) -> list[Any]:
    return [tf.int64 if name == "__index__" else tf.string for name in source.columns]


def _columns(source: PipelineSource, kinds: list[Any], pick: Callable[..., Any], size: int = 0, drop_remainder: bool = False) -> Any:
    """Dataset of what `pick` makes of the columns of a run, so many records each (0: as come together), until there are none.

    It has two functions, and none within another as in `_run`: TensorFlow prepares each anew in every pass, which takes 3 ms or more, and
    a nested one twice. The handle comes by a call of its own, so that `take` sees whether it is a copy.
    """
    go_on = functools.partial(source.go_on, size, drop_remainder)

    def step(handle: Any, turn: Any) -> Any:
        handle = tf.numpy_function(go_on, [handle, turn], tf.int64)
        handle.set_shape(HANDLE.shape)
        columns = tf.numpy_function(source.take, [handle], kinds)
        return handle, pick(*tf.nest.flatten(columns))  # one column comes without its list in TensorFlow's debug mode

    found = tf.data.Dataset.counter().scan(tf.constant(HANDLE), quiet(step))
    found = found.take_while(quiet(lambda *values: tf.shape(tf.nest.flatten(values)[0])[0] > 0))
    if drop_remainder:  # not before `take_while`, whose test TensorFlow would fold to True: the end would never come
        spec = tf.nest.map_structure(lambda part: tf.TensorSpec((size, *part.shape[1:]), part.dtype), found.element_spec)
        found = tf.data.experimental.from_variant(tf.data.experimental.to_variant(found), spec)
    return found.prefetch(_AHEAD)


def _set_size(value: Any, size: int) -> Any:
    return tf.ensure_shape(value, [size, *value.shape[1:]])


def _zeros(spec: Any) -> Any:
    sizes = spec.shape.as_list() if spec.shape.rank is not None else []
    shape = [1 if size is None and at == 0 else size or 0 for at, size in enumerate(sizes)]
    return tf.fill(shape, "") if spec.dtype == tf.string else tf.zeros(shape, spec.dtype)


def _record(
    source: PipelineSource, steps: tuple[GraphStep, ...], handle: Any, number: Any, drawn: Any, record: dict[str, Any]
) -> list[Any]:
    """The selected values of one record, in order."""
    for at, step in enumerate(steps):
        drawn_here = drawn[step.draws]
        if not step.python:
            for op, piece in zip(step.chain, step.chain.draw_slices, strict=True):
                record = op.run_tf(record, drawn_here[piece])  # type: ignore[attr-defined]
            continue
        made = _call(source, at, step, [handle, number, drawn_here, *(record[name] for name in step.takes)])
        if step.select is not None:
            return made
        kept = {name: value for name, value in record.items() if name.startswith("__")} if step.whole else record
        record = {**kept, **dict(zip((name for name, _ in step.gives), made, strict=True))}
    return leaves(source.pipeline.select.pick_tf(record))


def _call(source: PipelineSource, at: int, step: GraphStep, inputs: list[Any]) -> list[Any]:
    if not step.gives:
        return []
    found = step.tensors
    made = tf.numpy_function(functools.partial(source.call, at), inputs, [_dtype(feature) for feature in found])
    for tensor, feature in zip(made, found, strict=True):
        tensor.set_shape(feature.shape)
    return list(made)


def _dtype(feature: Feature) -> Any:
    return tf.string if feature.dtype in ("bytes", "str") else tf.as_dtype(feature.dtype)
