"""The runner `ray_data`: a pipeline as a `ray.data.Dataset`, whose blocks are Arrow tables made of blocks of shards."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.engines.ray.joining import home
from tarviz.engines.ray.worker import Home, settle
from tarviz.model.errors import MissingPackageError, SchemaError, TarvizError, UsageError
from tarviz.model.types import Block
from tarviz.ops.chains import Chainable
from tarviz.pipeline import Pipeline
from tarviz.read.blocks import members_of
from tarviz.read.indexed import blocks as indexed_blocks
from tarviz.read.keywords import ReadKeywords
from tarviz.read.stream import ReadReport
from tarviz.runners.elsewhere import MadeRow, check_sendable
from tarviz.runners.shares import Piece, shards, tasks
from tarviz.runners.walk import work
from tarviz.selection import SelectAll

if TYPE_CHECKING:
    import pyarrow as pa

_WIDE = (1 << 31) - 1  # bytes that a column of Arrow's smaller kind holds
_TASK = 16 << 20, 128 << 20  # bytes of a task, at least and at most, where nobody said how many blocks there are to be
_TABLE = 32 << 20  # bytes of tables that are given together: each costs Ray Data some milliseconds


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
        Pipeline(urls, chain, seed=seed, **options).choose(),
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
    check_sendable(pipeline, send_functions=send_functions)
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
    made, blocks = source(pipeline, epoch, override_num_blocks, processors)
    return ray_data.read_datasource(made, override_num_blocks=blocks, concurrency=concurrency)


def source(pipeline: Pipeline, epoch: int, blocks: int | None, processors: int) -> tuple[Any, int]:
    """The shards of a pipeline as a `Datasource` of Ray Data, and how many blocks it is to make.

    Those asked for (`blocks`), else one for each shard: left to itself, Ray Data cuts what a task has read into 200 blocks and more,
    which takes as long as to read it. Shards that are in the cache's index are cut where they are large, or fewer than suffice for
    the processors.
    """
    from ray.data.block import BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    pieces = shards(pipeline)
    sizes = [stores.of(piece.url).stat(piece.url).size for piece in pieces]
    total = sum(size or 0 for size in sizes)
    wanted = blocks or max(total // _TASK[1], min(2 * processors, total // _TASK[0]))
    parts = tasks(pieces, pipeline.options, wanted, build=blocks is not None)

    class Shards(Datasource):  # type: ignore[misc]
        def get_name(self) -> str:
            return "Tarviz"

        def estimate_inmemory_data_size(self) -> int | None:
            return None if None in sizes else total

        def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None) -> list[Any]:
            limit = {} if per_task_row_limit is None else {"per_task_row_limit": per_task_row_limit}
            settings = home()
            return [ReadTask(_Read(pipeline, part, epoch, settings), about(part), **limit) for part in parts]

    def about(part: list[Piece]) -> Any:
        return BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=tuple(piece.url for piece in part))

    return Shards(), blocks or len(parts)


@dataclass(frozen=True, slots=True)
class _Read:
    """What one task of Ray reads."""

    pipeline: Pipeline
    pieces: list[Piece]
    epoch: int
    settings: Home

    def __call__(self) -> Iterator[pa.Table]:
        settle(self.settings)
        report = ReadReport()
        yield from _gather(table for piece in self.pieces for table in self._tables(piece, report))
        report.tell_skipped()

    def _tables(self, piece: Piece, report: ReadReport) -> Iterator[pa.Table]:
        options = self.pipeline.options
        if not self.pipeline.chain and piece.only is None and options.on_error == "raise":
            with closing(indexed_blocks(piece.url, options, report, piece.start, piece.stop)) as blocks:
                yield from (table_of(block) for block in blocks if len(block))
            return
        with closing(work(self.pipeline, piece, self.epoch, report, options.on_error == "raise")) as found:
            for rows in found:
                values = list(_values(rows, report, skip=options.on_error == "skip"))
                if values:
                    yield _table(values)


def _gather(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in few tables of many chunks; nothing is copied. What a later table lacks, or has beside, is null in the others."""

    held: list[pa.Table] = []
    size = 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size >= _TABLE:
            yield from _join(held)
            held, size = [], 0
    if held:
        yield from _join(held)


def _join(tables: list[pa.Table]) -> list[pa.Table]:
    """Tables as one; as they are where Arrow has no type for both: arrays of one shape here, of several there."""
    import pyarrow as pa

    try:
        return [pa.concat_tables(tables, promote_options="permissive")]
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return tables


def _values(rows: list[MadeRow], report: ReadReport, *, skip: bool) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        if not isinstance(row.value, TarvizError):
            yield row.value
        elif skip:
            report.add(row.value.fault, skipped=True)
        else:
            raise row.value


def _table(values: list[Mapping[str, Any]]) -> pa.Table:
    """Records after a chain as a table, whose rows are the records again: a field that a record lacks is null."""
    import pyarrow as pa

    names = dict.fromkeys(name for value in values for name in value)
    return pa.table({name: _as_arrow(name, values) for name in names})


def _as_arrow(name: str, records: list[Mapping[str, Any]]) -> Any:
    """A field of records as Arrow holds it with nothing lost: text, bytes and numbers of one type as its own, arrays of one dtype and
    rank as Ray's tensors, all else (trees, tables, lists: a struct of Arrow would fill in names and turn 1 into 1.0) as Python objects."""
    import pyarrow as pa
    from ray.data.extensions.object_extension import ArrowPythonObjectArray
    from ray.data.extensions.tensor_extension import ArrowTensorArray

    values: list[Any] = [record.get(name) for record in records]
    kinds = {type(value) for value in values if value is not None}
    forms = {(value.dtype, value.ndim) if isinstance(value, np.ndarray | np.generic) else (None, 0) for value in values}
    dtype, _ = next(iter(forms))
    if len(forms) == 1 and dtype is not None and dtype.kind in "biuf" and dtype.isnative:
        if len({value.shape for value in values}) == 1:
            return ArrowTensorArray.from_numpy(np.stack(values))
        ragged = np.empty(len(values), object)
        for at, value in enumerate(values):
            ragged[at] = value
        return ArrowTensorArray.from_numpy(ragged)
    if len(kinds) <= 1 and kinds <= {str, bytes, bool, int, float}:
        with suppress(pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
            return pa.array(values)
    try:
        return ArrowPythonObjectArray.from_objects(values)
    except TypeError as error:
        raise SchemaError(
            f"{name} gives {', '.join(sorted(kind.__name__ for kind in kinds))} that Python cannot pickle: Ray Data cannot hold it.",
            hint=f"drop({name}), or make plain values of it with Func at the end of the chain.",
        ) from error


def table_of(block: Block) -> pa.Table:
    """The records of a block as an Arrow table: `__key__` as text, fields as binary, null where a record has none."""
    import pyarrow as pa

    names = block.fields or dict.fromkeys(block.exts[code] for code in block.ext.tolist())
    members = members_of(block, {name: (name,) for name in names})
    columns = {"__key__": pa.array([key.decode("utf-8", "backslashreplace") for key in block.keys[:]], pa.string())}
    return pa.table({**columns, **{name: _column(block, members[:, at]) for at, name in enumerate(names)}})


def _column(block: Block, members: NDArray[np.int64]) -> Any:
    """The payloads of members as one column; -1 is null."""
    import pyarrow as pa

    there = members >= 0
    size = np.where(there, block.size[members], 0)
    ends = np.concatenate([[0], np.cumsum(size)])
    begin = block.offset[members].tolist()
    data = block.data
    payload = b"".join([data[low : low + length] for low, length in zip(begin, size.tolist(), strict=True)])
    kind, width = (pa.binary(), np.int32) if len(payload) <= _WIDE else (pa.large_binary(), np.int64)
    nulls = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(kind, len(members), [nulls, pa.py_buffer(ends.astype(width)), pa.py_buffer(payload)])
