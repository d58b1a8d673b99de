"""Remote shards kept on this machine, for data read again and again: whole, one file for each version, checked wherever it is read.

Files lie in a folder that processes share. A file gets its name, hashes of shard and version, once every byte has come. Beside it lie
the checksums of its parts of a MiB: whatever is read of it, by whatever door, is held against them first, and nothing else is. Where a
part is wrong the copy goes, and the shard is read from afar. When the folder grows over its limit, what was used longest ago goes.
The option `shard_cache` reads through it, and so does `cache_dir=` of the WebDataset dialect.
"""

from __future__ import annotations

import contextlib
import logging
import os
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from tarviz.formats.tfrecord import crc32c
from tarviz.model.errors import NotFoundError, StoreError, redact
from tarviz.model.types import URL, Buffer
from tarviz.model.urls import digest
from tarviz.stores.base import Stat, Store, Stream, read_at, take
from tarviz.stores.cache_files import KeptFile, Temporary, kept_files, oldest, stem, touch

_LOG = logging.getLogger(__name__)
PART = 1 << 20  # bytes that one checksum is of
_SUMS = ".sums"
_ORPHAN = 3600.0  # seconds after which checksums without their file go: a writer gives them their name just before it


class CachedStore:
    """A store whose objects are kept in `folder`, `limit` bytes at most, when they are read from their beginning to their end.

    What does not read is the store's own.
    """

    def __init__(self, store: Store, folder: Path, limit: int) -> None:
        self.store = store
        self.folder = folder
        self.limit = limit
        self._away: set[str] = set()  # hosts that this process could not reach

    def __getattr__(self, name: str) -> Any:
        if name == "store":  # not there yet: it is unpickled
            raise AttributeError(name)
        return getattr(self.store, name)

    def open(self, url: URL, *, offset: int = 0, etag: str | None = None) -> Stream:
        copy = None if etag is None else _open_copy(self.place(url, etag))
        if copy is None:
            stat = self.store.stat(url)
            if stat.etag is None or stat.size is None or stat.size > self.limit or (etag is not None and etag != stat.etag):
                return self.store.open(url, offset=offset, etag=etag)
            etag = stat.etag
            copy = _open_copy(self.place(url, etag))
        if copy is not None:
            return _KeptStream(self, Stat(url, copy.size, etag), copy, offset)
        stream = self.store.open(url, offset=offset, etag=etag)
        return stream if offset else _KeepingStream(stream, self, etag or "")

    def read(self, url: URL, offset: int, length: int, *, etag: str | None = None) -> bytes:
        if etag is None or (copy := _open_copy(self.place(url, etag))) is None:
            return self.store.read(url, offset, length, etag=etag)
        with _KeptStream(self, Stat(url, copy.size, etag), copy, offset) as stream:
            return take(stream, length)

    def place(self, url: URL, etag: str) -> Path:
        """Where the file of this version lies, if it is here."""
        return self.folder / (stem(url) + digest(etag))

    def find(self, url: URL, etag: str | None) -> Path | None:
        """The file of this version, if it is here; with None, of the version that was used last."""
        if etag is not None:
            place = self.place(url, etag)
            return place if place.exists() else None
        rows = copies(self.folder, stem(url))
        return max(rows, key=lambda row: row.used).path if rows else None

    def fetch(self, url: URL) -> Path | None:
        """The file of an object as it is now, fetched where it is not here. None where it cannot be kept: over the limit, a full disk.

        A file is held against its checksums each time; one that is damaged is fetched anew. A store that tells
        no versions is asked once. One that cannot be reached leaves what is here, with a warning, and is not asked for it again.
        """
        host = urlsplit(url).netloc
        if host in self._away and (place := self._check(self.find(url, None))) is not None:
            return place
        try:
            stat = self.store.stat(url)
        except StoreError as error:
            if (place := self._check(self.find(url, None))) is None:
                raise
            _LOG.warning("%s: the copy kept in %s is used", error, self.folder)
            self._away.add(host)
            return place
        if stat.size is not None and stat.size > self.limit:
            return None
        etag = stat.etag or ""
        if (place := self._check(self.find(url, etag))) is not None:
            return place
        buffer = memoryview(bytearray(PART))
        with _KeepingStream(self.store.open(url, etag=stat.etag), self, etag) as stream:
            while stream.readinto(buffer):
                pass
            stream.finish()
        return self.find(url, etag)

    def _check(self, place: Path | None) -> Path | None:
        """A file that is whole, used now: all of it is looked at. One that is not whole is removed."""
        if place is None or (copy := _open_copy(place)) is None:
            return None
        try:
            with copy.file:
                for number in range(len(copy.sums)):
                    copy.part(number)
            return place
        except _DamagedCopyError:
            drop_damaged(place)
            return None

    def keep(self, temporary: Temporary, url: URL, etag: str, sums: Sequence[int]) -> None:
        """Give a complete file its name, and make room."""
        place = self.place(url, etag)
        data = struct.pack(f"<Q{len(sums)}I", os.fstat(temporary.file.fileno()).st_size, *sums)
        with Temporary(self.folder) as beside:
            beside.file.write(data + struct.pack("<I", crc32c(data)))
            beside.keep(place.with_name(place.name + _SUMS))
        temporary.keep(place)
        touch(place)
        rows = [row for row in copies(self.folder) if row.path != place]
        for row in oldest(rows, self.limit - place.stat().st_size):
            drop(row.path)


def copies(folder: Path, begin: str = "") -> list[KeptFile]:
    """The copies of shards in a folder; checksums that nothing lies beside go."""
    rows = kept_files(folder, begin)
    there = {row.path.name for row in rows}
    for row in rows:
        if row.path.name.endswith(_SUMS) and row.path.name.removesuffix(_SUMS) not in there and row.used < time.time() - _ORPHAN:
            row.path.unlink(missing_ok=True)
    return [row for row in rows if not row.path.name.endswith(_SUMS)]


def drop(place: Path) -> None:
    """Remove a copy and its checksums."""
    for name in (place.name, place.name + _SUMS):
        with contextlib.suppress(OSError):
            place.with_name(name).unlink(missing_ok=True)


def drop_damaged(place: Path) -> None:
    """Remove a copy that is not what was kept."""
    _LOG.warning("the copy %s is damaged; it is removed, and the shard read from afar", place)
    drop(place)


class _DamagedCopyError(Exception):
    """A kept file is not what was kept."""


class _Copy:
    """A kept file, opened. `_DamagedCopyError` where it is not as long as it was."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.file: IO[bytes] = place.open("rb", buffering=0)
        try:
            self.size = os.fstat(self.file.fileno()).st_size
            self.sums = self._read_sums()
        except BaseException:
            self.file.close()
            raise
        self._held = -1, memoryview(b"")
        touch(place)

    def _read_sums(self) -> list[int]:
        data = self.place.with_name(self.place.name + _SUMS).read_bytes()
        count = -(-self.size // PART)
        if len(data) != 12 + 4 * count or crc32c(data[:-4]) != int.from_bytes(data[-4:], "little"):
            raise _DamagedCopyError
        size, *sums = struct.unpack(f"<Q{count}I", data[:-4])
        if size != self.size:
            raise _DamagedCopyError
        return sums

    def part(self, number: int) -> memoryview:
        """A part as it is on the disk, held against its checksum each time it is read there; the last one is held in memory."""
        held, data = self._held  # both at once: another thread may read another part
        if held != number:
            data = memoryview(read_at(self.file.fileno(), PART, number * PART))
            if crc32c(data) != self.sums[number]:
                raise _DamagedCopyError
            self._held = number, data
        return data


def _open_copy(place: Path) -> _Copy | None:
    """A kept file; None where it is not kept, or was just thrown out by another process, or is damaged, and goes."""
    try:
        return _Copy(place)
    except _DamagedCopyError:
        drop_damaged(place)
    except OSError:
        pass
    return None


class _KeptStream(Stream):
    """A file of the cache from front to back; from afar, from where its first damaged part begins."""

    def __init__(self, cache: CachedStore, stat: Stat, copy: _Copy, offset: int) -> None:
        self.stat = stat
        self.offset = offset
        self._cache = cache
        self._copy: _Copy | None = copy
        self._afar: Stream | None = None

    def readinto(self, buffer: memoryview, /) -> int:
        if self._copy is not None:
            try:
                number, begin = divmod(self.offset, PART)
                piece = self._copy.part(number)[begin : begin + len(buffer)] if self.offset < self._copy.size else b""
                buffer[: len(piece)] = piece
                self.offset += len(piece)
                return len(piece)
            except _DamagedCopyError:
                self._go_afar(self._copy)
            except ValueError as error:  # the file was closed by another thread
                raise StoreError("the stream is closed.", shard=self.stat.url) from error
        if self._afar is None:
            raise StoreError("the stream is closed.", shard=self.stat.url)
        count = self._afar.readinto(buffer)
        self.offset = self._afar.offset
        return count

    def _go_afar(self, copy: _Copy) -> None:
        """Read on from the store; its errors say what became of the copy."""
        self._copy = None
        copy.file.close()
        drop_damaged(copy.place)
        try:
            self._afar = self._cache.store.open(self.stat.url, offset=self.offset, etag=self.stat.etag)
        except (StoreError, NotFoundError) as error:
            error.hint = " ".join(filter(None, [error.hint, f"The copy kept in {self._cache.folder} was damaged, and is removed."]))
            raise

    def close(self) -> None:
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.file.close()
        if self._afar is not None:
            self._afar.close()


class _KeepingStream(Stream):
    """A stream from afar whose bytes are kept as they come; a disk that is full or refuses ends the keeping, not the reading."""

    def __init__(self, stream: Stream, cache: CachedStore, etag: str) -> None:
        self._stream = stream
        self._cache = cache
        self._etag = etag
        self._sums: list[int] = []
        self._part = bytearray()  # what came of the one that is coming
        self._kept: Temporary | None = None
        self.stat = stream.stat
        self.offset = stream.offset
        try:
            self._kept = Temporary(cache.folder)
        except OSError as error:
            self._give_up(error)

    def readinto(self, buffer: memoryview, /) -> int:
        count = self._stream.readinto(buffer)
        self.offset = self._stream.offset
        if self._kept is not None and self._kept.ours:
            try:
                self._add(self._kept, buffer[:count])
                if self.offset == self.stat.size:
                    self.finish()
            except OSError as error:
                self._give_up(error)
        return count

    def _add(self, kept: Temporary, data: Buffer, *, last: bool = False) -> None:
        self._part += data
        while len(self._part) >= PART or (last and self._part):
            rest = memoryview(bytes(self._part[:PART]))
            del self._part[:PART]
            self._sums.append(crc32c(rest))
            while rest:
                rest = rest[kept.file.write(rest) :]

    def finish(self) -> None:
        """Keep what came: it is all, though the store did not say how much it would be."""
        if self._kept is None:
            return
        try:
            self._add(self._kept, b"", last=True)
            self._cache.keep(self._kept, self.stat.url, self._etag, self._sums)
            self._kept = None
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        _LOG.warning("%s is not kept: %s", redact(self.stat.url), error)
        self._drop()

    def _drop(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.drop()

    def close(self) -> None:
        self._stream.close()
        self._drop()
