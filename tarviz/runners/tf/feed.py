"""What a graph is fed with: the records of a pipeline as columns of bytes, a block of a shard at a time; no framework yet."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import Fault, SchemaError, TarvizError
from tarviz.model.in_order import in_order
from tarviz.model.processors import processors
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Block, Record, to_bytes, to_text
from tarviz.ops.base import missing
from tarviz.ops.random_draws import draws
from tarviz.pipeline import Pipeline
from tarviz.read.blocks import members_of
from tarviz.read.indexed import blocks as indexed_blocks
from tarviz.read.read_ahead import MOVED, take_bytes
from tarviz.read.spans import Batch, HeldTar, held_batches
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.runners.ahead import ahead
from tarviz.runners.plans import ReaderPlan, Track, Trail, behind, version
from tarviz.runners.shares import Piece, ShareReader
from tarviz.runners.walk import place_error

_Row: TypeAlias = tuple[bytes, str, int, list[Any]]

_SMALL = 64  # bytes; values of one size up to this are cut out in one vector step
_MIXED = 512  # records in a chunk after a shuffle
_LOADING = 2  # chunks of one shard whose payloads are read at a time, or wait to be


@dataclass(slots=True, eq=False)
class FeedChunk:
    """Records in a row as columns, object arrays of bytes [records], or payloads that lie in a file still; `first` is the number of the
    first in its run.

    `draws` is float64 [records, draws of the chain]. `trail` says which row of a block (its bytes let go) a record was, `piece` of which
    piece of the pass.
    """

    first: int
    keys: Sequence[bytes]
    shards: list[str]
    index: NDArray[np.int64]
    columns: dict[str, NDArray[np.object_] | HeldColumn]
    draws: NDArray[np.float64]
    trail: tuple[Block, NDArray[np.int64]] | None = None
    piece: int = 0

    __repr__ = redacted_repr

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The records' numbers in the run."""
        return np.arange(self.first, self.first + len(self.keys))

    def column(self, name: str) -> NDArray[Any]:
        """A field, or one of `__key__`, `__shard__` (bytes) and `__index__` (int64)."""
        match name:
            case "__key__":
                return _objects(self.keys[:])
            case "__shard__":
                return _objects([to_bytes(shard) for shard in self.shards])
            case "__index__":
                return np.ascontiguousarray(self.index, np.int64)
            case _:
                column = self.columns[name]
                return column if isinstance(column, np.ndarray) else _objects(column[:])

    def places(self, row: int) -> dict[str, Any]:
        """What ops find in a record beside its fields."""
        return {"__key__": to_text(self.keys[row]), "__shard__": self.shards[row], "__index__": int(self.index[row])}

    def record(self, row: int) -> dict[str, Any]:
        """One record as the eager runner has it before the chain."""
        return self.places(row) | {name: column[row] for name, column in self.columns.items()}

    def origin(self, row: int) -> Record | None:
        """Where a record's members stand; its payloads are gone."""
        return None if self.trail is None else self.trail[0][int(self.trail[1][row])]

    def place_error(self, row: int, error: TarvizError) -> TarvizError:
        """The error of a record, with member and byte where these are known."""
        origin = self.origin(row)
        found = place_error(error, origin)
        return found if origin is None else found.at(offset=origin.members[0].header_offset)


def chunks(
    pipeline: Pipeline,
    fields: Mapping[str, tuple[str, ...]],
    report: ReadReport,
    *,
    epoch: int = 0,
    repeat: int | None = 1,
    plan: ReaderPlan | None = None,
    track: Track | None = None,
    workers: int = 1,
    ordered: bool = True,
    extra: bool = False,
    held: bool = False,
) -> Generator[FeedChunk, None, None]:
    """The records of `repeat` passes from `epoch` on, in shard and record order unless shuffled; of several ranks, those that `plan` says.

    They begin where `track` does, and it is told where each stands.

    `fields` are cut out, the rest is not copied; of the names that one stands for, the first that the record has. A record that
    lacks one is a `SchemaError`, or skipped and counted as `on_error` says. `workers` shards are read at the same time;
    `ordered=False` takes their blocks as they come. With `held`, large payloads of plain local shards are read when they are asked for,
    by whoever asks. With `extra`, a warning tells of fields beyond `fields`. A pass without
    records is the last.
    """
    chain, seed = pipeline.chain, pipeline.seed
    plan = plan or ReaderPlan(pipeline, ShareReader())
    track = track or Track(Trail(), mixed=plan.drawn)
    turn, piece, record = track.trail.place
    number = 0
    while repeat is None or turn < repeat:
        begin, resumed = number, (piece, record) != (0, 0)
        feeding = _Feeding(pipeline, fields, report, workers, ordered, set() if extra else None, held)
        whole = plan.pieces(turn, epoch + turn)
        passed = feeding.draw(plan, turn, epoch + turn, whole, record) if plan.drawn else feeding.parts(whole, piece, record)
        with closing(passed) as parts:
            for chunk in parts:
                chunk.first = number
                if chain.draws:
                    chunk.draws = draws(chain, chunk.keys[:], seed, epoch + turn)
                count = np.arange(record + number - begin, record + number - begin + len(chunk))
                track.note(number, turn, chunk.piece, count if plan.drawn else chunk.index, feeding.versions)
                number += len(chunk)
                yield chunk
                del chunk
        report.tell_skipped()
        if number == begin and not resumed and not plan.resumes(turn):
            plan.check_any(epoch + turn)
            return
        turn, piece, record = turn + 1, 0, 0


@dataclass(eq=False, repr=False)
class _Feeding:
    """One pass over pieces of shards; `versions` of those that it has opened, by their number."""

    _pipeline: Pipeline
    _fields: Mapping[str, tuple[str, ...]]
    _report: ReadReport
    _workers: int
    _ordered: bool
    _told: set[str] | None
    _held: bool
    versions: dict[int, str] = field(default_factory=dict)

    def parts(self, whole: Sequence[Piece], number: int = 0, record: int = 0) -> Generator[FeedChunk, None, None]:
        """The records from one of a piece on, as many as come together, cut into columns where they are read."""
        found = list(enumerate(behind(whole, number, record), number))
        width = min(self._workers, len(found))
        if width > 1:
            return ahead(found, self._open, self._report, width, self._ordered)
        return (chunk for each in found for chunk in self._open(each, self._report))

    def _open(self, numbered: tuple[int, Piece], report: ReadReport) -> Generator[FeedChunk, None, None]:
        number, piece = numbered
        options = self._pipeline.options
        start, stop = piece.begin, piece.end
        report.opened = None
        apart = held_batches(piece.url, options, report, start, stop)
        with closing(_in_memory(piece.url, options, report, start, stop) if apart is None else apart) as batches:
            cut = _cut(batches, self._fields, report, options.on_error == "skip", self._told, piece)
            with report.skip_damage(piece.url, options.on_error):
                for chunk in cut if apart is None or self._held else in_order(cut, _load, loaders(), _LOADING):
                    chunk.piece = number
                    self.versions.setdefault(number, version(report.opened))
                    yield chunk
                    del chunk
        self.versions.setdefault(number, version(report.opened))

    def draw(self, plan: ReaderPlan, turn: int, epoch: int, whole: Sequence[Piece], taken: int) -> Generator[FeedChunk, None, None]:
        """Chunks whose records come as those of the eager runner do, mixed and shuffled, without the first `taken`."""

        def read(number: int, record: int, end: int) -> Generator[_Row, None, None]:
            return self._rows(self.parts(whole[:end], number, record))

        def pick(pieces: Sequence[Piece]) -> Generator[_Row, None, None]:
            found, self.versions = self.versions, {}  # of these pieces, which have other numbers
            yield from self._rows(self.parts(pieces))
            self.versions = found

        with closing(plan.records(turn, epoch, whole, taken, read, pick, self.versions)) as order:
            while batch := list(itertools.islice(order, _MIXED)):
                keys, shards, index, values = zip(*batch, strict=True)
                columns: dict[str, NDArray[np.object_] | HeldColumn] = {
                    ext: _objects([value[column] for value in values]) for column, ext in enumerate(self._fields)
                }
                yield FeedChunk(0, list(keys), list(shards), np.array(index, np.int64), columns, np.empty((len(keys), 0)))

    def _rows(self, parts: Generator[FeedChunk, None, None]) -> Generator[_Row, None, None]:
        with closing(parts):
            for chunk in parts:
                columns = (chunk.columns[ext] for ext in self._fields)
                for key, shard, index, *values in zip(chunk.keys[:], chunk.shards, chunk.index.tolist(), *columns, strict=True):
                    yield key, shard, index, values


def _in_memory(url: URL, options: ReadOptions, report: ReadReport, start: int, stop: int | None) -> Generator[Batch, None, None]:
    with closing(indexed_blocks(url, options, report, start, stop)) as blocks:
        for block in blocks:
            yield Batch(block)
            del block


def _cut(
    batches: Iterable[Batch], fields: Mapping[str, tuple[str, ...]], report: ReadReport, skip: bool, told: set[str] | None, piece: Piece
) -> Iterator[FeedChunk]:
    for batch in batches:
        block = batch.block
        if not len(rows := piece.rows(block)):
            continue
        if told is not None:
            _tell_extra(block, fields, told, report)
        members = members_of(block, fields)
        whole = (members[rows] >= 0).all(axis=1)
        lacking: SchemaError | None = None
        if not whole.all():
            for at in np.flatnonzero(~whole).tolist():
                error = lacks(block, int(rows[at]), fields, members)
                if not skip:
                    lacking, rows = error, rows[:at]
                    break
                report.add(error.fault, skipped=True)
            else:
                rows = rows[whole]
        if len(rows):
            yield _chunk(batch, fields, members[rows], rows)
        if lacking is not None:
            raise lacking
        del batch, block


def lacks(block: Block, row: int, fields: Mapping[str, tuple[str, ...]], members: NDArray[np.int64]) -> SchemaError:
    """The error for the first field that a record lacks, by its row of `members_of`."""
    names = next(names for names, at in zip(fields.values(), members[row].tolist(), strict=True) if at < 0)
    record = block[row]
    error = missing("the pipeline", ";".join(names), list(record))
    error.at(shard=block.shard, key=record.key, offset=int(block.members.start[block.rows[row]]))
    error.at(hint='on_error="skip" leaves such records out and counts them; drop or keep fields to need fewer.')
    return error


def _tell_extra(block: Block, fields: Mapping[str, tuple[str, ...]], told: set[str], report: ReadReport) -> None:
    """Say once that a field, unknown to the first block, is left out."""
    for code in set(np.unique(block.ext).tolist()):
        ext = block.exts[code]
        if ext not in fields and ext not in told:
            told.add(ext)
            row = int(np.searchsorted(block.rows, np.flatnonzero(block.ext == code)[0], side="right")) - 1
            text = f"the field {ext!r} is not among those of the first records ({', '.join(fields)}) and is left out."
            report.add(Fault("W_EXTRA_FIELD", text, block.shard, block[row].key))


def _chunk(batch: Batch, fields: Mapping[str, tuple[str, ...]], members: NDArray[np.int64], rows: NDArray[np.int64]) -> FeedChunk:
    block = batch.block
    names = list(itertools.chain.from_iterable(fields.values()))
    alone = len(set(names)) == len(names)  # a member that is two fields is needed twice
    columns = {ext: _payloads(block, members[:, column], batch.source, alone) for column, ext in enumerate(fields)}
    keys: Sequence[bytes] = block.keys if len(rows) == len(block) else [block.keys[row] for row in rows.tolist()]
    bare = replace(block, data=memoryview(b""))
    return FeedChunk(0, keys, [block.shard] * len(rows), block.first + rows, columns, np.empty((len(rows), 0)), (bare, rows))


def _load(chunk: FeedChunk) -> FeedChunk:
    """The chunk with its payloads read."""
    chunk.columns = {name: chunk.column(name) for name in chunk.columns}
    return chunk


def _payloads(block: Block, at: NDArray[np.int64], source: HeldTar | None, alone: bool) -> NDArray[np.object_] | HeldColumn:
    """The payloads of members as bytes of their own, or where they lie in the source of a block that has columns only.

    A tensor of strings is made of Python bytes, each copied once more; cutting here rather than in the graph (`tf.strings.substr`
    on the whole block) copies only what is needed, and makes no allocation of the size of a block: see `tf.py`.
    """
    offset, size = block.offset[at], block.size[at]
    if source is not None:
        return HeldColumn(source, offset, offset + size)
    width = int(size[0])
    if 0 < width <= _SMALL and len(at) > 8 and (size == width).all():
        table = block.array[offset[:, None] + np.arange(width)]
        return _objects(table.view(f"V{width}").ravel().tolist())
    data = block.data
    take = take_bytes if alone and int(size.max()) >= MOVED else bytes
    return _objects([take(data[begin:end]) for begin, end in zip(offset.tolist(), (offset + size).tolist(), strict=True)])


def _objects(values: Sequence[Any]) -> NDArray[np.object_]:
    column = np.empty(len(values), object)
    column[:] = values
    return column


class HeldColumn(Sequence[bytes]):
    """The payloads of a field, read anew each time: `begin` and `end` are their places in the tar. Threads may share it."""

    def __init__(self, source: HeldTar, begin: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        self._source = source
        self._places = begin.tolist(), end.tolist()

    def __len__(self) -> int:
        return len(self._places[0])

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> list[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | list[bytes]:
        begin, end = self._places
        if isinstance(at, slice):
            return list(map(self._source.read, begin[at], end[at]))
        return self._source.read(begin[at], end[at])


@functools.cache
def loaders() -> ThreadPoolExecutor:
    """The threads that read payloads, for all shards of the process.

    malloc keeps memory by thread: threads that come and go leave behind what the next ones do not find, and fresh pages take
    longer to be given than to be read into.
    """
    return ThreadPoolExecutor(max(_LOADING, processors()), "tarviz-load")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=loaders.cache_clear)  # the threads stay with the parent
