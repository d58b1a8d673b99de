"""`memory://name`: objects in the memory of this process, for tests and notebooks."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tarviz.model.errors import ChangedError, NotFoundError, StoreError
from tarviz.model.types import URL, Buffer
from tarviz.stores.base import OneSink, Sink, Stat, Store, Stream, already_there

_objects: dict[str, tuple[bytes, Stat]] = {}
_versions = itertools.count(1)


@dataclass(frozen=True)
class MemoryStore(Store):
    """Whole objects in a dict that lives as long as the process; a forked child gets a copy of its own."""

    def stat(self, url: URL) -> Stat:
        return _find(url, None)[1]

    def open(self, url: URL, *, offset: int = 0, etag: str | None = None) -> Stream:
        data, stat = _find(url, etag)
        return _MemoryStream(data, stat, offset)

    def read(self, url: URL, offset: int, length: int, *, etag: str | None = None) -> bytes:
        return _find(url, etag)[0][offset : offset + length]

    def list(self, url: URL) -> Iterator[Stat]:
        folder = url if url.endswith("/") else f"{url}/"
        below = sorted(name for name in list(_objects) if name.startswith(folder))
        if not below:
            raise NotFoundError("there is no such folder.", shard=url)
        return iter([_objects[name][1] for name in below if "/" not in name[len(folder) :]])

    def walk(self, url: URL) -> Iterator[Stat]:
        return iter([_objects[name][1] for name in sorted(name for name in list(_objects) if name.startswith(url))])

    def create(self, url: URL, *, replace: bool = True) -> Sink:
        return _MemorySink(url, replace)

    def delete(self, url: URL) -> None:
        if _objects.pop(url, None) is None:
            raise _absent(url)


store = MemoryStore


def _absent(url: str) -> NotFoundError:
    there = sorted(_objects)[:5]
    return NotFoundError("there is no such object.", shard=url, hint=f"There are: {', '.join(there)}." if there else "There are none yet.")


def _find(url: URL, etag: str | None) -> tuple[bytes, Stat]:
    if url not in _objects:
        raise _absent(url)
    data, stat = _objects[url]
    if etag is not None and etag != stat.etag:
        raise ChangedError(f"the object was replaced: version {stat.etag} instead of {etag}.", shard=url)
    return data, stat


class _MemoryStream(Stream):
    def __init__(self, data: bytes, stat: Stat, offset: int) -> None:
        self.stat = stat
        self.offset = offset
        self._data: memoryview | None = memoryview(data)

    def readinto(self, buffer: memoryview, /) -> int:
        if self._data is None:
            raise StoreError("the stream is closed.", shard=self.stat.url)
        piece = self._data[self.offset : self.offset + len(buffer)]
        buffer[: len(piece)] = piece
        self.offset += len(piece)
        return len(piece)

    def close(self) -> None:
        self._data = None


class _MemorySink(OneSink):
    def __init__(self, url: URL, replace: bool) -> None:
        super().__init__(url)
        self._replace = replace
        self._data = bytearray()

    def write(self, data: Buffer, /) -> None:
        self.check_open()
        self._data += data

    def complete(self) -> Stat:
        stat = Stat(self.url, len(self._data), f"{next(_versions)}", time.time())
        made = bytes(self._data), stat
        if self._replace:
            _objects[self.url] = made
        elif _objects.setdefault(self.url, made) is not made:
            raise already_there(self.url)
        return stat
