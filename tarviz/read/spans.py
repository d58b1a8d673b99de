"""What the tar tools read: the records of shards as columns, and where their raw bytes can be copied from.

A plain tar on this machine with large payloads is read around them: its bytes never pass through Python, they are
copied from file to file. Everything else comes as blocks in memory. Whatever is unusual in a plain tar hands over to
the block reader at the record it begins with, so that both ways say the same about damage.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tarviz import stores
from tarviz.formats.compression import kind
from tarviz.formats.header_parse import payload_blocks
from tarviz.formats.index import ShardIndex
from tarviz.formats.member_table import joined
from tarviz.formats.pax import number
from tarviz.formats.records import Grouped, Grouper
from tarviz.formats.tar import Scanner
from tarviz.model.errors import ChangedError, DataError, Fault
from tarviz.model.types import URL, Block, Members, to_text
from tarviz.read import chosen
from tarviz.read.blocks import Blocks
from tarviz.read.chosen import resolved
from tarviz.read.shard_index import header_runs
from tarviz.read.stream import ReadOptions, ReadReport, Shard, _Noted, adjacent_blocks
from tarviz.stores import local_path
from tarviz.stores.file import file_version, same_bytes

_NOTHING = memoryview(b"")
_LOOK = 64 << 10  # bytes that tell whether payloads are large
_MANY = 24  # headers in as many bytes: small payloads, reading all is faster


class Source:
    """A plain tar of this machine held open, to copy from. Closed when nobody refers to it any more."""

    def __init__(self, url: URL) -> None:
        self.fd = -1
        self.url = url
        self.stat = stores.of(url).stat(url)
        self.fd = os.open(local_path(url), os.O_RDONLY | os.O_CLOEXEC)
        if self._now() != self.stat.etag:
            raise self._changed()

    def _now(self) -> str:
        return file_version(os.fstat(self.fd))

    def check(self) -> None:
        """`ChangedError` when the file is no longer the one that was opened."""
        if not same_bytes(self._now(), self.stat.etag):
            raise self._changed()

    def _changed(self) -> ChangedError:
        return ChangedError("the file was changed while it was copied.", shard=self.url, hint="Begin again.")

    def read(self, begin: int, end: int) -> bytes:
        """The bytes `begin`…`end` of the tar."""
        data = os.pread(self.fd, end - begin, begin)
        while 0 < len(data) < end - begin and (more := os.pread(self.fd, end - begin - len(data), begin + len(data))):
            data += more
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
    source: Source | None = None

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

    Raises `DataError` behind the last certain record of a damaged shard; with `on_error="skip"` it goes on and the
    report lists what was lost. Close the generator to close the shard.
    """
    place, urls = 0, list(urls)
    options = resolved(urls, options)
    for url in urls:
        with closing(shard_batches(url, options, report)) as run:
            try:
                for batch in run:
                    low, high = max(start - place, 0), len(batch) if stop is None else min(len(batch), stop - place)
                    place += len(batch)
                    if low < high:
                        yield batch.part(low, high)
                    del batch
                    if stop is not None and place >= stop:
                        return
            except DataError as error:
                if options.on_error == "raise":
                    raise
                report.add(error.at(shard=url).fault, skipped=True)


def shard_batches(url: URL, options: ReadOptions, report: ReadReport, *, returning: bool = False) -> Generator[Batch, None, None]:
    """The records of one shard. With `returning` a key may come again, nobody is told."""
    if options.where or options.keys:
        yield from _chosen(url, options, report)
        return
    source = plain(url) if options.on_error == "raise" else None
    if source is not None and _roomy(source):
        yield from _Around(source, options, report, returning).batches()
        return
    del source
    with closing(adjacent_blocks(url, options, report, returning=returning)) as run:
        for block in run:
            yield Batch(block)
            del block


def _chosen(url: URL, options: ReadOptions, report: ReadReport) -> Generator[Batch, None, None]:
    """The chosen records: of a plain shard without a fault where they lie, of any other as blocks in memory."""
    index = chosen.sound_index(url, options)
    source = plain(url) if index is not None else None
    if index is None or source is None:
        with closing(chosen.blocks(url, options, report)) as run:
            for block in run:
                yield Batch(block)
                del block
        return
    rows = chosen.numbers(url, options)
    there = chosen.subset(index, rows)
    report.shards += 1
    report.records += len(there)
    if len(there):
        yield Batch(_columns(url, there, int(rows[0])), source)
    source.check()


def _columns(url: URL, index: ShardIndex, first: int) -> Block:
    """The records of an index as a block whose bytes are still in the file."""
    return Block(
        shard=url,
        data=_NOTHING,
        base=0,
        first=first,
        keys=index.keys(),
        rows=index.rows,
        offset=index.members.data,
        size=index.members.size,
        ext=index.ext,
        exts=index.exts,
        members=index.members,
        pending=-1,
    )


def plain(url: URL) -> Source | None:
    """The shard to copy from, when it is an uncompressed file of this machine; None for any other."""
    if not stores.is_local(url):
        return None
    store = stores.of(url)
    stat = store.stat(url)
    if not stat.ranges or not stat.size or kind(store.read(url, 0, 6)) is not None:
        return None
    return Source(url)


def _roomy(source: Source) -> bool:
    head = os.pread(source.fd, _LOOK, 0)
    scanner = Scanner(source.url, strict=False)
    return len(scanner.scan(memoryview(head), 0)) < _MANY and scanner.at > len(head)


@dataclass(eq=False)
class _Around:
    """Reads a plain tar's headers and leaves its payloads where they are."""

    source: Source
    options: ReadOptions
    report: ReadReport
    returning: bool = False
    bytes: int = 0
    skipped: list[Fault] = field(default_factory=list)

    def __post_init__(self) -> None:
        url = self.source.url
        self.scanner = Scanner(url, strict=self.options.strict, concatenated=self.options.concatenated)
        self.grouper = Grouper(url, self.options.key_split, self.options.duplicates)
        self._count = 0

    def batches(self) -> Generator[Batch, None, None]:
        carry: Members | None = None
        place = noted = 0
        note = True
        try:
            for run in header_runs(self.source.url, self.scanner, ReadReport()):
                members = run if carry is None else joined([carry, run])
                if self.scanner.error is not None or members.sparse:
                    note = False
                    yield from self._handed_over(place)
                    return
                grouped = self.grouper.group(members, quiet_before=noted)
                noted = self.scanner.at
                closed = len(grouped) - 1
                if closed > 0:
                    yield from self._batch(grouped, closed)
                    place = int(grouped.members.start[int(grouped.rows[closed])])
                    carry = Members(*(getattr(members, name)[members.start >= place] for name in _COLUMNS))
                elif closed == 0:
                    place = int(grouped.members.start[0])
                    carry = members
                else:
                    carry, place = None, noted
            if carry is not None:
                grouped = self.grouper.group(carry, quiet_before=noted)
                yield from self._batch(grouped, len(grouped), doubtful=self._open_end())
            self.source.check()
        finally:
            if note:
                self.bytes = self.scanner.at
                _Noted(self.report).take(self)  # type: ignore[arg-type]
                self.report.shards += 1

    def _open_end(self) -> bool:
        """Whether the archive's end came without its mark, so that the last record may lack a member."""
        last = self.scanner.notes[-1:]
        return any(note.code in ("W_NO_EOF", "W_TRUNCATED_PADDING", "W_ORPHAN_EXT") and "one zero" not in note.message for note in last)

    def _batch(self, grouped: Grouped, closed: int, *, doubtful: bool = False) -> Iterator[Batch]:
        settled, problem = self.grouper.settle(grouped, closed)
        again = [] if self.returning else self.grouper.returns(settled)
        stop = len(settled)
        if again and self.options.strict:
            stop, first_at = again[0]
            problem = self._returned(settled, stop, first_at)
        elif again:
            for row, first_at in again:
                fault = self._returned(settled, row, first_at)
                self.grouper.notes.append(Fault("W_SPLIT_RECORD", fault.message, fault.shard, fault.key, fault.member, fault.offset))
        block = Block(
            shard=self.source.url,
            data=_NOTHING,
            base=0,
            first=self._count,
            keys=settled.keys.tolist(),
            rows=settled.rows,
            offset=settled.members.data,
            size=settled.members.size,
            ext=settled.ext,
            exts=tuple(self.grouper.exts),
            members=settled.members,
            pending=len(settled) - 1 if doubtful else -1,
        )
        block = block if stop == len(block) else block.part(0, stop)
        self._count += len(block)
        self.report.records += len(block)
        if len(block):
            yield Batch(block, self.source)
        if problem is not None:
            raise problem.at(shard=self.source.url, records_before=self._count)

    def _returned(self, grouped: Grouped, record: int, first_at: int) -> DataError:
        row = int(grouped.rows[record])
        offset = int(grouped.members.start[row])
        return DataError(
            f"the key was at byte {first_at} and comes again at byte {offset}: members of one record do not stand together.",
            code="E_SPLIT_RECORD",
            shard=self.source.url,
            key=to_text(bytes(grouped.keys[record])),
            member=to_text(bytes(grouped.members.name[row])),
            offset=offset,
            hint="Sort the shard: tarviz sort.",
        )

    def _handed_over(self, place: int) -> Iterator[Batch]:
        """The rest of the shard from byte `place` on, where a record begins, as blocks in memory."""
        url, before = self.source.url, self.scanner
        scanner = Scanner(url, strict=self.options.strict, concatenated=self.options.concatenated)
        scanner.at = place
        scanner.notes = [note for note in before.notes if (note.offset or 0) < place]
        self.grouper.notes[:] = [note for note in self.grouper.notes if (note.offset or 0) < place]
        cut = self.options.cut(returning=self.returning)
        noted = _Noted(self.report)
        self.report.bytes += place
        with (
            closing(Shard(url, offset=place, etag=self.source.stat.etag)) as shard,
            closing(Blocks(shard, scanner, self.grouper, cut, first=self._count)) as blocks,
        ):
            try:
                for block in blocks:
                    self.report.records += len(block)
                    yield Batch(block)
                    del block
            finally:
                noted.take(blocks)
                self.report.shards += 1


_COLUMNS = ("name", "type", "start", "data", "size", "end")


def pieces(batch: Batch, rows: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The raw bytes of members, in pieces: where each begins and ends in the tar, and the row it is of.

    A member is one piece, unless a global PAX header stands before it: that is left out, since it would rename whatever is
    written behind it.
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
    if len(begin) < 2:
        return begin, end
    apart = begin[1:] != end[:-1]
    return begin[np.concatenate(([True], apart))], end[np.concatenate((apart, [True]))]
