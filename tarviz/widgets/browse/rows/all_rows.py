"""The rows of all shards, in shard and record order, as far as they are known."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tarviz.model.types import URL
from tarviz.widgets.browse.rows.shard_rows import Row, ShardRows, row_id, split_id


class Rows:
    """The rows of all shards, in shard and record order, as far as they are known. Thread-safe.

    `version` counts changes; `wait` blocks until the next one.
    """

    def __init__(self, urls: Sequence[URL]) -> None:
        self.shards = [ShardRows(number, url) for number, url in enumerate(urls)]
        self.changed = threading.Condition()
        self.version = 0

    def touch(self, shard: ShardRows | None = None) -> None:
        """Say that `shard` has changed, or something else that people look at."""
        with self.changed:
            self.version += 1
            if shard is not None:
                shard.changed = self.version
            self.changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait for the next change."""
        with self.changed:
            self.changed.wait(seconds)

    @property
    def finished(self) -> bool:
        return all(shard.finished for shard in self.shards)

    def starts(self) -> list[int]:
        """Position of each shard's first record among all, up to the first shard that is not finished; the count last."""
        starts = [0]
        for shard in self.shards:
            starts.append(starts[-1] + shard.count)
            if not shard.finished:
                break
        return starts

    def __len__(self) -> int:
        return self.starts()[-1]

    def row(self, row: int) -> Row:
        """The row of a number. `IndexError` where there is none."""
        shard, record = split_id(row)
        if not 0 <= shard < len(self.shards):
            raise IndexError(f"shard {shard} of {len(self.shards)}")
        return self.shards[shard].row(record)

    def ids(self, start: int, stop: int) -> list[int]:
        """Numbers of the rows at the positions `start`…`stop` of all records."""
        starts = self.starts()
        stop = min(stop, starts[-1])
        ids: list[int] = []
        shard = bisect_right(starts, start) - 1
        while start < stop and shard < len(starts) - 1:
            end = min(stop, starts[shard + 1])
            ids += range(row_id(shard, start - starts[shard]), row_id(shard, end - starts[shard]))
            start, shard = end, shard + 1
        return ids

    def exist(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these numbers name a row that there is."""
        counts = np.array([*(shard.count for shard in self.shards), 0], np.int64)
        shard, record = split_id(ids)
        return record < counts[np.where((shard >= 0) & (shard < len(self.shards)), shard, -1)]

    def position(self, row: int) -> int | None:
        """Where a row stands among all records; None while the shards before it are not scanned."""
        shard, record = split_id(row)
        starts = self.starts()
        return starts[shard] + record if shard < len(starts) - 1 and record < self.shards[shard].count else None

    def find(self, key: bytes) -> int | None:
        """The number of the first known row of this key."""
        for shard in self.shards:
            for segment in shard.segments:
                if (at := segment.index.find(key)) is not None:
                    return row_id(shard.number, segment.first + at)
        return None

    def close(self) -> None:
        for shard in self.shards:
            shard.close()
