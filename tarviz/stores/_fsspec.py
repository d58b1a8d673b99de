"""Any other scheme that fsspec knows (`sftp://`, `webhdfs://`, `ftp://`, …): what its filesystem can promise, and no more.

A read that breaks goes on where it broke, once the object is seen to be the same (by fsspec's own checksum of it,
or time and size). Errors, waits and credentials are the filesystem's; its options
are the storage options of the URL. A write goes to a name beside the final one
and is renamed; where the filesystem cannot rename, nothing is written.
"""

from __future__ import annotations

import contextlib
import ftplib
import os
import re
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, TypeVar
from urllib.parse import unquote

from tarviz.model.errors import ChangedError, MissingPackageError, NotFoundError, StoreError, TarvizError, UsageError, redact
from tarviz.model.types import URL, Buffer
from tarviz.stores._storage_options import storage_options
from tarviz.stores.base import OneSink, Sink, Stat, Store, Stream, errors_as, refuse_taken, take
from tarviz.stores.retry import Attempts, Clock, RetryError

_PIECE = 1 << 20
_TIMEOUT = 60.0
_TIMES = ("mtime", "modified", "last_modified", "LastModified", "modify")
_NAMES = ("etag", "ETag", "checksum", "md5", "generation", "version_id", *_TIMES, "created")
_DAV = {"webdav+http": "http", "webdav+https": "https"}  # `webdav://` alone says no host: fsspec asks for the option `base_url`
_HIDE = str.maketrans("#?\t\r\n", "\ue000\ue001\ue002\ue003\ue004")
_OTHERS = {"webdav": r"[%#?;\x00-\x1f]|(?<=.)//", "ftp": r"[\r\n]|(?<=.)//", "sftp": "(?<=.)//"}  # what would mean another file
_SHOW = {hidden: sign for sign, hidden in _HIDE.items()}
_T = TypeVar("_T")


def knows(scheme: str) -> bool:
    """Whether fsspec is installed and has a filesystem for a scheme."""
    try:
        import fsspec
    except ImportError:
        return False
    return scheme in _DAV or scheme in fsspec.available_protocols()


@dataclass(frozen=True)
class AnyStore(Store):
    """The objects of every scheme of fsspec."""

    selects: ClassVar[bool] = True
    remote: ClassVar[bool] = True

    def stat(self, url: URL) -> Stat:
        return _stat(url, _ask(url, lambda place, path: _info(place, path, url)))

    def open(self, url: URL, *, offset: int = 0, etag: str | None = None) -> Stream:
        return _AnyStream(url, offset, etag)

    def read(self, url: URL, offset: int, length: int, *, etag: str | None = None) -> bytes:
        with self.open(url, offset=offset, etag=etag) as stream:
            return take(stream, length)

    def list(self, url: URL) -> Iterator[Stat]:
        rows = _ask(url, _rows)
        found = [(str(row["name"]).rstrip("/").rpartition("/")[2], row) for row in rows if row.get("type") != "directory"]
        return iter([_stat(URL(f"{url.rstrip('/')}/{name}"), row) for name, row in sorted(found, key=lambda each: each[0])])

    def walk(self, url: URL) -> Iterator[Stat]:
        folder = url.rpartition("/")[0]
        found = _ask(URL(folder), _below)
        stats = (_stat(URL(f"{folder}/{name}"), found[name]) for name in sorted(found))
        return iter([stat for stat in stats if stat.url.startswith(url)])

    def create(self, url: URL, *, replace: bool = True) -> Sink:
        return _AnySink(url, None if replace else self)

    def delete(self, url: URL) -> None:
        _ask(url, lambda place, path: _info(place, path, url) and place.rm_file(path))


def _filesystem(url: URL, fresh: bool = False) -> tuple[Any, str]:
    """The filesystem of a URL, and the path in it. Nothing that it lists is kept: what is there now counts.

    `fresh`: not over a connection that fsspec has kept for this thread.
    """
    options = dict(storage_options(url))
    scheme, _, rest = url.partition("://")
    if scheme in _DAV:
        host, _, rest = rest.partition("/")
        options = {"base_url": f"{_DAV[scheme]}://{host}/"} | options
        scheme = "webdav"
    with errors_as(_error, url):
        import fsspec

        kind = fsspec.get_filesystem_class(scheme)
        # fsspec splits a path at some of these signs, and leaves the others out: they are part of a file's name
        whole = f"{scheme}://{rest}".translate(_HIDE)
        named = {name: _show_signs(value) for name, value in kind._get_kwargs_from_urls(whole).items()}
        named |= {name: unquote(named[name]) for name in ("username", "password") if named.get(name)}  # fsspec leaves escapes in them
        if fresh:
            kind.clear_instance_cache()
        place = fsspec.filesystem(scheme, **named | options)
        path = _show_signs(str(kind._strip_protocol(whole)))
        if scheme in _OTHERS and (found := re.search(_OTHERS[scheme], path)):
            raise UsageError(f"{scheme}:// cannot name a file with {found[0]!r} in it.", shard=url, hint="Rename it.")
        return place, path


def _show_signs(value: Any) -> Any:
    return value.translate(_SHOW) if isinstance(value, str) else value


def _ask(url: URL, call: Callable[[Any, str], _T]) -> _T:
    """What `call` finds in the filesystem, tried a second time over a new connection: one that was kept may be dead."""
    with errors_as(_error, url):
        try:
            return call(*_filesystem(url))
        except BaseException as error:
            if not _may_pass(error):
                raise
        return call(*_filesystem(url, fresh=True))


def _info(place: Any, path: str, url: URL) -> dict[str, Any]:
    place.invalidate_cache()
    found: dict[str, Any] = place.info(path)
    if found.get("type") == "directory":
        raise NotFoundError("it is a folder.", shard=url, hint="End the URL with / to take the shards in it.")
    return found


def _rows(place: Any, path: str) -> list[dict[str, Any]]:
    """What lies in a folder."""
    place.invalidate_cache()
    found: list[dict[str, Any]] = place.ls(path, detail=True)
    if any(row.get("type") != "directory" and str(row["name"]).strip("/") == path.strip("/") for row in found):
        raise NotADirectoryError(path)
    return found


def _below(place: Any, path: str) -> dict[str, dict[str, Any]]:
    """What lies below a folder, however deep, by what follows the folder in its name."""
    place.invalidate_cache()
    return {str(name).strip("/")[len(path.strip("/")) :].strip("/"): row for name, row in place.find(path, detail=True).items()}


def _rename(place: Any, old: str, new: str) -> None:
    """In one step, over what is there: webdav4 moves files of fsspec by a copy, or not at all."""
    if place.protocol[0] == "webdav":
        place.client.move(old, new, overwrite=True)
    else:
        place.mv(old, new)


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


def _error(error: Exception, url: URL) -> TarvizError:
    """A filesystem raises what its library has, so any exception may be one."""
    said = redact(" ".join(str(error).split())) or type(error).__name__
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return NotFoundError("there is no such object.", shard=url, hint="Check the URL.")
    if isinstance(error, ImportError):
        hint = "Install the package that fsspec names."
        return MissingPackageError(f"{url.partition(':')[0]}:// URLs need a package: {said}.", shard=url, hint=hint)
    if _is_refusal(error):
        hint = "Check user, password or key: in the URL, or as a storage option (TARVIZ_STORAGE_OPTIONS)."
        return StoreError(f"access is refused: {said}.", code="E_AUTH", shard=url, hint=hint)
    return StoreError(f"the filesystem says: {said}.", shard=url)


def _is_refusal(error: Exception) -> bool:
    """Whether a server, of whatever kind, does not let us in."""
    status = getattr(getattr(error, "response", None), "status_code", None) or getattr(error, "status_code", None)
    reply = str(error)[:3] if isinstance(error, ftplib.error_perm) else ""  # RFC 959: 530 and 532 mean that somebody has to log in
    names = {each.__name__ for each in type(error).__mro__}
    return isinstance(error, PermissionError) or "AuthenticationException" in names or status in (401, 403) or reply in ("530", "532")


def _may_pass(error: BaseException) -> bool:
    """Whether a new connection may help."""
    final = FileNotFoundError | FileExistsError | NotADirectoryError | IsADirectoryError | ImportError | NotImplementedError | TypeError
    return isinstance(error, Exception) and not isinstance(error, TarvizError | final) and not _is_refusal(error)


class _AnyStream(Stream):
    """A file of fsspec that is opened again where it broke."""

    def __init__(self, url: URL, offset: int, etag: str | None) -> None:
        self._url = url
        self._file: Any = None
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._attempts = Attempts(url, _TIMEOUT, Clock(), self._closed)
        self.offset = offset
        self.stat = _stat(url, _ask(url, self._meet))
        if etag is not None and etag != self.stat.etag:
            raise self._change_error(etag, self.stat)

    def _meet(self, place: Any, path: str) -> dict[str, Any]:
        self._place, self._path = place, path
        return _info(place, path, self._url)

    def _look(self) -> Stat:
        return _stat(self._url, _info(self._place, self._path, self._url))

    def _change_error(self, before: str | None, now: Stat) -> ChangedError:
        what = f"the object was replaced: {before} before, {now.etag} now."
        return ChangedError(what, shard=self._url, offset=self.offset, hint="Read it again from the beginning.")

    def readinto(self, buffer: memoryview, /) -> int:
        if os.getpid() != self._owner:  # a forked child: file and connection are the parent's
            self._owner, self._file, self._lock = os.getpid(), None, threading.Lock()
            self._place, self._path = _filesystem(self._url)
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
                    with contextlib.suppress(StoreError):  # said by the next attempt
                        self._place, self._path = _filesystem(self._url, fresh=True)
                    if not self._closed.is_set():
                        self._attempts.fail(error, self.offset, reached=True)
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
            with errors_as(_error, self._url):
                now = self._look()
            if now.etag != self.stat.etag:
                raise self._change_error(self.stat.etag, now)

    def _next(self, length: int) -> bytes:
        try:
            if self._file is None:
                if (now := self._look()).etag != self.stat.etag:
                    raise self._change_error(self.stat.etag, now)
                self._file = self._place.open(self._path, "rb")
                if self.offset:
                    self._file.seek(self.offset)
            data: bytes = self._file.read(length)
        except BaseException as error:
            if not _may_pass(error):
                with errors_as(_error, self._url):
                    raise
            raise RetryError(redact(str(error)) or type(error).__name__, at_once=True) from error
        if not data and self.stat.size is not None:
            raise RetryError(f"it ended {self.stat.size - self.offset} bytes early", at_once=True)
        return bytes(data)

    def _drop(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(StoreError, NotFoundError), errors_as(_error, self._url):
                file.close()

    def close(self) -> None:
        self._closed.set()
        if self._lock.acquire(blocking=False):
            self._drop()
            self._lock.release()


class _AnySink(OneSink):
    """A file beside the final name, renamed at the end."""

    def __init__(self, url: URL, spare: AnyStore | None) -> None:
        super().__init__(url)
        self._spare = spare  # whose object of that name is left alone
        self._file: Any = _ask(url, self._begin)

    def _begin(self, place: Any, path: str) -> Any:
        self._place, self._path = place, path
        folder, slash, name = path.rpartition("/")
        self._temporary = f"{folder}{slash}.{name}.tmp-{secrets.token_hex(8)}"
        if folder:
            place.makedirs(folder, exist_ok=True)
        return place.open(self._temporary, "wb")

    def write(self, data: Buffer, /) -> None:
        self.check_open()
        with errors_as(_error, self.url):
            self._file.write(bytes(data))

    def complete(self) -> Stat:
        with errors_as(_error, self.url):
            self._file.close()
            if self._spare is not None:
                refuse_taken(self._spare, self.url)
            _rename(self._place, self._temporary, self._path)
            return _stat(self.url, _info(self._place, self._path, self.url))

    def discard(self) -> None:
        end = "discard" if isinstance(self._file, tempfile.SpooledTemporaryFile) else "close"  # webdav4 would send what it closes
        with contextlib.suppress(StoreError, NotFoundError), errors_as(_error, self.url):
            if not self._file.closed:
                getattr(self._file, end)()
        with contextlib.suppress(StoreError, NotFoundError), errors_as(_error, self.url):
            self._place.rm_file(self._temporary)
