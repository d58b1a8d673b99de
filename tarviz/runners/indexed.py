"""The runner `indexed`: a pipeline whose records are fetched by number, for samplers, Grain, and a shuffle over all shards."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tarviz.formats.index import ShardIndex
from tarviz.model.errors import TarvizError, UsageError
from tarviz.ops.base import unpack
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.read.chosen import numbers as chosen_numbers
from tarviz.read.picked import pick
from tarviz.read.shard_index import refusal, shard_index
from tarviz.read.stream import ReadReport
from tarviz.runners.arguments import whole_number
from tarviz.runners.walk import Walk


class IndexedValues(Sequence[Any]):
    """What a pipeline yields, by number: `len`, `[k]`, and several at once as `[[9, 2, 5]]`, an array of numbers, or a slice.

    Numbers count from 0 over all shards. Several are read in one pass over each shard, neighbours together, and over HTTP and from
    object stores several ranges at a time; they come in the order requested. The first use makes the index of each shard and keeps it
    in the cache: of a plain local tar by its headers alone, of any other by reading it once. A record of a compressed shard is
    found by inflating all before it.

    It is a data set for torch (`DataLoader(…, shuffle=True)` shuffles over all shards; `DistributedSampler` shares it out) and a
    `RandomAccessDataSource` for Grain. `epoch` and `set_epoch` say what random ops draw. It pickles, and threads may share it.
    `ChangedError` when a shard is no longer the one that was indexed. With `where=` or `keys=` the records that they choose are
    counted, and no others.
    """

    def __init__(self, pipeline: Pipeline, *, epoch: int = 0) -> None:
        options = pipeline.options
        if options.on_error == "skip" or options.group == "shard":
            raise UsageError(
                'Pipeline.indexed() needs every record to have a number: on_error="raise" and group="adjacent".',
                hint="tarviz verify finds damaged shards.",
            )
        self.pipeline = pipeline
        self.set_epoch(epoch)
        self._urls = stream.shards(pipeline.urls)
        indexes: list[ShardIndex] = []
        self._chosen: list[NDArray[np.int64] | None] = []
        for url in self._urls:
            index = shard_index(url, pipeline.options)
            assert index is not None  # may_stream is true
            if (error := refusal(url, pipeline.options, index)) is not None:
                raise error.at(hint="tarviz verify says more.")
            indexes.append(index)
            self._chosen.append(chosen_numbers(url, options) if options.where or options.keys else None)
        self._indexes = indexes
        counts = (len(index if rows is None else rows) for index, rows in zip(indexes, self._chosen, strict=True))
        self._starts = list(accumulate(counts, initial=0))

    def __getstate__(self) -> dict[str, Any]:
        return {"pipeline": self.pipeline, "epoch": self.epoch}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["pipeline"], epoch=state["epoch"])  # type: ignore[misc]  # the indexes lie in the cache

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self)} records of {self.pipeline!r}>"

    def __len__(self) -> int:
        return self._starts[-1]

    def set_epoch(self, epoch: int) -> None:
        """What random ops draw from now on."""
        whole_number("epoch", epoch)
        self.epoch = epoch

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice | Sequence[int]) -> list[Any]: ...
    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self._several(range(*at.indices(len(self))))
        if isinstance(at, Sequence | np.ndarray) and np.ndim(at) == 1:
            return self._several(at)
        return self._several([at])[0]

    def __getitems__(self, at: Sequence[int]) -> list[Any]:
        """Several records: what torch's `DataLoader` calls for a batch."""
        return self._several(at)

    def __iter__(self) -> Iterator[Any]:
        whole = range(len(self))
        for low in whole[::64]:
            yield from self._several(whole[low : low + 64])

    def _several(self, at: Sequence[int] | Any) -> list[Any]:
        numbers = [self._number(one) for one in at]
        wanted: dict[int, set[int]] = {}
        for number in numbers:
            shard = bisect_right(self._starts, number) - 1
            wanted.setdefault(shard, set()).add(number - self._starts[shard])
        walk, found, report = Walk(self.pipeline), {}, ReadReport()
        for shard in sorted(wanted):
            places, rows = sorted(wanted[shard]), self._chosen[shard]
            mine = places if rows is None else rows[places].tolist()
            records = pick(self._urls[shard], self._indexes[shard], mine, self.pipeline.options, report)
            for place, record in zip(places, records, strict=True):
                (value,) = walk.work_on([(unpack(record, self.pipeline.needs), record)], self.epoch)
                if isinstance(value, TarvizError):
                    raise value
                found[self._starts[shard] + place] = value
        return [found[number] for number in numbers]

    def _number(self, at: Any) -> int:
        number = operator.index(at)
        if not -len(self) <= number < len(self):
            raise IndexError(f"record {number} of {len(self)}")
        return number % len(self)


run = IndexedValues
