"""Random access into a shard packed by gzip: copies of the inflater, left behind on the way, from which later reads go on."""

from __future__ import annotations

import functools
import os
import threading
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from tarviz import stores
from tarviz.model.types import URL
from tarviz.stores import Store

SPACING = 1 << 20  # inflated bytes from point to point, doubled whenever there are too many
MOST = 256  # points of a shard: a copy of zlib's inflater takes about 45 kB
_PIECE = 256 << 10
_GZIP = 31  # zlib's word for a stream with the header and trailer of gzip, whose checksum it makes
_MAGIC = b"\x1f\x8b"
_inflated = attrgetter("inflated")


@dataclass(frozen=True, slots=True, order=True)
class _Point:
    """Where the inflater stood: bytes it had given, bytes it had taken."""

    inflated: int
    compressed: int
    decoder: Any = field(compare=False, repr=False)


class SeekPoints:
    """Reads bytes of the inflated tar. The first read inflates from the front, later ones from the point before what they want.

    Threads may share it; each inflates for itself, and all of them leave points for the others.
    """

    def __init__(self, url: URL, etag: str) -> None:
        self._url = url
        self._etag = etag
        self._lock = threading.Lock()
        self._spacing = SPACING
        self._points = [_Point(0, 0, zlib.decompressobj(_GZIP))]

    def __len__(self) -> int:
        return len(self._points)

    def read(self, begin: int, length: int) -> bytes | None:
        """`length` bytes of the tar from byte `begin` on; None where they cannot be inflated from here: read it from the front then.

        `ChangedError` where the shard is no longer the one that was indexed.
        """
        end = begin + length
        with self._lock:
            at = bisect_right(self._points, begin, key=_inflated) - 1
            point = self._points[at]
            after = bisect_left(self._points, end, key=_inflated)
            stop = self._points[after].compressed if after < len(self._points) else None
        data = bytearray()
        with closing(self._pieces(point, stop)) as pieces:
            for place, piece in pieces:
                data += piece[max(0, begin - place) : max(0, end - place)]
                if len(data) == length:
                    return bytes(data)
        return None

    def _pieces(self, point: _Point, stop: int | None) -> Generator[tuple[int, bytes], None, None]:
        """Inflated pieces from a point on, each with its place in the tar; they end early where there is damage."""
        decoder, inflated, taken = point.decoder.copy(), point.inflated, point.compressed
        with closing(_read_packed(stores.of(self._url), self._url, self._etag, taken, stop)) as source:
            for chunk in source:
                data, taken = chunk, taken + len(chunk)
                while data:
                    try:
                        piece = decoder.decompress(data, _PIECE)
                    except zlib.error:
                        return
                    data = decoder.unconsumed_tail
                    if decoder.eof:
                        data = decoder.unused_data
                        if data[:2] not in (_MAGIC, _MAGIC[:1], b""):
                            data = b""  # what follows is no gzip: all that can be inflated has been
                        decoder = zlib.decompressobj(_GZIP)
                    if piece:
                        yield inflated, piece
                        inflated += len(piece)
                    self._leave(inflated, taken - len(data), decoder)

    def _leave(self, inflated: int, compressed: int, decoder: Any) -> None:
        """A point, where none is near."""
        with self._lock:
            at = bisect_right(self._points, inflated, key=_inflated)
            near = [inflated - self._points[at - 1].inflated]
            if at < len(self._points):
                near.append(self._points[at].inflated - inflated)
            if min(near) < self._spacing:
                return
            self._points.insert(at, _Point(inflated, compressed, decoder.copy()))
            if len(self._points) > MOST:
                del self._points[1::2]
                self._spacing *= 2


def _read_packed(store: Store, url: URL, etag: str, begin: int, stop: int | None) -> Generator[bytes, None, None]:
    """The packed bytes of a shard from one on: up to another one by a range, to the end by a stream."""
    if stop is not None:
        yield store.read(url, begin, stop - begin, etag=etag)
        return
    with store.open(url, offset=begin, etag=etag) as stream:
        chunk = memoryview(bytearray(_PIECE))
        while count := stream.readinto(chunk):
            yield bytes(chunk[:count])


def seek_points(url: URL, etag: str) -> SeekPoints:
    """The points of one version of a shard, those of the last shards read kept; a forked child leaves its own."""
    return _points_of(url, etag, os.getpid())


@functools.lru_cache(maxsize=8)
def _points_of(url: URL, etag: str, process: int) -> SeekPoints:
    return SeekPoints(url, etag)
