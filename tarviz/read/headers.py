"""The headers of a shard without its payloads: windows of a local tar around them, or one pass through a stream."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Protocol, TypeVar

import numpy as np

from tarviz import stores
from tarviz.formats.compression import kind
from tarviz.formats.header_scan import BLOCK
from tarviz.formats.tar import Scanner
from tarviz.model.errors import DataError, Fault
from tarviz.model.types import URL, Members
from tarviz.read.report import ReadReport
from tarviz.read.shard import Shard
from tarviz.stores import Stat
from tarviz.stores.base import READ, read_into

_WINDOW = 64 << 10
_LARGEST = 4 << 20
_SMALLEST = 4 << 10
_FAR = 16 << 10  # bytes from header to header from which on each is read by itself
_LARGE = 1 << 20  # bytes of a member from which a request of its own costs less than its payload, over a net
_AT_ONCE = 256

NOTHING = memoryview(b"")
Found = TypeVar("Found", covariant=True)


class HeaderSink(Protocol[Found]):
    """What windows of headers are handed to: a walker, or a listing of members.

    The next window is wanted from byte `place` up to byte `wants`; none when it is `over`. `error` is the damage that ended it.
    """

    scanner: Scanner
    notes: list[Fault]
    place: int
    wants: int

    @property
    def error(self) -> Exception | None: ...
    @property
    def over(self) -> bool: ...

    def walk(self, data: memoryview = ..., base: int = ..., *, final: bool = ..., broken: Exception | None = ...) -> Iterator[Found]: ...
    def add(self, members: Members) -> None: ...
    def source_failed(self, error: Exception) -> None: ...


class MemberListing:
    """Hands the members themselves on, of every type."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.notes = scanner.notes
        self.error: Exception | None = None
        self.over = False
        self.place, self.wants = scanner.at, scanner.wants
        self._added: list[Members] = []

    def add(self, members: Members) -> None:
        self._added.append(members)

    def source_failed(self, error: Exception) -> None:
        self.error = self.error or error

    def walk(
        self, data: memoryview = NOTHING, base: int = 0, *, final: bool = False, broken: Exception | None = None
    ) -> Generator[Members, None, None]:
        """The members whose headers lie in the window."""
        scanner = self.scanner
        added, self._added = self._added, []
        yield from added
        again = True
        while again and scanner.error is None:
            yield scanner.scan(data, base, final=final and broken is None)
            again = scanner.ended and not scanner.over and scanner.behind(data, base, final=final and broken is None)
        self.error = scanner.error or broken
        self.over = scanner.over or self.error is not None
        self.place, self.wants = scanner.at, scanner.wants


def header_steps(url: URL, sink: HeaderSink[Found], report: ReadReport, shard: Shard | None = None) -> Generator[Found, None, str | None]:
    """What `sink` says of the headers of a shard, window by window; the bytes that were read are counted in the report.

    `shard`: it, opened, of which nothing was read yet; it is closed. The generator returns how the shard is packed.
    """
    if shard is None and stores.is_local(url):
        stat = stores.of(url).stat(url)
        if headers_alone(url, stat):
            yield from _around_payloads(url, stat, sink, report)
            return None
    with closing(shard or Shard(url)) as shard:
        plain = shard.compression is None and shard.stat.ranges and shard.stat.size is not None
        head, count, broken = memoryview(bytearray(_SMALLEST if plain else 0)), 0, None
        try:  # a look at the first headers, of the answer that may bring all
            while count < len(head) and (read := shard.readinto(head[count:])):
                count += read
        except Exception as error:  # noqa: BLE001  what came before it is looked at first
            broken = error
        if not _members_are_large(url, head[:count]):
            yield from _through_stream(shard, head[:count], broken, sink, report)
            return shard.compression
    yield from _around_payloads(url, shard.stat, sink, report)
    return None


def packing(url: URL) -> str | None:
    """By what a shard is packed (`"gzip"`, …), as its first bytes say; None: by nothing."""
    return kind(stores.of(url).read(url, 0, 6))


def headers_alone(url: URL, stat: Stat) -> bool:
    """Whether reading headers alone costs less than reading everything: always on this machine, over a net where members are large.

    A packed shard, and one without ranges, is read whole.
    """
    if not stat.ranges or stat.size is None:
        return False
    store, local = stores.of(url), stores.is_local(url)
    head = store.read(url, 0, 6 if local else _SMALLEST, etag=stat.etag)
    return kind(head[:6]) is None and (local or _members_are_large(url, memoryview(head)))


def _members_are_large(url: URL, head: memoryview) -> bool:
    """Whether a request for each header costs less than all payloads, by the first bytes of a plain tar."""
    scanner = Scanner(url, strict=False)
    found = scanner.scan(head, 0)
    return len(found) > 0 and scanner.at >= _LARGE * len(found)


def _around_payloads(url: URL, stat: Stat, sink: HeaderSink[Found], report: ReadReport) -> Iterator[Found]:
    """Read windows that hold headers, seeking over payloads in between; where payloads are large, read single headers."""
    store, size, window, scanner, local = stores.of(url), stat.size or 0, _WINDOW, sink.scanner, stores.is_local(url)
    while not sink.over:
        base, before, found = min(sink.place, size // BLOCK * BLOCK), scanner.at, scanner.found
        wanted = min(max(window, sink.wants - base), size - base)  # a header may promise more than any memory holds
        data = store.read(url, base, wanted, etag=stat.etag) if wanted else b""
        report.bytes += len(data)
        yield from sink.walk(memoryview(data), base, final=base + len(data) >= size)
        count, span = scanner.found - found, scanner.at - before
        dense = span <= 2 * len(data)  # small payloads: reading on costs less than another call
        window = min(window * 2, _LARGEST) if dense else max(window // 2, _SMALLEST)
        while local and not sink.over and count and span > _FAR * count and scanner.error is None and not scanner.ended:
            before = scanner.at
            members = _single_headers(url, stat, scanner, report)
            sink.add(members)
            count, span = len(members), scanner.at - before
            if count < _AT_ONCE:
                window = _SMALLEST
                sink.place, sink.wants = scanner.at, scanner.at + BLOCK
                break
            yield from sink.walk(NOTHING, scanner.at)


def _single_headers(url: URL, stat: Stat, scanner: Scanner, report: ReadReport) -> Members:
    """The members of up to `_AT_ONCE` regular headers, each read by itself; none where the next one needs care."""
    table = np.empty((_AT_ONCE, BLOCK), np.uint8)
    view, at = memoryview(table.ravel().data), scanner.at
    places: list[int] = []
    fd = os.open(stores.local_path(url), READ)
    try:
        while len(places) < _AT_ONCE:
            header = view[len(places) * BLOCK :][:BLOCK]
            if read_into(fd, header, at) < BLOCK:
                break
            try:
                length = int(header[124:135].tobytes(), 8)
            except ValueError:
                break
            if length < 0:
                break
            places.append(at)
            at += BLOCK + ((length + BLOCK - 1) & -BLOCK)
    finally:
        os.close(fd)
    stores.of(url).read(url, 0, 1, etag=stat.etag)  # ChangedError when the file is another by now
    report.bytes += len(places) * BLOCK
    return scanner.take(table[: len(places)], np.array(places, np.int64))


def _through_stream(
    shard: Shard, head: memoryview, broken: Exception | None, sink: HeaderSink[Found], report: ReadReport
) -> Iterator[Found]:
    """Read everything once, keeping no more than the headers of one member; `head` was read already, up to where it broke."""
    buffer, filled, base, final = bytearray(_LARGEST), len(head), 0, broken is not None
    buffer[:filled] = head
    report.bytes += filled
    while not sink.over:
        while filled < len(buffer) and not final:
            try:
                count = shard.readinto(memoryview(buffer)[filled:])
            except Exception as error:  # noqa: BLE001  what came before it is looked at first
                broken, count = error, 0
            final, filled = count == 0, filled + count
            report.bytes += count
        yield from sink.walk(memoryview(buffer)[:filled].toreadonly(), base, final=final, broken=broken)
        begin = min(sink.place, base + filled)
        left = bytes(memoryview(buffer)[begin - base : filled])
        if begin == sink.place and sink.wants - begin > len(buffer):  # a header that does not fit
            buffer = bytearray(-(-(sink.wants - begin) // BLOCK) * BLOCK)
        buffer[: len(left)] = left
        base, filled = begin, len(left)
    try:
        while broken is None and not final:  # the source's own checks are made at its end
            final = shard.readinto(memoryview(buffer)) == 0
    except DataError as error:  # of a packed shard's trailer, for one: the records before it stand
        sink.source_failed(error)
    shard.note_trailing(sink.notes)
