"""Any other scheme that fsspec knows (`sftp://`, `webhdfs://`, `ftp://`, …): what its filesystem can promise, and no more.

A read that breaks goes on where it broke, once the object is seen to be the same (by fsspec's own checksum of it,
or time and size). Errors, waits and credentials are the filesystem's. A write goes to a name beside the final one
and is renamed; where the filesystem cannot rename, nothing is written.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from tarviz.model.errors import ChangedError, MissingPackageError, NotFoundError, StoreError, redact
from tarviz.model.types import URL, Buffer
from tarviz.stores.base import Sink, Stat, Store, Stream, refuse_taken
from tarviz.stores.retry import Attempts, Clock, RetryError

_PIECE = 1 << 20
_TIMEOUT = 60.0
_TIMES = ("mtime", "modified", "last_modified", "LastModified", "modify")
_NAMES = ("etag", "ETag", "checksum", "md5", "generation", "version_id", *_TIMES, "created")


def knows(scheme: str) -> bool:
    """Whether fsspec is installed and has a filesystem for a scheme."""
    try:
        import fsspec
    except ImportError:
        return False
    return scheme in fsspec.available_protocols()


@dataclass(frozen=True)
class AnyStore(Store):
    """The objects of one scheme of fsspec."""

    scheme: str

    lists: ClassVar[bool] = True
    writes: ClassVar[bool] = True
    selects: ClassVar[bool] = True
    remote: ClassVar[bool] = True

    def stat(self, url: URL) -> Stat:
        place, path = _filesystem(url)
        with _errors(url):
            return _stat(url, _info(place, path, url))

    def open(self, url: URL, *, offset: int = 0, etag: str | None = None) -> Stream:
        return _AnyStream(url, offset, etag)

    def read(self, url: URL, offset: int, length: int, *, etag: str | None = None) -> bytes:
        with self.open(url, offset=offset, etag=etag) as stream:
            found = bytearray()
            piece = memoryview(bytearray(min(length, _PIECE)))
            while len(found) < length and (count := stream.readinto(piece[: length - len(found)])):
                found += piece[:count]
        return bytes(found)

    def list(self, url: URL) -> Iterator[Stat]:
        place, path = _filesystem(url)
        with _errors(url):
            rows = place.ls(path, detail=True)
        found = [(str(row["name"]).rstrip("/").rpartition("/")[2], row) for row in rows if row.get("type") != "directory"]
        return iter([_stat(URL(f"{url.rstrip('/')}/{name}"), row) for name, row in sorted(found, key=lambda each: each[0])])

    def create(self, url: URL, *, replace: bool = True) -> Sink:
        return _AnySink(url, None if replace else self)

    def delete(self, url: URL) -> None:
        place, path = _filesystem(url)
        with _errors(url):
            _info(place, path, url)
            place.rm_file(path)


def _filesystem(url: URL) -> tuple[Any, str]:
    """The filesystem of a URL, and the path in it. Nothing that it lists is kept: what is there now counts."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingPackageError.of("fsspec", f"{url.partition(':')[0]}:// URLs", "any") from error
    with _errors(url):
        place, path = fsspec.core.url_to_fs(url, use_listings_cache=False, skip_instance_cache=False)
    return place, str(path)


def _info(place: Any, path: str, url: URL) -> dict[str, Any]:
    place.invalidate_cache(path)
    found: dict[str, Any] = place.info(path)
    if found.get("type") == "directory":
        raise NotFoundError("it is a folder.", shard=url, hint="End the URL with / to take the shards in it.")
    return found


def _stat(url: URL, info: dict[str, Any]) -> Stat:
    size = info.get("size")
    marks = [f"{name} {info[name]}" for name in _NAMES if info.get(name) is not None]
    times = [_seconds(info[name]) for name in _TIMES if info.get(name) is not None]
    etag = "; ".join([*marks, f"size {size}"]) if marks and size is not None else None
    return Stat(url, None if size is None else int(size), etag, next(filter(None, times), None))


def _seconds(value: Any) -> float | None:
    if isinstance(value, datetime):
        return value.timestamp()
    return float(value) if isinstance(value, int | float) else None


@contextlib.contextmanager
def _errors(url: URL) -> Iterator[None]:
    """Errors of a filesystem as ours."""
    try:
        yield
    except (NotFoundError, StoreError):
        raise
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise NotFoundError("there is no such object.", shard=url, hint="Check the URL.") from error
    except PermissionError as error:
        raise StoreError(f"access is refused: {redact(str(error))}.", code="E_AUTH", shard=url) from error
    except ImportError as error:
        hint = "Install the package that fsspec names."
        raise MissingPackageError(f"{url.partition(':')[0]}:// URLs need a package: {error}.", shard=url, hint=hint) from error
    except (OSError, EOFError, ValueError, TypeError, RuntimeError, NotImplementedError) as error:
        what = redact(" ".join(str(error).split())) or type(error).__name__
        raise StoreError(f"the filesystem says: {what}.", shard=url) from error


class _AnyStream(Stream):
    """A file of fsspec that is opened again where it broke."""

    def __init__(self, url: URL, offset: int, etag: str | None) -> None:
        self._place, self._path = _filesystem(url)
        self._url = url
        self._file: Any = None
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._attempts = Attempts(url, _TIMEOUT, Clock(), self._closed)
        self.offset = offset
        self.stat = self._look()
        if etag is not None and etag != self.stat.etag:
            raise self._changed(etag, self.stat)

    def _look(self) -> Stat:
        with _errors(self._url):
            return _stat(self._url, _info(self._place, self._path, self._url))

    def _changed(self, before: str | None, now: Stat) -> ChangedError:
        what = f"the object was replaced: {before} before, {now.etag} now."
        return ChangedError(what, shard=self._url, offset=self.offset, hint="Read it again from the beginning.")

    def readinto(self, buffer: memoryview, /) -> int:
        if os.getpid() != self._owner:  # a forked child: the file is the parent's
            self._owner, self._file, self._lock = os.getpid(), None, threading.Lock()
        with self._lock:
            self._attempts.begin()
            while not self._closed.is_set():
                if not len(buffer) or (self.stat.size is not None and self.offset >= self.stat.size):
                    self._check()
                    return 0
                try:
                    data = self._next(min(len(buffer), _PIECE))
                except RetryError as error:
                    self._drop()
                    if not self._closed.is_set():
                        self._attempts.failed(error, self.offset, reached=True)
                    continue
                buffer[: len(data)] = data
                self.offset += len(data)
                self._attempts.progress()
                return len(data)
        raise StoreError("the stream is closed.", shard=self._url)

    def _check(self) -> None:
        """At the end: whether the bytes were all of one object, where the filesystem reads it piece by piece."""
        if self._file is not None:
            self._drop()
            if (now := self._look()).etag != self.stat.etag:
                raise self._changed(self.stat.etag, now)

    def _next(self, length: int) -> bytes:
        try:
            if self._file is None:
                if (now := self._look()).etag != self.stat.etag:
                    raise self._changed(self.stat.etag, now)
                self._file = self._place.open(self._path, "rb")
                if self.offset:
                    self._file.seek(self.offset)
            data: bytes = self._file.read(length)
        except (StoreError, NotFoundError):
            raise
        except (FileNotFoundError, PermissionError, ImportError, NotImplementedError):
            with _errors(self._url):
                raise
        except (OSError, EOFError, ValueError, RuntimeError) as error:
            raise RetryError(redact(str(error)) or type(error).__name__, at_once=True) from error
        if not data and self.stat.size is not None:
            raise RetryError(f"it ended {self.stat.size - self.offset} bytes early", at_once=True)
        return bytes(data)

    def _drop(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError, EOFError, ValueError, RuntimeError):
                file.close()

    def close(self) -> None:
        self._closed.set()
        if self._lock.acquire(blocking=False):
            self._drop()
            self._lock.release()


class _AnySink(Sink):
    """A file beside the final name, renamed at the end."""

    def __init__(self, url: URL, spare: AnyStore | None) -> None:
        self._place, self._path = _filesystem(url)
        self._url = url
        self._spare = spare  # whose object of that name is left alone
        folder, slash, name = self._path.rpartition("/")
        self._temporary = f"{folder}{slash}.{name}.tmp-{secrets.token_hex(8)}"
        self._stat: Stat | None = None
        with _errors(url):
            if folder:
                self._place.makedirs(folder, exist_ok=True)
            self._file: Any = self._place.open(self._temporary, "wb")

    def write(self, data: Buffer, /) -> None:
        if self._file is None:
            raise StoreError("the object is already committed or aborted.", shard=self._url, code="E_WRITE")
        with _errors(self._url):
            self._file.write(bytes(data))

    def commit(self) -> Stat:
        if self._stat is None:
            if self._file is None:
                raise StoreError("the write was aborted.", shard=self._url, code="E_WRITE")
            file, self._file = self._file, None
            try:
                with _errors(self._url):
                    file.close()
                if self._spare is not None:
                    refuse_taken(self._spare, self._url)
                with _errors(self._url):
                    self._place.mv(self._temporary, self._path)
                    self._stat = _stat(self._url, _info(self._place, self._path, self._url))
            except BaseException:
                self._remove()
                raise
        return self._stat

    def abort(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with contextlib.suppress(OSError, ValueError, RuntimeError):
                file.close()
            self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError, ValueError, RuntimeError, NotImplementedError):
            self._place.rm_file(self._temporary)


def any_store(scheme: str) -> AnyStore:
    """The store of a scheme that fsspec knows."""
    return AnyStore(scheme)
