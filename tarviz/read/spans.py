"""What the tar tools read: the records of shards as columns, and where their raw bytes can be copied from.

A plain tar on this machine with large payloads is read around them: its bytes never pass through Python, they are
copied from file to file. Everything else comes as blocks in memory. Both ways say the same about damage: what the walker says.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats.header_parse import payload_blocks
from tarviz.formats.index import ShardIndex
from tarviz.formats.pax import number
from tarviz.formats.tar import Scanner
from tarviz.model.errors import ChangedError
from tarviz.model.types import URL, Block
from tarviz.read import chosen
from tarviz.read.blocks import block_of
from tarviz.read.chosen import resolve
from tarviz.read.headers import header_steps, packing
from tarviz.read.indexed import usable_index
from tarviz.read.options import ReadOptions
from tarviz.read.report import Noted, ReadReport
from tarviz.read.rules import Decided
from tarviz.read.shard import adjacent_blocks
from tarviz.read.shard_index import index_of, is_sound, keep_index
from tarviz.read.walker import Walker
from tarviz.stores import local_path
from tarviz.stores.base import READ, read_at
from tarviz.stores.file import file_version, same_bytes

_NOTHING = memoryview(b"")
_LOOK = 64 << 10  # bytes that tell whether payloads are large
_ROOMY = 16 << 10  # bytes of a record from which on each payload is read by itself
_MANY = 24  # headers in as many bytes: small payloads, reading all is faster
_REMEMBERED = 1 << 18  # members of a shard whose index is kept after a pass; that many take some 30 MB until then


class HeldTar:
    """A plain tar of this machine held open, to copy from. Closed when nobody refers to it any more."""

    def __init__(self, url: URL) -> None:
        self.fd = -1
        self.url = url
        self.stat = stores.of(url).stat(url)
        self.fd = os.open(local_path(url), READ)
        if self._now() != self.stat.etag:
            raise self._change_error()

    def _now(self) -> str:
        return file_version(os.fstat(self.fd))

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.stat.size or 0

    def check(self) -> None:
        """`ChangedError` when the file is no longer the one that was opened."""
        if not same_bytes(self._now(), self.stat.etag):
            raise self._change_error()

    def _change_error(self) -> ChangedError:
        return ChangedError("the file was changed while it was copied.", shard=self.url, hint="Begin again.")

    def read(self, begin: int, end: int) -> bytes:
        """The bytes `begin`…`end` of the tar."""
        data = read_at(self.fd, end - begin, begin)
        if len(data) < end - begin:
            self.check()
            raise ChangedError("the file is shorter than its headers say.", shard=self.url, offset=begin)
        return data

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


@dataclass(slots=True, eq=False)
class Batch:
    """Records of one shard in order. With a `source` the bytes are still in that file and `block` has columns only."""

    block: Block
    source: HeldTar | None = None

    def __len__(self) -> int:
        return len(self.block)

    def part(self, low: int, high: int) -> Batch:
        """Records `low`…`high`."""
        return self if low == 0 and high == len(self) else Batch(self.block.part(low, high), self.source)

    def raw(self, begin: int, end: int) -> bytes | memoryview:
        """The tar's bytes `begin`…`end`; zeros stand for padding that the tar lacks."""
        if self.source is not None:
            return self.source.read(begin, end)
        data = self.block.data[begin - self.block.base : end - self.block.base]
        return data if len(data) == end - begin else bytes(data) + bytes(end - begin - len(data))

    def payload(self, row: int) -> bytes | memoryview:
        """The payload of a member, by its row."""
        at, size = int(self.block.offset[row]), int(self.block.size[row])
        return self.block.data[at : at + size] if self.source is None else self.source.read(at, at + size)

    def rows(self, record: int) -> range:
        """The members' rows of a record."""
        return range(int(self.block.rows[record]), int(self.block.rows[record + 1]))

    def ext(self, row: int) -> str:
        """The extension of a member, by its row."""
        return self.block.exts[int(self.block.ext[row])]

    def fields(self, record: int) -> dict[str, int]:
        """Extension → row of a record's members."""
        return {self.ext(row): row for row in self.rows(record)}


def intake(
    urls: Iterable[URL], options: ReadOptions, report: ReadReport, *, start: int = 0, stop: int | None = None
) -> Generator[Batch, None, None]:
    """The records of shards, one shard after the other, `start`…`stop` of them all.

    Raises `DataError` after the last certain record of a damaged shard; with `on_error="skip"` it goes on and the
    report lists what was lost. Close the generator to close the shard.
    """
    place, urls = 0, list(urls)
    options = resolve(urls, options)
    for url in urls:
        with closing(shard_batches(url, options, report)) as run, report.skip_damage(url, options.on_error):
            for batch in run:
                low, high = max(start - place, 0), len(batch) if stop is None else min(len(batch), stop - place)
                place += len(batch)
                if low < high:
                    yield batch.part(low, high)
                del batch
                if stop is not None and place >= stop:
                    return


def shard_batches(url: URL, options: ReadOptions, report: ReadReport, *, returning: bool = False) -> Generator[Batch, None, None]:
    """The records of one shard. `returning=True` disables the check for repeated keys."""
    if options.where or options.keys:
        yield from _chosen_batches(url, options, report)
        return
    source = plain(url) if options.on_error == "raise" else None
    if source is not None and roomy(source):
        yield from _HeaderSpans(source, options.walker(url, returning=returning, payloads="sparse")).batches(report)
        return
    del source
    with closing(adjacent_blocks(url, options, report, returning=returning)) as run:
        for block in run:
            yield Batch(block)
            del block


def held_batches(url: URL, options: ReadOptions, report: ReadReport, start: int, stop: int | None) -> Generator[Batch, None, None] | None:
    """Records `start`…`stop` of a plain tar of this machine with large payloads, to be read one by one where they lie, which spares a copy
    of each; `report` counts them as if they were read. None for another shard, and where damage is skipped.

    By the cached index where there is one; without it headers are read in between, from the front.
    """
    if options.where or options.keys or options.group != "adjacent" or options.on_error != "raise" or not stores.is_local(url):
        return None
    if (found := usable_index(url, options)) is not None:
        index, stat = found
        if not start < (stop := len(index) if stop is None else min(stop, len(index))):
            return None
        span = int(index.members.end[index.rows[stop] - 1] - index.members.start[index.rows[start]])
        if span < (stop - start) * _ROOMY or (source := plain(url)) is None or source.stat.etag != stat.etag:
            return None
        return _by_index(source, index, options, report, start, stop)
    if start or stop is not None or (source := plain(url)) is None or not roomy(source):
        return None
    return _by_headers(source, options, report)


def _by_index(
    source: HeldTar, index: ShardIndex, options: ReadOptions, report: ReadReport, start: int, stop: int
) -> Generator[Batch, None, None]:
    report.opened = source.stat
    begins, size = index.members.start[index.rows[start:stop]], options.rules().block_size
    try:
        low = start
        while low < stop:
            high = start + max(int(np.searchsorted(begins, begins[low - start] + size)), low - start + 1)
            batch = Batch(index.block(source.url, low, high), source)
            report.records += high - low
            report.bytes += int(batch.block.size.sum())
            yield batch
            low = high
    finally:
        report.shards += 1


def _by_headers(source: HeldTar, options: ReadOptions, report: ReadReport) -> Generator[Batch, None, None]:
    """All of a shard. Its index is kept, so that later passes need not look for headers, a quarter of what photos take."""
    report.opened = source.stat
    spans = _HeaderSpans(source, options.walker(source.url), [])
    for batch in spans.batches(report):
        report.bytes += int(batch.block.size.sum())
        yield batch
    if spans.seen and is_sound(index := index_of(spans.walker, spans.seen), options):
        keep_index(source.stat, options, index)


def _chosen_batches(url: URL, options: ReadOptions, report: ReadReport) -> Generator[Batch, None, None]:
    """The chosen records: of a plain shard without a fault where they lie, of any other as blocks in memory."""
    index = chosen.sound_index(url, options)
    source = plain(url) if index is not None else None
    if index is None or source is None:
        with closing(chosen.blocks(url, options, report)) as run:
            for block in run:
                yield Batch(block)
                del block
        return
    there = chosen.subset(index, chosen.numbers(url, options))
    report.shards += 1
    report.records += len(there)
    if len(there):
        yield Batch(there.block(url, 0, len(there)), source)
    source.check()


def plain(url: URL) -> HeldTar | None:
    """The shard to copy from, when it is an uncompressed file of this machine; None for any other."""
    if not stores.is_local(url):
        return None
    stat = stores.of(url).stat(url)
    return HeldTar(url) if stat.ranges and stat.size and packing(url) is None else None


def roomy(source: HeldTar) -> bool:
    """Whether payloads are so large that reading around them pays."""
    head = read_at(source.fd, _LOOK, 0)
    scanner = Scanner(source.url, strict=False)
    return len(scanner.scan(memoryview(head), 0)) < _MANY and scanner.at > len(head)


@dataclass(eq=False)
class _HeaderSpans:
    """Reads a plain tar's headers and leaves its payloads where they are. `seen` is filled with the steps, unless they are too many."""

    source: HeldTar
    walker: Walker
    seen: list[Decided] | None = None

    def batches(self, report: ReadReport) -> Generator[Batch, None, None]:
        walker = self.walker
        try:
            for step in header_steps(self.source.url, walker, ReadReport()):
                report.records += len(step.records)
                self._remember(step)
                yield from self._batches(step)
            self.source.check()
            if walker.error is not None:
                raise walker.error
        finally:
            Noted(report, walker).take(walker.scanner.at)
            report.shards += 1

    def _remember(self, step: Decided) -> None:
        if self.seen is not None:
            self.seen.append(step._replace(data=_NOTHING))
            if self.walker.scanner.found > _REMEMBERED:
                self.seen = None

    def _batches(self, step: Decided) -> Iterator[Batch]:
        """The records of a step; in memory, by themselves: those with sparse members, which are unfolded, and one whose padding is cut."""
        records, low = step.records, 0
        alone = [*sorted(records.members.sparse), *np.flatnonzero(records.members.end > self.source.size).tolist()]
        owners = np.searchsorted(records.rows, alone, side="right") - 1
        for high in [*dict.fromkeys(owners.tolist()), len(records)]:
            if high > low:
                yield Batch(block_of(step.part(low, high)._replace(data=_NOTHING, base=0), self.walker), self.source)
            if high < len(records):
                own = step.part(high, high + 1)
                begin, end = int(own.records.members.start[0]), int(own.records.members.end[-1])
                data = memoryview(self.source.read(begin, min(end, self.source.size)))
                yield Batch(block_of(own._replace(data=data, base=begin), self.walker))
            low = high + 1


def pieces(batch: Batch, rows: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The raw bytes of members, in pieces: where each begins and ends in the tar, and the row it is of.

    A member is one piece, unless a global PAX header stands before it: that is left out, since it would rename whatever is
    written after it.
    """
    members = batch.block.members
    rows = np.arange(len(members)) if rows is None else rows
    begin, end, data = members.start[rows], members.end[rows], members.data[rows]
    extended = np.flatnonzero(data - begin > 512)
    cuts = {at: found for at in extended.tolist() if (found := _without_global(batch, int(begin[at]), int(data[at]), int(end[at])))}
    if not cuts:
        return begin, end, rows
    rest = [(*piece, row) for at, row in enumerate(rows.tolist()) for piece in cuts.get(at, [(int(begin[at]), int(end[at]))])]
    columns = np.array(rest, np.int64).T
    return columns[0], columns[1], columns[2]


def _without_global(batch: Batch, start: int, data: int, end: int) -> list[tuple[int, int]]:
    """A member's bytes without its global headers; empty when it has none."""
    head = bytes(batch.raw(start, data))
    found: list[tuple[int, int]] = []
    at, begin, seen = 0, start, False
    while at + 512 < len(head):
        stop = at + 512 + payload_blocks(number(head[at + 124 : at + 136]) or 0)
        if head[at + 156 : at + 157] == b"g":
            seen = True
            if start + at > begin:
                found.append((begin, start + at))
            begin = start + stop
        at = stop
    return [*found, (begin, end)] if seen else []


def ranges(begin: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ranges that touch, joined: begins and ends of what is left.

    >>> ranges(np.array([0, 5, 20]), np.array([5, 9, 30]))
    (array([ 0, 20]), array([ 9, 30]))
    """
    apart = begin[1:] != end[:-1]
    return np.append(begin[:1], begin[1:][apart]), np.append(end[:-1][apart], end[-1:])
