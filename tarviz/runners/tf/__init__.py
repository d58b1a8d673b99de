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
- TensorFlow's strings are its own memory: a payload is there twice while it is copied into one, once in every other runner.
- An index spares the header scan, which is half of the processor time that small records take: with it they are read as fast as
  from TFRecord files.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from tarviz.model.config import options as configured
from tarviz.model.errors import MissingPackageError, UsageError
from tarviz.model.processors import processors
from tarviz.model.types import PLACES
from tarviz.pipeline import Pipeline
from tarviz.run_keywords import TfKeywords, takes
from tarviz.runners.arguments import batches, whole_numbers
from tarviz.runners.elsewhere import Elsewhere, elsewhere
from tarviz.runners.plans import ReaderPlan
from tarviz.runners.shares import ShareReader, world_of
from tarviz.selection import SelectAll

try:
    import tensorflow as tf
except ImportError as error:
    raise MissingPackageError.of("tensorflow", "Pipeline.tf()", "tensorflow") from error

from tarviz.runners.tf import routes, service
from tarviz.runners.tf.dataset import GraphRecords
from tarviz.runners.tf.routes import ShapeOptions
from tarviz.runners.tf.source import PipelineSource

_LEARN = 28 << 20  # bytes, less than glibc's 32 MiB


@takes(TfKeywords)
def run(pipeline: Pipeline, **options: Unpack[TfKeywords]) -> Any:
    """The pipeline as a `tf.data.Dataset` in the structure of the selection (lists as tuples); text and bytes are `tf.string`.

    `batch`: so many records become one element; `drop_remainder` leaves out a last batch that is smaller. `shuffle`: records pass
    through a buffer of so many, and shards come in another order in every epoch, as seed and epoch decide. `repeat`: passes over the
    shards; None goes on for ever. `num_workers`: shards read at the same time and records decoded at the same time; None takes one per
    processor, 0 is as good as 1. The order is that of shards and records, and does not depend on it; `deterministic=False` takes shards
    as they come. `prefetch`: elements kept ready (2 batches by default). `epoch` is the number of the first pass; each pass, and each
    iteration of the dataset, is the next one, so that random ops and shuffling draw anew; the dataset's `set_epoch` pins one.

    Of several processes each reads its part (`shares.pieces`): as `rank` of `world_size`, as `input_context` says (what
    `tf.distribute.Strategy.distribute_datasets_from_function` passes), else as `torch.distributed` or the environment's RANK and
    WORLD_SIZE do. `even` gives all of them equally many records, `reshare` others in every epoch.

    `output_types` and `output_shapes`, in the structure of the selection, None where nothing is asked: dtypes and shapes of what comes
    (numbers are cast, text is read as a number). Values picked out of JSON, and lists that a `Func` returns, have the types asked for, or
    those that fit the first records of the first block: of `1` and `2.5` float64; a length that is not the same in these records is not
    known. Such lists come as a `tf.RaggedTensor` from a batch, and from a record where lists in them vary; `pad` fills them up instead,
    those of text with "" where it is a number.

    Arrays of varying size (tokens or boxes as `npy`, sound): `ragged=True` gives batches of them as `tf.RaggedTensor`, `pad=True` fills
    them up with 0, `pad=-1` with that; `output_shapes` with None says which axes vary, else the first records do. Without `batch` each
    record's tensor has its own size.

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
    `report` tells what the latest iteration read, warned of and skipped. The cardinality is known where `len(pipeline.eager())` is, if no
    pass has more records than another; where an index of every shard is in the cache (`tarviz.index(urls)`) also that of what is built
    on the dataset, and plain local shards are read without a look at their headers.
    """
    batch, repeat, epoch, num_workers = options["batch"], options["repeat"], options["epoch"], options["num_workers"]
    graph, engine, address, ordered = options["graph"], options["engine"], options["address"], options["deterministic"]
    whole_numbers(1, batch=batch)
    whole_numbers(shuffle=options["shuffle"], repeat=repeat, num_workers=num_workers, prefetch=options["prefetch"], epoch=epoch)
    if "-" in pipeline.urls:
        raise UsageError("Standard input can be read once; the dataset has to look at the first block before.", hint="Save it to a file.")
    if service.check(engine, options["on_loss"], graph):
        place: Elsewhere | None = Elsewhere(service.ENGINE, address, num_workers, ordered)
    else:
        place = elsewhere(pipeline, engine, address, num_workers, send_functions=options["send_functions"], ordered=ordered)
        if place is not None and graph:
            raise UsageError("graph=True runs the ops here, in the graph; an engine runs them elsewhere.", hint="Leave one of them out.")
    reader = _reader(options["rank"], options["world_size"], options["input_context"])
    workers = 1 if num_workers == 0 else num_workers or configured().workers or processors()
    asked = ShapeOptions(options["output_types"], options["output_shapes"], options["pad"], options["ragged"], batch is not None)
    route = routes.choose(pipeline, graph, place, asked)
    size = pipeline.options.block_size or 2 * configured().block_size
    pipeline = pipeline._with(options=replace(pipeline.options, block_size=size))
    _learn()
    plan = ReaderPlan(pipeline, reader, options["shuffle"] or 0, options["even"], options["reshare"])
    source = PipelineSource(
        pipeline,
        route.fields,
        (*_places(pipeline), *route.fields),
        route.work,
        plan=plan,
        epoch=epoch,
        repeat=repeat,
        workers=workers,
        ordered=ordered,
        extra=route.all_fields,
        reach=2 * workers + 2 * (batch or 1) + 64,
    )

    def length(build: bool) -> int | None:
        """Records of all passes, where that is known; `build`: by headers, where there is no index."""
        if repeat is None:
            return int(tf.data.INFINITE_CARDINALITY)
        return None if plan.varies else plan.length(range(epoch, epoch + repeat), build=build)

    indexed = length(False)
    ahead = (2 if batch else 0) if options["prefetch"] is None else options["prefetch"]

    def records(batch: int | None, drop_remainder: bool, ahead: int, again: Callable[[int, bool], Any] | None = None) -> GraphRecords:
        def made(whole: bool) -> Any:
            dataset = route.dataset(source, batch, drop_remainder)
            return _finish(dataset, _batches(indexed, batch, drop_remainder) if whole else None, ahead)

        return GraphRecords(made, source, batch, lambda: _batches(length(True), batch, drop_remainder), again)

    again = functools.partial(records, ahead=2) if route.batches_later else None
    return records(batch, options["drop_remainder"], ahead, again)


def _reader(rank: int | None, world_size: int | None, input_context: Any) -> ShareReader:
    """This process among those that share the shards."""
    if input_context is None:
        return ShareReader(*world_of(rank, world_size))
    if rank is not None or world_size is not None:
        raise UsageError("input_context says which part to read; rank and world_size do too.", hint="Give one of them.")
    return ShareReader(*world_of(input_context.input_pipeline_id, input_context.num_input_pipelines))


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
    return tuple(dict.fromkeys(leaf.ext for leaf in pipeline.select.leaves() if leaf.ext in PLACES))


def _batches(length: int | None, batch: int | None, drop_remainder: bool) -> int | None:
    return length if length is None or length < 0 else batches(length, batch, drop_remainder)


def _finish(dataset: Any, count: int | None, ahead: int) -> Any:
    """The dataset with options, prefetching and the `count` of its elements, where that is known."""
    if count is not None:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
    if ahead:
        dataset = dataset.prefetch(ahead)
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False  # nothing to be won here; it takes 30 ms an iterator
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options)
