"""Large shards worked on as several tasks: where their records are cut, so that no task is the one that all the others wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

import numpy as np

from tarviz.commands.convert.tasks import ShardToConvert
from tarviz.engines import Tick
from tarviz.model.errors import TarvizError
from tarviz.outputs.limits import Limits
from tarviz.read.indexed import RecordRange, dividing_index
from tarviz.read.stream import ReadOptions
from tarviz.tools.split_pieces import cut

PIECE = 64 << 20
"""Bytes of a shard that one task takes; more where a record is larger."""


def large(sources: Sequence[ShardToConvert], room: int, *, carried: bool) -> list[ShardToConvert]:
    """The shards to cut: larger than two pieces and than the share of one of `room` workers, so that the others would wait.

    `carried`: what tasks make is carried through files of theirs, which are to stay small: shards of more than four pieces are cut too.

    >>> sources = [ShardToConvert(at, "s", {"size": size << 20}) for at, size in enumerate((900, 100, 200, 200))]
    >>> [each.number for each in large(sources, 2, carried=False)], [each.number for each in large(sources[:2], 1, carried=True)]
    ([0], [0])
    """
    sizes = [source.entry["size"] or 0 for source in sources]
    least = max(2 * PIECE, sum(sizes) // max(room, 1))
    if carried:
        least = min(least, 4 * PIECE)
    return [source for source, size in zip(sources, sizes, strict=True) if size > least]


def find_ranges(options: ReadOptions, size: int, source: ShardToConvert, file: IO[bytes] | None, tick: Tick) -> list[RecordRange]:
    """The ranges of a shard that are to be tasks of their own; none where no index tells them without reading the shard."""
    try:
        return ranges(source, options, size)
    except TarvizError:
        return []  # whoever converts it says what is wrong


def ranges(source: ShardToConvert, options: ReadOptions, size: int) -> list[RecordRange]:
    """The records of a shard from the one to begin with, in ranges of `size` bytes of tar at most, or of one record."""
    index = dividing_index(source.url, options)
    if index is None or any(index.identity.get(name) != source.entry[name] for name in ("size", "etag", "mtime")):
        return []
    ends = index.members.end[index.rows[1:] - 1]
    begins = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    total = int(source.entry["size"])
    found = []
    for part in cut([(ends - begins)[source.start :]], Limits(size=size)):
        start = source.start + part.first
        stop, begin = start + part.records, int(begins[start])
        last = stop == len(index)
        end = int(ends[stop - 1])
        found.append(RecordRange(start, stop, begin, end, (total if last else end) - begin, source.entry["etag"], last))
    return found
