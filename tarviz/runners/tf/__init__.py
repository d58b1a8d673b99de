"""The runner `tf`: a pipeline as a `tf.data.Dataset`.

Records enter the graph a block at a time, as one tensor of strings per field; there they are cut apart, decoded and batched.
Measured on two cores, and the reason why it is built like this:

- `tf.data.Dataset.from_generator` is not used. Building one makes TensorFlow set malloc's mmap threshold to 128 KiB for the whole
  process (`ApplyPython311MemoryPatch` in generator_dataset_op.cc, Python 3.11): from then on every buffer of a block's size is
  mapped, page-faulted and unmapped again, 512 faults for 2 MiB, which takes longer than all the rest.
- `options.autotune` is off. Its thread sleeps 10, 20, 40 … ms between rounds, and an iterator that ends waits until it wakes: a
  pass takes 0.31, 0.63 or 1.27 s, whatever it needs, up to twice its time. That were the two modes of the prototype.
- Blocks are cut into strings where they are read rather than by `tf.strings.substr`: a copy less, only the fields needed, and
  no allocation of a block's size, so that a `from_generator` elsewhere in the process does little harm. Where one was built before the
  first `.tf()`, malloc does not learn to keep memory (`_learn`): photos of 70 kB then take 70 µs in place of 38.
- An index spares the header scan, which is half of the processor time that small records take: with it they are read as fast as
  from TFRecord files.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tarviz.model.config import options as configured
from tarviz.model.errors import MissingPackageError, UsageError
from tarviz.model.processors import processors
from tarviz.model.types import PLACES, Feature, Schema
from tarviz.ops.base import unpack
from tarviz.pipeline import Pipeline
from tarviz.query.value_types import Listed
from tarviz.runners.arguments import whole_number
from tarviz.runners.elsewhere import Elsewhere, elsewhere
from tarviz.runners.plans import ReaderPlan
from tarviz.runners.shares import Reader, known, world_of
from tarviz.runners.tf.steps import GraphStep, fields_read, leaves, parted, refill, schemas, steps, whole
from tarviz.selection import SelectAll, as_tuples

try:
    import tensorflow as tf
except ImportError as error:
    raise MissingPackageError.of("tensorflow", "Pipeline.tf()", "tensorflow") from error

from tarviz.runners.tf import service, typed
from tarviz.runners.tf.dataset import GraphRecords
from tarviz.runners.tf.native import pays
from tarviz.runners.tf.source import HANDLE, PipelineSource

_AHEAD = 1  # blocks
_LARGE = 1 << 20  # bytes of a batch
_LEARN = 28 << 20  # bytes, less than glibc's 32 MiB


def run(
    pipeline: Pipeline,
    *,
    batch: int | None = None,
    shuffle: int | None = None,
    repeat: int | None = 1,
    num_workers: int | None = None,
    prefetch: int | None = None,
    deterministic: bool = True,
    drop_remainder: bool = False,
    epoch: int = 0,
    rank: int | None = None,
    world_size: int | None = None,
    input_context: Any = None,
    even: bool = False,
    output_types: Any = None,
    output_shapes: Any = None,
    pad: Any = None,
    graph: bool | None = None,
    engine: str | Elsewhere | None = None,
    address: str | None = None,
    send_functions: bool = False,
    on_loss: str | None = None,
) -> Any:
    """The pipeline as a `tf.data.Dataset` in the structure of the selection (lists as tuples); text and bytes are `tf.string`.

    `batch`: so many records become one element; `drop_remainder` leaves out a last batch that is smaller. `shuffle`: records pass
    through a buffer of so many, and shards come in another order in every epoch, as seed and epoch decide. `repeat`: passes over the
    shards; None goes on for ever. `num_workers`: shards read at the same time and records decoded at the same time; None takes one per
    processor, 0 is as good as 1. The order is that of shards and records, and does not depend on it; `deterministic=False` takes shards
    as they come. `prefetch`: elements kept ready (2 batches by default). `epoch` is the number of the first pass; each pass, and each
    iteration of the dataset, is the next one, so that random ops and shuffling draw anew; the dataset's `set_epoch` pins one.

    Of several processes each reads its part (`shares.pieces`): as `rank` of `world_size`, as `input_context` says (what
    `tf.distribute.Strategy.distribute_datasets_from_function` passes), else as `torch.distributed` or the environment's RANK and
    WORLD_SIZE do. `even` gives all of them equally many records.

    `output_types` and `output_shapes`, in the structure of the selection, None where nothing is asked: dtypes and shapes of what comes
    (numbers are cast, text is read as a number). Values picked out of JSON, and lists that a `Func` returns, have the types asked for, or
    those that fit the first records of the first block: of `1` and `2.5` float64; a length that is not the same in these records is not
    known. Such lists come as a `tf.RaggedTensor` from a batch, and from a record where lists in them vary; `pad` fills them up instead.

    `graph`: True runs the ops that TensorFlow has too in its graph, for what becomes part of a graph elsewhere; False runs the chain in
    threads of its own, and writes what it makes into the tensors of batches, whose memory the dataset keeps for its next pass (256 MiB at
    most for each column, or one batch). None takes threads where pictures are decoded and resized natively, which takes half the time of
    the graph, and the graph for tiny pictures and all else. The tensors are the same.

    `engine="ray"`: the chain is run by the cluster at `address`, `num_workers` tasks at a time (None, 0: one per processor there), and the
    tensors are made here of what comes back. `send_functions` lets functions of the chain (`Func`) run there. See `eager.Eager`.

    `engine="tf-service"`: workers of the tf.data service whose dispatcher is at `address` ("grpc://host:port") read plain shards by their
    index and run the ops, all of them TensorFlow's, `num_workers` records each at a time. They see the shards under the same paths. Such a
    service loses records when a worker dies: `on_loss="error"`, which has to be said, makes an error of it.

    Values equal the eager runner's (uint8 within 1); what nobody selects is not computed. An error comes as the `TarvizError` it is
    when the dataset itself is iterated, as a `tf.errors.OpError` with the same line of text when something was built on it.
    `report` tells what the latest iteration read, warned of and skipped. Where an index of every shard is in the cache
    (`tarviz.index(urls)`) the cardinality is known, and plain local shards are read without a look at their headers.
    """
    counts = (("batch", batch, 1), ("shuffle", shuffle, 0), ("repeat", repeat, 0), ("num_workers", num_workers, 0))
    for name, value, least in (*counts, ("prefetch", prefetch, 0), ("epoch", epoch, 0)):
        if value is not None:
            whole_number(name, value, least)
    reader = _reader(rank, world_size, input_context)
    workers = 1 if num_workers == 0 else num_workers or configured().workers or processors()
    if "-" in pipeline.urls:
        raise UsageError("Standard input can be read once; the dataset has to look at the first block before.", hint="Save it to a file.")
    served = service.check(engine, on_loss, graph)
    away = None if served else elsewhere(pipeline, engine, address, num_workers, send_functions=send_functions, ordered=deterministic)
    if away is not None and graph:
        raise UsageError("graph=True runs the ops here, in the graph; an engine runs them elsewhere.", hint="Leave one of them out.")
    plan = pipeline.plan()
    fields = fields_read(pipeline, plan.fields, plan.needs)
    there = type(plan.fields)({ext: plan.fields[ext] for ext in fields})
    first = pipeline._peek()[1]
    schema = typed.found(pipeline, plan.schema, output_types, output_shapes)

    def probe() -> dict[str, Any]:
        return unpack(first, plan.needs)

    native = (bool(pipeline.chain) and not graph) or away is not None or served
    if native and graph is None and away is None and not served:
        native = pays(pipeline.chain, schemas(pipeline.chain, there, probe), first)
    made = [whole(pipeline, there, schema)] if native else steps(pipeline, there, schema, probe)
    if served:
        parts = steps(pipeline, there, schema, probe)
        away = service.service(address, num_workers, deterministic, fields, parts, made[0], schema)
    pipeline = pipeline._with(options=replace(pipeline.options, block_size=pipeline.options.block_size or 2 * configured().block_size))
    _learn()
    places = _places(pipeline)
    source = PipelineSource(
        pipeline,
        fields,
        (*places, *fields),
        made,
        plan=ReaderPlan(pipeline, reader, shuffle or 0, even),
        epoch=epoch,
        repeat=repeat,
        shuffle=shuffle or 0,
        workers=workers,
        ordered=deterministic,
        extra=plan.needs is None,
        reach=2 * workers + 2 * (batch or 1) + 64,
        native=native,
        elsewhere=away,
        schema=schema,
    )
    ahead = (2 if batch else 0) if prefetch is None else prefetch
    count = None if repeat is None else known(pipeline, reader.rank, reader.world, even=even)
    length = tf.data.INFINITE_CARDINALITY if repeat is None else None if count is None else count * repeat
    finish = functools.partial(_finish, source=source, length=length, ahead=ahead)
    asked = output_types is not None or output_shapes is not None

    def settle(dataset: Any) -> Any:
        shapes = _batched(schema, output_shapes, batch)
        return _mapped(dataset, lambda element: typed.cast(schema, element, output_types, shapes))

    if made:
        worked = _native(source, schema, batch, drop_remainder) if native else _worked(source, schema, workers, batch, drop_remainder)
        if any(isinstance(part, Listed) for part in leaves(as_tuples(schema) if not isinstance(schema, Schema) else dict(schema))):
            worked = _mapped(worked, lambda element: typed.opened(schema, element, batched=batch is not None, pad=pad))
        return finish(settle(worked) if asked else worked, batch, drop_remainder)
    if asked:
        raw = _raw(source, 0, batch, drop_remainder)
        return finish(settle(raw.unbatch() if batch is None else raw), batch, drop_remainder)
    again = functools.partial(_raw, source, sum(len(first[ext]) for ext in first if plan.needs is None or ext in plan.needs))
    if batch is None:
        return finish(again().unbatch(), None, False, again)
    return finish(again(batch, drop_remainder), batch, drop_remainder)


def _mapped(dataset: Any, function: Callable[[Any], Any]) -> Any:
    """`dataset.map` with each element as one structure: tf.data gives a tuple as arguments, that of one element too."""
    unpacked = isinstance(dataset.element_spec, tuple)
    return dataset.map(_quiet(lambda *values: function(values if unpacked else values[0])))


def _batched(schema: Any, shapes: Any, batch: int | None) -> Any:
    """The shapes given, with the axis of batches."""
    if shapes is None or batch is None:
        return shapes
    return refill(as_tuples(schema), [size if size is None else (None, *size) for size in typed.flat_shapes(schema, shapes)])


def _reader(rank: int | None, world_size: int | None, input_context: Any) -> Reader:
    """This process among those that share the shards."""
    if input_context is None:
        return Reader(*world_of(rank, world_size))
    if rank is not None or world_size is not None:
        raise UsageError("input_context says which part to read; rank and world_size do too.", hint="Give one of them.")
    return Reader(*world_of(input_context.input_pipeline_id, input_context.num_input_pipelines))


@functools.cache
def _learn() -> None:
    """Let malloc keep the memory of a block.

    glibc gives freed memory back to the system above a limit of 128 KiB, and adapts it, up to twice 32 MiB, to the largest piece
    that was freed. Else each block's strings are page-faulted in anew: seven times the time that copying them takes.
    """
    np.empty(_LEARN, np.uint8)


def _places(pipeline: Pipeline) -> tuple[str, ...]:
    """Which of `PLACES` the selection asks for."""
    if isinstance(pipeline.select, SelectAll):
        return ("__key__",)
    names = [name for leaf in pipeline.select.leaves() for name in (leaf.ext,) if name in PLACES]
    return tuple(dict.fromkeys(names))


def _quiet(function: Callable[..., Any]) -> Any:
    return tf.autograph.experimental.do_not_convert(function)


def _run(start: Callable[..., Any], pull: Callable[..., Any], kinds: list[Any], then: Callable[[Any, Any], Any]) -> Any:
    """Dataset of what `then(handle, pulled)` makes of what `pull(handle)` gives, of these dtypes, until it gives no more."""

    def begin(_: Any) -> Any:
        handle = tf.numpy_function(start, [], tf.int64)
        pulled = tf.data.Dataset.counter().map(_quiet(lambda _: tf.numpy_function(pull, [handle], (tf.bool, *kinds))))
        return then(handle, pulled.take_while(_quiet(lambda more, *_: tf.ensure_shape(more, ()))))

    return tf.data.Dataset.from_tensors(0).flat_map(_quiet(begin))


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

    found = tf.data.Dataset.counter().scan(tf.constant(HANDLE), _quiet(step))
    found = found.take_while(_quiet(lambda *values: tf.shape(tf.nest.flatten(values)[0])[0] > 0))
    if drop_remainder:  # not before `take_while`, whose test TensorFlow would fold to True: the end would never come
        spec = tf.nest.map_structure(lambda part: tf.TensorSpec((size, *part.shape[1:]), part.dtype), found.element_spec)
        found = tf.data.experimental.from_variant(tf.data.experimental.to_variant(found), spec)
    return found.prefetch(_AHEAD)


def _raw(source: PipelineSource, record_bytes: int, batch: int | None = None, drop_remainder: bool = False) -> Any:
    """Dataset of selected columns, a block each, or so many records each.

    Records that are large are put together into batches before they become tensors, which saves a copy of each; of small ones a
    block has many batches, and the graph takes it apart faster than it comes for one at a time.
    """

    def pick(*columns: Any) -> Any:
        for column in columns:
            column.set_shape((None,))
        return source.pipeline.select.pick_tf(dict(zip(source.columns, columns, strict=True)))

    if batch is not None and batch * record_bytes > _LARGE:
        return _columns(source, _kinds(source), pick, batch, drop_remainder)
    picked = _columns(source, _kinds(source), pick)
    return picked if batch is None else picked.rebatch(batch, drop_remainder=drop_remainder)


def _native(source: PipelineSource, schema: Any, batch: int | None, drop_remainder: bool) -> Any:
    """Dataset of selected values that threads have made."""
    features = source.steps[0].tensors

    def pick(*columns: Any) -> Any:
        for column, feature in zip(columns, features, strict=True):
            column.set_shape((None, *feature.shape))
        return refill(as_tuples(parted(schema)), list(columns))

    made = _columns(source, [_dtype(feature) for feature in features], pick, batch or 1, drop_remainder)
    return made if batch is not None else _mapped(made, lambda element: tf.nest.map_structure(lambda value: value[0], element))


def _worked(source: PipelineSource, schema: Any, workers: int, batch: int | None, drop_remainder: bool) -> Any:
    """Dataset of selected values after the steps of the chain.

    A record that an op refuses is dropped by the graph (`ignore_errors`); the gap in the numbers brings `Source.settle` in, which
    raises or counts it, with the error that the same record gives in Python. An element numbered -1 marks the end.
    """

    def then(handle: Any, pulled: Any) -> Any:
        def shape(_: Any, numbers: Any, drawn: Any, *columns: Any) -> Any:
            drawn.set_shape((None, source.draws))
            for column in (numbers, *columns):
                column.set_shape((None,))
            return numbers, drawn, *columns

        def work(number: Any, drawn: Any, *columns: Any) -> Any:
            values = _record(source, handle, number, drawn, dict(zip(source.columns, columns, strict=True)))
            return number, refill(as_tuples(parted(schema)), values)

        blocks = pulled.map(_quiet(shape)).prefetch(_AHEAD)
        records = blocks.unbatch().map(_quiet(work), num_parallel_calls=workers, deterministic=True).ignore_errors()
        records = records.map(_quiet(lambda number, values: (number[None], values))) if batch is None else records.batch(batch)
        end = tf.nest.map_structure(_zeros, records.element_spec)
        ended = tf.data.Dataset.from_tensors((tf.fill(tf.shape(end[0]), tf.constant(-1, tf.int64)), end[1]))

        def check(expected: Any, numbers: Any, values: Any) -> Any:
            through = tf.logical_and(numbers[0] == expected, numbers[-1] == expected + tf.size(numbers, tf.int64) - 1)
            settle = [handle, expected, numbers]
            settled = tf.cond(through, lambda: True, lambda: tf.ensure_shape(tf.numpy_function(source.settle, settle, tf.bool), ()))
            with tf.control_dependencies([settled]):
                return tf.identity(numbers[-1] + 1), (tf.identity(numbers), values)

        checked = records.concatenate(ended).scan(tf.constant(0, tf.int64), _quiet(lambda state, item: check(state, *item)))
        through = checked.take_while(_quiet(lambda numbers, values: numbers[0] >= 0))
        if not drop_remainder or batch is None:
            return through.map(_quiet(lambda numbers, values: values))
        whole = through.filter(_quiet(lambda numbers, values: tf.size(numbers) == batch))
        return whole.map(_quiet(lambda numbers, values: tf.nest.map_structure(lambda value: _first(value, batch), values)))

    return _run(source.start, source.pull, [tf.int64, tf.float64, *_kinds(source)], then)


def _first(value: Any, size: int) -> Any:
    return tf.ensure_shape(value, [size, *value.shape[1:]])


def _zeros(spec: Any) -> Any:
    sizes = spec.shape.as_list() if spec.shape.rank is not None else []
    shape = [1 if size is None and at == 0 else size or 0 for at, size in enumerate(sizes)]
    return tf.fill(shape, "") if spec.dtype == tf.string else tf.zeros(shape, spec.dtype)


def _record(source: PipelineSource, handle: Any, number: Any, drawn: Any, record: dict[str, Any]) -> list[Any]:
    """The selected values of one record, in order."""
    for at, step in enumerate(source.steps):
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


def _finish(
    dataset: Any, batch: int | None, drop_remainder: bool, raw: Any = None, *, source: PipelineSource, length: int | None, ahead: int
) -> Any:
    """The dataset with its length, options and prefetching, as `GraphRecords`."""
    if length is not None:
        batches = length if batch is None or length < 0 else length // batch if drop_remainder else -(-length // batch)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(batches))
    if ahead:
        dataset = dataset.prefetch(ahead)
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False  # nothing to be won here; it takes 30 ms an iterator
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA

    def again(batch: int, drop_remainder: bool) -> Any:
        return _finish(raw(batch, drop_remainder), batch, drop_remainder, source=source, length=length, ahead=2)

    return GraphRecords(dataset.with_options(options), source, again if raw is not None else None)
