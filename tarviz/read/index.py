"""The records of shards by number and by key, each read on access."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, overload

import numpy as np

from tarviz import stores
from tarviz.formats.index import ShardIndex
from tarviz.model.errors import ChangedError
from tarviz.model.types import URL, Block, Key, Member, Record, rich_form, to_bytes, to_text
from tarviz.read.seek_points import seek_points
from tarviz.read.shard_index import refusal, shard_index
from tarviz.read.sidecar import hold
from tarviz.read.stream import ReadOptions, ReadReport, adjacent_blocks
from tarviz.stores import Store


def _chosen(url: URL, options: ReadOptions, index: ShardIndex) -> ShardIndex:
    from tarviz.read.chosen import numbers, subset

    return subset(index, numbers(url, options))


class Index(Sequence[Record]):
    """The records of shards by number (over all shards, from 0) and by key; each is read on access.

    `len(index)`, `index[17]`, `index["train/n00000017"]`, `index.keys()`. Building reads headers only; it is then
    kept in the cache folder. Reading a record of a plain tar reads that record's bytes and no others; in one packed by
    gzip it is inflated from the nearest place that was reached before, in other packed shards from the front.
    `ChangedError` when the shard changed since it was indexed.
    """

    def __init__(
        self,
        urls: list[URL],
        options: ReadOptions | None = None,
        *,
        cache: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.urls = list(urls)
        self.options = ReadOptions(strict=False) if options is None else options
        if self.options.where or self.options.keys:
            from tarviz.read.chosen import resolved

            self.options = resolved(self.urls, self.options)
        self.shards: list[ShardIndex] = []
        for number, url in enumerate(self.urls):
            built = shard_index(url, self.options, cache=cache, sidecars=self._may_believe())
            assert built is not None  # may_stream is true
            if self.options.strict and (error := refusal(url, self.options, built)) is not None:
                raise error
            self.shards.append(_chosen(url, self.options, built) if self.options.where else built)
            if progress is not None:
                progress(number + 1, len(self.urls))
        self._starts = list(accumulate((len(shard) for shard in self.shards), initial=0))
        self._limit = self.options.rules().max_member_bytes
        self._stores = [stores.of(url) for url in self.urls]  # chosen once: what opens them is theirs to renew

    def _may_believe(self) -> bool:
        """Whether somebody else's word on where records are will do: strict reading looks at all, a choice of records numbers them."""
        return not (self.options.strict or self.options.where or self.options.keys)

    def __len__(self) -> int:
        return self._starts[-1]

    def locate(self, number: int) -> tuple[int, int]:
        """(shard, record in that shard) of record `number`."""
        shard = bisect_right(self._starts, number) - 1
        return shard, number - self._starts[shard]

    def find(self, key: str) -> int | None:
        """The number of the first record of this key."""
        for shard, first in zip(self.shards, self._starts, strict=False):
            record = shard.find(to_bytes(key))
            if record is not None:
                return first + record
        return None

    @overload
    def __getitem__(self, at: int | str) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> list[Record]: ...
    def __getitem__(self, at: int | str | slice) -> Record | list[Record]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        if isinstance(at, str):
            number = self.find(at)
            if number is None:
                raise KeyError(at)
            return self[number]
        number = at.__index__()
        if not -len(self) <= number < len(self):
            raise IndexError(f"record {number} of {len(self)}")
        shard, record = self.locate(number % len(self))
        return read_record(self.urls[shard], self.shards[shard], record, self.options, self._limit, self._stores[shard])

    def keys(self) -> Iterator[str]:
        """Every key, in record order."""
        for shard in self.shards:
            for low in range(0, len(shard), 4096):
                yield from (to_text(key) for key in shard.keys(low, low + 4096))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.find(key) is not None

    def fields(self) -> dict[str, int]:
        """Extension → number of records that have it, over all shards."""
        total: dict[str, int] = {}
        for shard in self.shards:
            for ext, count in shard.fields().items():
                total[ext] = total.get(ext, 0) + count
        return total

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What the scans met, errors of damaged shards included."""
        found = [fault for shard in self.shards for fault in shard.warnings]
        return found + [shard.error for shard in self.shards if shard.error is not None]

    def __repr__(self) -> str:
        fields = ", ".join(f"{ext} ×{count}" for ext, count in self.fields().items())
        return f"<Index of {len(self)} records in {len(self.urls)} shard(s): {fields}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return rich_form(self)


class IndexedRecord(Record):
    """A record read through an index: its bytes, and columns only where they are needed."""

    __slots__ = ("_begin", "_data", "_index", "_url")

    def __init__(self, url: URL, index: ShardIndex, record: int, data: bytes, begin: int) -> None:
        self._row = record
        self._url = url
        self._index = index
        self._data = memoryview(data)
        self._begin = begin

    def __getitem__(self, ext: str) -> memoryview:
        index, row = self._index, self._find(ext)
        if row < 0:
            raise KeyError(ext)
        start = int(index.members.data[row]) - self._begin
        return self._data[start : start + int(index.members.size[row])]

    def _find(self, ext: str) -> int:
        try:
            places = self._places
        except AttributeError:
            index = self._index
            low, high = int(index.rows[self._row]), int(index.rows[self._row + 1])
            places = {index.exts[code]: low + at for at, code in reversed([*enumerate(index.ext[low:high].tolist())])}
            self._places = places
        return places.get(ext, -1)

    @property
    def key(self) -> Key:
        return Key(to_text(self._index.key(self._row)))

    @property
    def shard(self) -> str:
        return self._url

    @property
    def index(self) -> int:
        return self._index.number(self._row)

    @property
    def pending(self) -> bool:
        return self._index.pending == self._row

    def __iter__(self) -> Iterator[str]:
        low, high = self._index.rows[self._row], self._index.rows[self._row + 1]
        return (self._index.exts[code] for code in self._index.ext[low:high].tolist())

    def __len__(self) -> int:
        return int(self._index.rows[self._row + 1] - self._index.rows[self._row])

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(self._index.members.part(int(self._index.rows[self._row]), int(self._index.rows[self._row + 1])))

    def block(self) -> Block:
        """A block holding just this record."""
        index, low, high = self._index, int(self._index.rows[self._row]), int(self._index.rows[self._row + 1])
        members = index.members.part(low, high)
        return Block(
            shard=self._url,
            data=self._data,
            base=self._begin,
            first=self.index,
            keys=[index.key(self._row)],
            rows=np.array([0, high - low]),
            offset=members.data - self._begin,
            size=members.size,
            ext=index.ext[low:high],
            exts=index.exts,
            members=members,
            pending=0 if self.pending else -1,
        )


def read_record(
    url: URL, index: ShardIndex, record: int, options: ReadOptions, limit: int | None = None, store: Store | None = None
) -> Record:
    """Record `record` of a shard, read through its index. `limit`: the most bytes a member may have; `store`: the one of the URL."""
    low, high = int(index.rows[record]), int(index.rows[record + 1])
    begin, end = int(index.members.start[low]), int(index.members.end[high - 1])
    limit = options.rules().max_member_bytes if limit is None else limit
    plain = not (index.members.sparse or end - begin > limit)
    if plain and index.packed == "gzip" and (etag := index.identity.get("etag")) is not None:
        inflated = seek_points(url, etag).read(begin, end - begin)
        if inflated is not None:
            return IndexedRecord(url, index, record, inflated, begin)
    if index.packed or not plain:
        number = index.number(record)
        for block in adjacent_blocks(url, options, ReadReport(), number, number + 1):
            return block[0]
        raise ChangedError("the shard has fewer records than when it was indexed.", shard=url, hint="Index it again.")
    try:
        data = (store or stores.of(url)).read(url, begin, end - begin, etag=index.identity.get("etag"))
    except ChangedError as error:
        raise error.at(hint="The shard changed since it was indexed; index it again.") from None
    if begin + len(data) < int(index.members.data[high - 1] + index.members.size[high - 1]):
        raise ChangedError("the shard is shorter than when it was indexed.", shard=url, offset=begin, hint="Index it again.")
    if index.claimed is not None:
        hold(url, index, record, data, begin)
    return IndexedRecord(url, index, record, data, begin)
