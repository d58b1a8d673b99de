"""Batches made outside the graph, by threads or an engine elsewhere, values written where the batch's tensors lie; no framework yet.

Decoders and resizers of C let go of the interpreter, and are faster than the ops of TensorFlow that do the same: of photos of 500×375,
a decode and a resize take half the processor time. What Python adds to a record (some 40 µs) is more than a tiny picture takes as a whole,
so `pays` looks at the first record.
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import SchemaError, TarvizError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Decode, Resize
from tarviz.ops.chains import Chain
from tarviz.pipeline import Pipeline
from tarviz.read.stream import ReadReport
from tarviz.runners.batch_memory import BatchMemory
from tarviz.runners.elsewhere import Elsewhere
from tarviz.runners.plans import ReaderPlan, Track
from tarviz.runners.tf.feed import FeedChunk
from tarviz.runners.tf.steps import VARIES, GraphStep, pair_up
from tarviz.runners.walk import Walk
from tarviz.selection import SelectAll, Structure

_TASK = 16  # records worked on in a row by one thread
_LEAST = 16_000  # bytes of a compressed picture

Columns = list[NDArray[Any]]


def pays(chain: Chain, schemas: Sequence[Schema], first: Mapping[str, Any]) -> bool:
    """Whether the chain is faster outside the graph: it decodes pictures natively, those of the first record are not tiny, and it resizes
    none but of uint8. `schemas` has the schema before each op."""
    large = False
    for op, before in zip(chain, schemas, strict=False):
        if isinstance(op, Decode) and op.native(before[op.field(before)]):
            large = large or len(first.get(op.field(before), b"")) >= _LEAST
        elif isinstance(op, Resize) and not op.native(before[op.field(before)]):
            return False
    return large


@dataclass(slots=True, eq=False)
class _Batch:
    """Room for the values of some records, who works on it, and which rows of which chunk stand where."""

    columns: Columns
    rows: int = 0
    tasks: list[Future[list[tuple[int, TarvizError]]]] = field(default_factory=list)
    spans: list[tuple[int, FeedChunk, int]] = field(default_factory=list)

    def origin(self, row: int) -> tuple[FeedChunk, int]:
        """The chunk of a row, and where it stands there."""
        begin, chunk, at = next(span for span in reversed(self.spans) if span[0] <= row)
        return chunk, at + row - begin


def batches(
    chunks: Generator[FeedChunk, None, None],
    step: GraphStep,
    size: int,
    workers: int,
    report: ReadReport,
    memory: BatchMemory,
    lose: Callable[[int], None] | None,
) -> Generator[Columns, None, None]:
    """The values of `step`, a whole chain with its selection, as columns of `size` records in order; fewer at the end, and where some
    were skipped.

    An op's error is raised in the turn of its batch, with the place of its record; with `lose`, which is told the record's number, the
    record is left out and counted.
    """
    features = step.tensors
    done = functools.partial(_finish, step=step, features=features, report=report, lose=lose)
    broken: Exception | None = None
    with closing(chunks), ThreadPoolExecutor(workers, "tarviz-tf") as pool:
        begun: deque[_Batch] = deque()
        try:
            while True:
                try:
                    chunk = next(chunks, None)
                except Exception as error:  # noqa: BLE001  it is raised after the batches that are whole
                    chunk, broken = None, error
                if chunk is None:
                    break
                at = 0
                while at < len(chunk):
                    if not begun or begun[-1].rows == size:
                        begun.append(_Batch([room(size, feature, memory) for feature in features]))
                    batch = begun[-1]
                    end = min(at + _TASK, len(chunk), at + size - batch.rows)
                    batch.spans.append((batch.rows, chunk, at))
                    batch.tasks.append(pool.submit(_work, step, chunk, at, end, batch.columns, batch.rows))
                    batch.rows += end - at
                    at = end
                    while begun[0].rows == size and sum(len(batch.tasks) for batch in begun) - len(begun[0].tasks) >= 2 * workers:
                        yield done(begun.popleft())
            while begun and (broken is None or begun[0].rows == size):
                yield done(begun.popleft())
            if broken is not None:
                raise broken
        finally:
            for batch in begun:
                for task in batch.tasks:
                    task.cancel()


def room(size: int, feature: Feature, memory: BatchMemory) -> NDArray[Any]:
    """An array for `size` values of a feature: of its dtype where its shape is known, else of objects."""
    if feature.dtype in ("bytes", "str") or None in feature.shape:
        return np.empty(size, object)
    return memory.empty((size, *(side for side in feature.shape if side is not None)), feature.dtype)


def _work(step: GraphStep, chunk: FeedChunk, begin: int, end: int, columns: Columns, row: int) -> list[tuple[int, TarvizError]]:
    """Write the values of records `begin` to `end` into the rows from `row` on; returns rows that have none, with the error."""
    failed: list[tuple[int, TarvizError]] = []
    given = [chunk.columns[name] for name in step.takes]
    rooms = [(name, column) for name, column in step.along(columns) if name in step.chain.in_place and column.ndim > 1]
    offers = {id(column): name for name, column in rooms}
    for at in range(begin, end):
        place = row + at - begin
        offered = {name: column[place] for name, column in rooms}
        try:
            made = step.call(chunk.places(at), [column[at] for column in given], chunk.draws[at], offered)
        except TarvizError as error:
            failed.append((place, chunk.place_error(at, error)))
            continue
        for column, value in zip(columns, made, strict=True):
            if value is not offered.get(offers.get(id(column), "")):  # one value may be in two columns
                column[place] = value
    return failed


def _finish(
    batch: _Batch, *, step: GraphStep, features: Sequence[Feature], report: ReadReport, lose: Callable[[int], None] | None
) -> Columns:
    """The columns of a batch, when those who work on it are done."""
    failed = [found for task in batch.tasks for found in task.result()]
    columns = [column[: batch.rows] for column in batch.columns]
    rows = np.arange(batch.rows)
    if failed:
        if lose is None:
            raise failed[0][1]
        for row, error in failed:
            chunk, at = batch.origin(row)
            lose(chunk.first + at)
            report.add(error.fault, skipped=True)
        rows = np.delete(rows, [row for row, _ in failed])
        columns = [column[rows] for column in columns]

    def places(row: int) -> Mapping[str, Any]:
        chunk, at = batch.origin(int(rows[row]))
        return chunk.places(at)

    return [stack(column, feature, places, step) for column, feature in zip(columns, features, strict=True)]


def stack(column: NDArray[Any], feature: Feature, places: Callable[[int], Mapping[str, Any]], step: GraphStep) -> NDArray[Any]:
    """A column of one array; where shapes are not known before, they have to be equal in a batch. `places` says where a row comes from."""
    if column.dtype != object or feature.dtype in ("bytes", "str") or not len(column):
        return column
    first = column[0].shape
    for row, value in enumerate(column):
        if value.shape != first:
            where = places(row)
            raise SchemaError(
                f"{Feature(feature.dtype, value.shape)} after {step.chain} does not fit into a batch that begins with "
                f"{Feature(feature.dtype, first)}.",
                shard=where["__shard__"],
                key=where["__key__"],
                hint=f"resize or crop to one size. {VARIES}",
            )
    return np.stack(column.tolist())


def receive(
    pipeline: Pipeline,
    plan: ReaderPlan,
    step: GraphStep,
    schema: Structure,
    size: int,
    track: Track,
    *,
    elsewhere: Elsewhere,
    epoch: int,
    repeat: int | None,
    report: ReadReport,
    memory: BatchMemory,
) -> Generator[Columns, None, None]:
    """The values of a pipeline as columns of `size` records, fewer at the end. `step` is all of it, `schema` what it gives.

    They begin where `track` does, and it is told where each record stands.
    """
    away = replace(elsewhere, fit=functools.partial(fit_value, step, schema), keeps=plan.shuffle > 1)
    walk = Walk(pipeline, shuffle=plan.shuffle, repeat=repeat, elsewhere=away)
    features = step.tensors
    trail, number = replace(track.trail), 0
    with closing(walk.values(plan, epoch, report, trail)) as values:
        while True:
            columns = [room(size, feature, memory) for feature in features]
            places: list[Mapping[str, Any]] = []
            for (turn, piece, behind), (where, made) in itertools.islice(values, size):
                track.note(number, turn, piece, np.array([behind - 1]), trail.versions)
                number += 1
                for column, value in zip(columns, made, strict=True):
                    column[len(places)] = value
                places.append(where)
            if not places:
                return
            whole = [column[: len(places)] for column in columns]
            yield [stack(column, feature, places.__getitem__, step) for column, feature in zip(whole, features, strict=True)]


def fit_value(step: GraphStep, schema: Structure, places: Mapping[str, Any], value: Any) -> tuple[Mapping[str, Any], list[Any]]:
    """Where a record is, and its values as they fit the tensors."""
    if isinstance(step.select, SelectAll):
        return places, step.fit(places, lambda _, name: value[name])
    found = [one for _, one in pair_up(schema, value)]
    return places, step.fit(places, lambda at, _: found[at])
