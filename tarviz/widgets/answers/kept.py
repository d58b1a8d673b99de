"""Rows of a browser as new shards: what is chosen is copied bit for bit, in the order it lies."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model import plugins
from tarviz.model.errors import ChangedError, UsageError
from tarviz.outputs import Exists, has_counter
from tarviz.read.chosen import Chosen
from tarviz.read.stream import ReadOptions
from tarviz.widgets.browse.rows import Rows, ShardRows, split_id
from tarviz.widgets.browse.scan import how_read


def size(rows: Rows, ids: NDArray[np.int64]) -> int:
    """Bytes of these rows in a tar, without the end mark."""
    total = 0
    for shard, numbers in _by_shard(rows, ids):
        for segment in list(shard.segments):
            own = numbers[(numbers >= segment.first) & (numbers < segment.first + len(segment))] - segment.first
            index = segment.index
            spans = np.concatenate(([0], np.cumsum(index.members.end - index.members.start)))
            total += int((spans[index.rows[own + 1]] - spans[index.rows[own]]).sum())
    return total


def copy(rows: Rows, ids: NDArray[np.int64], output: str | os.PathLike[str], options: ReadOptions, *, exists: Exists = "error") -> None:
    """Write rows as one tar, or, where the name has a counter (`subset-{}.tar`), as shards of at most 10⁹ bytes.

    `ChangedError` when a shard is no longer the one that was scanned.
    """
    chosen: dict[str, NDArray[np.int64]] = {}
    versions: dict[str, dict[str, Any]] = {}
    for shard, numbers in _by_shard(rows, ids):
        if shard.stat is None:
            raise ChangedError("the shard is not there any more.", shard=shard.url)
        chosen[shard.url] = np.sort(numbers)
        versions[shard.url] = {"size": shard.stat.size, "etag": shard.stat.etag, "mtime": shard.stat.mtime}
    if not chosen:
        raise UsageError("There is nothing to save.", hint="Mark records (Space), or show some.")
    reading = how_read(options) | {"strict": False, "where": Chosen("rows", chosen, versions)}
    name = os.fspath(output)
    if has_counter(name):
        plugins.load("commands", "split").split(list(chosen), name, exists=exists, **reading)
    else:
        plugins.load("commands", "cat").cat(list(chosen), name, **reading)


def _by_shard(rows: Rows, ids: NDArray[np.int64]) -> list[tuple[ShardRows, NDArray[np.int64]]]:
    of, numbers = split_id(ids)
    return [(rows.shards[int(shard)], numbers[of == shard]) for shard in np.unique(of).tolist()]
