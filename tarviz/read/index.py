"""The records of shards by number and by key, each read on access."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, KeysView, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, overload

from tarviz import stores
from tarviz.formats.header_scan import hash_one
from tarviz.formats.index import ShardIndex
from tarviz.model.errors import ChangedError
from tarviz.model.types import URL, Block, Key, Member, Record, rich_form, to_bytes, to_text
from tarviz.read.chosen import numbers, resolve, subset
from tarviz.read.options import ReadOptions
from tarviz.read.report import ReadReport
from tarviz.read.several import several
from tarviz.read.shard_index import entered_blocks, refusal, shard_index
from tarviz.read.sidecar import hold
from tarviz.stores import Store


class Index(Sequence[Record]):
    """The records of shards by number (over all shards, from 0) and by key; each is read on access.

    `len(index)`, `index[17]`, `index["train/n00000017"]`, `index.keys()`. Building reads headers only; it is then
    kept in the cache folder. Of shards far away 16 are looked at at a time; `look` is called meanwhile and may raise.
    Reading a record of a plain tar reads that record's bytes and no others; in one packed by gzip it is inflated from the nearest
    place that was reached before, in other packed shards from the front.
    `ChangedError` when the shard changed since it was indexed.
    """

    def __init__(
        self,
        urls: list[URL],
        options: ReadOptions | None = None,
        *,
        cache: bool = True,
        progress: Callable[[int, int], None] | None = None,
        look: Callable[[], None] | None = None,
    ) -> None:
        self.urls = list(urls)
        self.options = ReadOptions(strict=False) if options is None else options
        self.options.refuse_gathering("an index")
        self.options = resolve(self.urls, self.options)
        self.shards: list[ShardIndex] = []
        # Somebody else's word on where records are will do, but for strict reading, which looks at all, and a choice, which numbers them.
        believe = not (self.options.strict or self.options.where)

        def build(url: URL, each: Callable[[], None]) -> ShardIndex | None:
            return shard_index(url, self.options, cache=cache, sidecars=believe, look=look or each)

        for number, (url, built) in enumerate(zip(self.urls, several(self.urls, build), strict=True)):
            assert built is not None  # may_stream is true
            if self.options.strict and (error := refusal(url, self.options, built)) is not None:
                raise error
            self.shards.append(subset(built, numbers(url, self.options)) if self.options.where else built)
            if progress is not None:
                progress(number + 1, len(self.urls))
        self._starts = list(accumulate((len(shard) for shard in self.shards), initial=0))
        self._limit = self.options.rules().max_member_bytes
        self._stores = [stores.of(url) for url in self.urls]  # chosen once: what opens them is theirs to renew

    def __len__(self) -> int:
        return self._starts[-1]

    def locate(self, number: int) -> tuple[int, int]:
        """(shard, record in that shard) of record `number`."""
        shard = bisect_right(self._starts, number) - 1
        return shard, number - self._starts[shard]

    def find(self, key: str) -> int | None:
        """The number of the first record of this key."""
        name = to_bytes(key)
        wanted = hash_one(name)
        for start, shard in zip(self._starts, self.shards, strict=False):
            if (record := shard.find_hashed(name, wanted)) is not None:
                return start + record
        return None

    @overload
    def __getitem__(self, at: int | str) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> list[Record]: ...
    def __getitem__(self, at: int | str | slice) -> Record | list[Record]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        if isinstance(at, str):
            if (number := self.find(at)) is None:
                raise KeyError(at)
        elif not -len(self) <= (number := at.__index__()) < len(self):
            raise IndexError(f"record {number} of {len(self)}")
        shard, record = self.locate(number % len(self))
        return _read_record(self.urls[shard], self.shards[shard], record, self.options, self._limit, self._stores[shard])

    def keys(self) -> Iterator[str]:
        """Every key, in record order."""
        for shard in self.shards:
            for low in range(0, len(shard), 4096):
                yield from (to_text(key) for key in shard.keys(low, low + 4096))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.find(key) is not None

    def fields(self) -> dict[str, int]:
        """Extension → number of records that have it, over all shards."""
        total: Counter[str] = Counter()
        for shard in self.shards:
            total.update(shard.fields())
        return dict(total)

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

    __slots__ = ("_begin", "_data", "_index", "_payloads", "_url")

    def __init__(self, url: URL, index: ShardIndex, record: int, data: bytes, begin: int) -> None:
        self._row = record
        self._url = url
        self._index = index
        self._data = data
        self._begin = begin
        self._payloads: dict[str, memoryview] | None = None  # made for the first one that is looked at

    def __getitem__(self, ext: str) -> memoryview:
        return (self._payloads or self._cut())[ext]

    def keys(self) -> KeysView[str]:
        return (self._payloads or self._cut()).keys()

    def _cut(self) -> dict[str, memoryview]:
        """Extension → payload, in the order of the members."""
        index, data, base = self._index, memoryview(self._data), self._begin
        members, low, high = index.members, index.rows.item(self._row), index.rows.item(self._row + 1)
        codes, starts, sizes = index.ext[low:high].tolist(), members.data[low:high].tolist(), members.size[low:high].tolist()
        rows = zip(codes, starts, sizes, strict=True)
        self._payloads = {index.exts[code]: data[start - base : start - base + size] for code, start, size in rows}
        return self._payloads

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
        return self._row in self._index.pending

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(self._index.members.part(int(self._index.rows[self._row]), int(self._index.rows[self._row + 1])))

    def block(self) -> Block:
        """A block holding just this record."""
        return self._index.block(self._url, self._row, self._row + 1, memoryview(self._data), self._begin)


def _read_record(url: URL, index: ShardIndex, record: int, options: ReadOptions, limit: int, store: Store) -> Record:
    """Record `record` of a shard, read through its index. `limit`: the most bytes a member may have; `store`: the one of the URL."""
    begin, end = index.span(record)
    plain = not (index.members.sparse or end - begin > limit)
    if plain and index.packed == "gzip" and (etag := index.identity.get("etag")) is not None:
        from tarviz.read.seek_points import seek_points  # of packed shards alone

        inflated = seek_points(url, etag).read(begin, end - begin)
        if inflated is not None:
            return IndexedRecord(url, index, record, inflated, begin)
    if index.packed or not plain:
        number = index.number(record)
        counting = replace(options, strict=False, on_error="raise")  # the index was made so, and has numbers for what others leave out
        for block in entered_blocks(url, counting, ReadReport(), number, number + 1):
            return block[0]
        raise ChangedError("the shard has fewer records than when it was indexed.", shard=url, hint="Index it again.")
    _, (found,) = read_together(url, index, [record], store)
    return found


def read_together(url: URL, index: ShardIndex, records: Sequence[int], store: Store) -> tuple[int, list[IndexedRecord]]:
    """Records of a plain shard by one read, and how many bytes that was. `ChangedError` where it is not the shard that was indexed."""
    begin, end = index.span(records[0])
    if len(records) > 1:
        end = index.span(records[-1])[1]
    try:
        data = store.read(url, begin, end - begin, etag=index.identity.get("etag"))
    except ChangedError as error:
        raise error.at(hint="The shard changed since it was indexed; index it again.") from None
    if len(data) < end - begin:  # what fills the last block may be missing
        last = index.rows.item(records[-1] + 1) - 1
        if begin + len(data) < index.members.data.item(last) + index.members.size.item(last):
            raise ChangedError("the shard is shorter than when it was indexed.", shard=url, offset=begin, hint="Index it again.")
    if index.claimed is not None:
        for record, (low, high) in zip(records, map(index.span, records), strict=True):
            hold(url, index, record, data[low - begin : high - begin], low)
    return len(data), [IndexedRecord(url, index, record, data, begin) for record in records]
