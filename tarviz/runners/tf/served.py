"""What workers of a tf.data service read in one pass: runs of records by their places in files, as columns; no framework yet."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.index import ShardIndex
from tarviz.model.errors import SchemaError, UsageError, redact
from tarviz.model.types import URL
from tarviz.model.urls import local_path
from tarviz.ops.random_draws import draws
from tarviz.pipeline import Pipeline
from tarviz.read.blocks import members_of
from tarviz.read.indexed import usable_index
from tarviz.read.stream import ReadReport
from tarviz.runners.shares import Piece, trusted_index
from tarviz.runners.tf.feed import lacks

_RUN = 64, 4 << 20  # records and bytes of a run, at most
_MOST = 1 << 30  # bytes of the columns: they are part of a graph, which has at most 2 GB


class File(NamedTuple):
    """A shard: its URL, the path that workers read, its bytes, its index."""

    url: URL
    path: str
    size: int
    found: ShardIndex


@dataclass(frozen=True, slots=True, eq=False)
class ServedPlaces:
    """Where the records of a pass are.

    Run *r* is the records `first[r]:first[r + 1]`, the `length[r]` bytes from `begin[r]` on of the file of piece `piece[r]`. By record:
    `index`, its number in its shard; `keys`; `draws`, float64 [records, draws of the chain, one at least]; `offset` and `size`, int64
    [records, fields], of its fields within the run. `lacking` is raised after them.
    """

    files: list[File]
    piece: NDArray[np.int64]
    begin: NDArray[np.int64]
    length: NDArray[np.int64]
    first: NDArray[np.int64]
    index: NDArray[np.int64]
    keys: list[bytes]
    draws: NDArray[np.float64]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]
    lacking: SchemaError | None

    def __len__(self) -> int:
        return len(self.begin)


def places(
    pipeline: Pipeline, fields: Mapping[str, tuple[str, ...]], pieces: Sequence[Piece], epoch: int, report: ReadReport, *, skip: bool
) -> ServedPlaces:
    """The places of the records of pieces, found by the index of each shard, which is made if need be.

    A record that lacks a field is left out and counted with `skip`, else it and all after it are. `UsageError` where a shard has no
    index that tells.
    """
    files: list[File] = []
    found: list[tuple[NDArray[np.int64], list[bytes], NDArray[np.int64], NDArray[np.int64]]] = []
    lacking: SchemaError | None = None
    for piece in pieces:
        index, length = _index(pipeline, piece)
        files.append(File(piece.url, os.path.abspath(local_path(piece.url)), length, index))
        stop = len(index) if piece.stop is None else min(piece.stop, len(index))
        block = index.block(piece.url, piece.start, max(piece.start, stop))
        at = members_of(block, fields)
        rows = np.flatnonzero((at >= 0).all(axis=1))
        for row in np.flatnonzero((at < 0).any(axis=1)).tolist():
            error = lacks(block, row, fields, at)
            if not skip:
                lacking, rows = error, rows[rows < row]
                break
            report.add(error.fault, skipped=True)
        found.append((block.first + rows, [block.keys[row] for row in rows.tolist()], block.offset[at[rows]], block.size[at[rows]]))
        if lacking is not None:
            break
    keys = [key for _, part, _, _ in found for key in part]
    offset, size = np.concatenate([part[2] for part in found]), np.concatenate([part[3] for part in found])
    piece_of = np.repeat(np.arange(len(found)), [len(part[0]) for part in found])
    drawn = draws(pipeline.chain, keys, pipeline.seed, epoch) if pipeline.chain.draws else np.zeros((len(keys), 1))
    if (weight := sum(map(len, keys)) + offset.nbytes + size.nbytes + drawn.nbytes) > _MOST:
        raise UsageError(
            f"the places of {len(keys)} records are {weight >> 20} MiB, more than a graph of TensorFlow holds.",
            hint="engine='ray' has no such limit; or take fewer shards at a time.",
        )
    first = _runs(piece_of, offset.min(axis=1), (offset + size).max(axis=1))
    low, high = first[:-1], first[1:]
    begin = np.minimum.reduceat(offset.min(axis=1), low) if len(low) else np.empty(0, np.int64)
    end = np.maximum.reduceat((offset + size).max(axis=1), low) if len(low) else begin
    run = np.repeat(np.arange(len(low)), high - low)
    return ServedPlaces(
        files,
        piece_of[low],
        begin,
        np.maximum(end - begin, 1),
        first,
        np.concatenate([part[0] for part in found]),
        keys,
        drawn,
        offset - begin[run][:, None],
        size,
        lacking,
    )


def _index(pipeline: Pipeline, piece: Piece) -> tuple[ShardIndex, int]:
    options = pipeline.options
    plain = piece.only is None and piece.of == 1 and not options.where and not options.keys
    if plain and trusted_index(piece.url, options) is not None and (found := usable_index(piece.url, options)) is not None:
        index, stat = found
        if not index.members.sparse and stat.size is not None:
            return index, stat.size
    raise UsageError(
        f"a tf.data service reads plain local tars by their index, without where=, keys= and group='shard'; {redact(piece.url)} is read "
        "in another way.",
        hint="engine='ray' reads any shard. tarviz verify says what an index would stumble over.",
    )


def _runs(piece: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where runs begin, and after the last: at most 64 records of a piece, and 4 MiB where these are more than one.

    >>> _runs(np.array([0, 0, 1]), np.array([0, 10, 0]), np.array([9, 5 << 20, 9])).tolist()
    [0, 1, 2, 3]
    """
    first: list[int] = []
    of, begin = -1, 0
    for at, (which, low, high) in enumerate(zip(piece.tolist(), start.tolist(), end.tolist(), strict=True)):
        if which != of or at - first[-1] >= _RUN[0] or high - begin > _RUN[1]:
            first.append(at)
            of, begin = which, low
    return np.array([*first, len(piece)], np.int64)
