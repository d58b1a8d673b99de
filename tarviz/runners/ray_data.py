"""The runner `ray_data`: a pipeline as a `ray.data.Dataset`, whose blocks are Arrow tables made of blocks of shards."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Unpack

from tarviz.model.errors import MissingPackageError, UsageError
from tarviz.ops.chains import Chainable
from tarviz.pipeline import Pipeline
from tarviz.read.keywords import ReadKeywords
from tarviz.runners.elsewhere import sendable
from tarviz.runners.ray_shards import source
from tarviz.selection import SelectAll


def read_ray(
    urls: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    chain: Chainable = None,
    *,
    seed: int = 0,
    send_functions: bool = False,
    override_num_blocks: int | None = None,
    concurrency: int | None = None,
    **options: Unpack[ReadKeywords],
) -> Any:
    """Shards as a `ray.data.Dataset`: a row a record, with `__key__` and what the chain makes of its fields.

    Fields that no op touched are binary, arrays of one dtype and rank tensors, trees, tables and lists Python objects (Ray's extension
    types); a field that a record lacks is null.
    Shards are read and the chain is run in tasks of Ray, in the order of shards and records (Ray Data itself keeps the order of blocks
    only where its `DataContext` asks for it). A task reads a shard and makes a block of it; plain local ones that are indexed are cut
    where there are fewer of them than suffice for the processors. `override_num_blocks` and `concurrency` are those of
    `ray.data.read_datasource`, `options` the `ReadOptions`.
    `send_functions` lets functions of the chain (`Func`) be pickled and run there.

    A first line to try: `tarviz.read_ray("train-{0..3}.tar", "decode(jpg)|resize(jpg, (32, 32))").take(1)`.
    """
    return run(
        Pipeline(urls, chain, seed=seed, **options).chosen(),
        send_functions=send_functions,
        override_num_blocks=override_num_blocks,
        concurrency=concurrency,
    )


def run(
    pipeline: Pipeline,
    *,
    epoch: int = 0,
    send_functions: bool = False,
    override_num_blocks: int | None = None,
    concurrency: int | None = None,
) -> Any:
    """The pipeline as a `ray.data.Dataset`; see `read_ray`."""
    sendable(pipeline, send_functions=send_functions)
    if not isinstance(pipeline.select, SelectAll):
        raise UsageError("rows of Ray Data have names: a selection has no place there.", hint="keep(…) in the chain leaves fields out.")
    try:
        import ray
        import ray.data as ray_data
    except ImportError as error:
        raise MissingPackageError.of("ray[data]", "tarviz.read_ray()", "ray-data") from error
    if not ray.is_initialized():
        ray.init()
    processors = int(ray.cluster_resources().get("CPU", 1))
    shards, blocks = source(pipeline, epoch, override_num_blocks, processors)
    return ray_data.read_datasource(shards, override_num_blocks=blocks, concurrency=concurrency)
