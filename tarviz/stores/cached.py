"""Remote shards kept on this machine, for data read again and again: whole, checked, one file for each version.

Files lie in a folder that processes share. A file gets its name once every byte has come; its name holds hashes of
URL and version and the CRC32C of its bytes, against which each reading is held. When the folder grows over its
limit, what was used longest ago goes. The option `shard_cache` reads through it, and so does `cache_dir=` of the
WebDataset dialect.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import google_crc32c

from tarviz.model.errors import NotFoundError, StoreError, redact
from tarviz.model.types import URL
from tarviz.stores.base import Sink, Stat, Store, Stream

_LOG = logging.getLogger(__name__)
_PIECE = 1 << 20


class CachedStore(Store):
    """A store whose objects are kept in `folder`, `limit` bytes at most, when they are read from their beginning to their end."""

    lists: ClassVar[bool] = True
    writes: ClassVar[bool] = True
    selects: ClassVar[bool] = True

    def __init__(self, store: Store, folder: Path, limit: int) -> None:
        self.store = store
        self.folder = folder
        self.limit = limit
        self._whole: set[tuple[int, int, int]] = set()  # files that were held against their CRC by this process
        self._away: set[str] = set()  # hosts that this process could not reach
        for name in ("lists", "writes", "selects"):
            setattr(self, name, getattr(store, name))

    def stat(self, url: URL) -> Stat:
        return self.store.stat(url)

    def open(self, url: URL, *, offset: int = 0, etag: str | None = None) -> Stream:
        if etag is None or self.find(url, etag) is None:
            stat = self.store.stat(url)
            if stat.etag is None or stat.size is None or stat.size > self.limit or (etag is not None and etag != stat.etag):
                return self.store.open(url, offset=offset, etag=etag)
            etag = stat.etag
        if (place := self.find(url, etag)) is not None:
            with contextlib.suppress(OSError):  # just thrown out by another process: read it from afar
                return _KeptStream(url, etag, place, offset)
        stream = self.store.open(url, offset=offset, etag=etag)
        return stream if offset else _KeepingStream(stream, self, etag)

    def read(self, url: URL, offset: int, length: int, *, etag: str | None = None) -> bytes:
        if etag is not None and (place := self.find(url, etag)) is not None:
            with contextlib.suppress(OSError), place.open("rb") as file:
                return os.pread(file.fileno(), max(0, length), offset)
        return self.store.read(url, offset, length, etag=etag)

    def list(self, url: URL) -> Iterator[Stat]:
        return self.store.list(url)

    def create(self, url: URL, *, replace: bool = True) -> Sink:
        return self.store.create(url, replace=replace)

    def delete(self, url: URL) -> None:
        self.store.delete(url)

    def find(self, url: URL, etag: str | None) -> Path | None:
        """The file of this version, if it is here; with None, of the version that was used last."""
        if etag is not None:
            return next(self.folder.glob(f"{key_of(url, etag)}-*"), None)
        begin = hash_of(url)
        rows = [row for row in _rows(self.folder) if row[0].name.startswith(begin)] if self.folder.is_dir() else []
        return max(rows, key=lambda row: row[1])[0] if rows else None

    def fetch(self, url: URL) -> Path | None:
        """The file of an object as it is now, fetched where it is not here. None where it cannot be kept: over the limit, a full disk.

        A file is held against its CRC when a process first asks for it; one that is damaged is fetched anew. A store that tells
        no versions is asked once. One that cannot be reached leaves what is here, with a warning, and is not asked for it again.
        """
        host = urlsplit(url).netloc
        if host in self._away and (place := self._checked(self.find(url, None))) is not None:
            return place
        try:
            stat = self.store.stat(url)
        except NotFoundError:
            raise
        except StoreError as error:
            if (place := self._checked(self.find(url, None))) is None:
                raise
            _LOG.warning("%s: the copy kept in %s is used", error, self.folder)
            self._away.add(host)
            return place
        if stat.size is not None and stat.size > self.limit:
            return None
        etag = stat.etag or ""
        if (place := self._checked(self.find(url, etag))) is not None:
            return place
        buffer = memoryview(bytearray(_PIECE))
        with _KeepingStream(self.store.open(url, etag=stat.etag), self, etag) as stream:
            while stream.readinto(buffer):
                pass
            stream.finish()
        return self.find(url, etag)

    def _checked(self, place: Path | None) -> Path | None:
        """A file that is whole, used now. One that is not is removed."""
        if place is None:
            return None
        try:
            with place.open("rb") as file:
                found = os.fstat(file.fileno())
                known = (found.st_dev, found.st_ino, found.st_size)
                if known not in self._whole and _crc(file) != place.name.rpartition("-")[2]:
                    _LOG.warning("%s is damaged; it is removed", place)
                    place.unlink(missing_ok=True)
                    return None
            _touch(place)
        except OSError:  # just thrown out by another process
            return None
        self._whole.add(known)
        return place

    def keep(self, temporary: Path, url: URL, etag: str, crc: str) -> None:
        """Give a complete file its name, and make room."""
        temporary.replace(self.folder / f"{key_of(url, etag)}-{crc}")
        rows = sorted(_rows(self.folder), key=lambda row: row[1])
        total = sum(size for _, _, size in rows)
        for path, _, size in rows[:-1]:
            if total <= self.limit:
                break
            path.unlink(missing_ok=True)
            total -= size


def hash_of(text: str) -> str:
    """20 hexadecimal digits for a URL or a version."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:20]


def key_of(url: URL, etag: str) -> str:
    """What a file's name begins with, URL first; two servers or folders never share one."""
    return hash_of(url) + hash_of(etag)


def _crc(file: Any) -> str:
    found = google_crc32c.Checksum()
    while data := file.read(_PIECE):
        found.update(data)
    return str(found.hexdigest().decode())


def _touch(place: Path) -> None:
    """Note that a file is used now, by the time of its last reading: those who read it take another time of change for other bytes."""
    os.utime(place, ns=(time.time_ns(), place.stat().st_mtime_ns))


def _rows(folder: Path) -> Iterator[tuple[Path, float, int]]:
    """Path, time of the last use and size of the files that are kept; what killed processes left behind is removed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.name.startswith("."):
                    _remove_stale(entry.path)
                else:
                    found = entry.stat()
                    yield Path(entry.path), found.st_atime, found.st_size


def _remove_stale(path: str) -> None:
    """A temporary file whose writer is gone holds no lock."""
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)


class _KeptStream(Stream):
    """A file of the cache, held against its CRC when it is read whole."""

    def __init__(self, url: URL, etag: str, place: Path, offset: int) -> None:
        self._file: Any = place.open("rb", buffering=0)
        self._place = place
        self._sum = google_crc32c.Checksum() if offset == 0 else None
        with contextlib.suppress(OSError):
            _touch(place)
        self.offset = offset
        self.stat = Stat(url, os.fstat(self._file.fileno()).st_size, etag)
        self._file.seek(offset)

    def readinto(self, buffer: memoryview, /) -> int:
        if self._file is None:
            raise StoreError("the stream is closed.", shard=self.stat.url)
        count: int = self._file.readinto(buffer)
        self.offset += count
        if self._sum is not None:
            self._sum.update(bytes(buffer[:count]))
            if self.offset == self.stat.size and not self._place.name.endswith(f"-{self._sum.hexdigest().decode()}"):
                self._place.unlink(missing_ok=True)
                what = f"the copy kept in {self._place.parent} is damaged; it is removed."
                raise StoreError(what, code="E_CORRUPT", shard=self.stat.url, hint="Read the shard again: it is fetched anew.")
        return count

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


class _KeepingStream(Stream):
    """A stream from afar whose bytes are kept as they come; a disk that is full or refuses ends the keeping, not the reading."""

    def __init__(self, stream: Stream, cache: CachedStore, etag: str) -> None:
        self._stream = stream
        self._cache = cache
        self._etag = etag
        self._owner = os.getpid()
        self._sum = google_crc32c.Checksum()
        self._file: Any = None
        self.stat = stream.stat
        self.offset = stream.offset
        self._path = cache.folder / f".{secrets.token_hex(12)}.tmp"
        try:
            cache.folder.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("xb", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError as error:
            self._give_up(error)

    def readinto(self, buffer: memoryview, /) -> int:
        count = self._stream.readinto(buffer)
        self.offset = self._stream.offset
        if self._file is not None and os.getpid() == self._owner:
            data = bytes(buffer[:count])
            try:
                view = memoryview(data)
                while len(view):
                    view = view[self._file.write(view) :]
                self._sum.update(data)
                if self.offset == self.stat.size:
                    self._finish()
            except OSError as error:
                self._give_up(error)
        return count

    def finish(self) -> None:
        """Keep what came: it is all, though the store did not say how much it would be."""
        if self._file is not None:
            try:
                self._finish()
            except OSError as error:
                self._give_up(error)

    def _finish(self) -> None:
        os.fsync(self._file.fileno())
        self._cache.keep(self._path, self.stat.url, self._etag, self._sum.hexdigest().decode())
        self._file.close()
        self._file = None

    def _give_up(self, error: OSError) -> None:
        _LOG.warning("%s is not kept: %s", redact(self.stat.url), error)
        self._drop()

    def _drop(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
            if os.getpid() == self._owner:
                self._path.unlink(missing_ok=True)

    def close(self) -> None:
        self._stream.close()
        self._drop()
