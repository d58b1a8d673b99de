"""`http://` and `https://`: reads that resume, check every length, and never mix two versions of an object.

Environment: `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY` as everywhere; `SSL_CERT_FILE`; `TARVIZ_HTTP_HEADERS` holds
JSON of headers by origin, `{"https://host": {"Authorization": "Bearer …"}}`, never sent to another one.
User and password in a URL are sent as basic authentication and never printed.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NoReturn, TypeVar

import urllib3

from tarviz.model import config
from tarviz.model.errors import NotFoundError, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.stores._http_stream import HttpStream, Version, total_of
from tarviz.stores._pages import children
from tarviz.stores._wire import Wire, origin
from tarviz.stores.base import Sink, Stat, Store, Stream, fill
from tarviz.stores.retry import Attempts, Clock, persist

_PAGE_LIMIT = 16 << 20
_OPTION_NAMES = ("TARVIZ_RETRY_TIMEOUT", "TARVIZ_STALL_TIMEOUT", "TARVIZ_CONFIG", "XDG_CONFIG_HOME", "HOME")
_T = TypeVar("_T")


class HttpStore(Store):
    """Objects of web servers and signed URLs. Reads only.

    `headers` go to the origin of each URL given, never to one it redirects to. `retry_timeout` (seconds
    without progress before a read gives up) and `stall_timeout` (seconds without a byte before it is resumed)
    default to the options. A server that was never reached is tried for 15 seconds at most.
    """

    lists: ClassVar[bool] = True
    writes: ClassVar[bool] = False
    selects: ClassVar[bool] = False

    def __init__(
        self,
        *,
        headers: dict[str, str] | None = None,
        retry_timeout: float | None = None,
        stall_timeout: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {
            "headers": headers,
            "retry_timeout": retry_timeout,
            "stall_timeout": stall_timeout,
            "clock": clock,
        }
        self.clock = clock or Clock()
        self.wire = Wire(dict(headers or {}), self.clock)

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], HttpStore], tuple[dict[str, Any]]]:
        return _rebuild, (self._settings,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HttpStore) and self._settings == other._settings

    __hash__ = None  # type: ignore[assignment]

    def timeouts(self) -> tuple[float, float]:
        """Seconds of `retry_timeout` and `stall_timeout` in force now."""
        retry, stall = self._settings["retry_timeout"], self._settings["stall_timeout"]
        return _timeouts(retry, stall, tuple(map(os.environ.get, _OPTION_NAMES)), int(time.monotonic()))

    def stat(self, url: URL) -> Stat:
        return self._persist(url, lambda stall: self._stat(url, stall))

    def open(self, url: URL, *, offset: int = 0, etag: str | None = None) -> Stream:
        return HttpStream(self.wire, url, offset, None, etag, *self.timeouts())

    def read(self, url: URL, offset: int, length: int, *, etag: str | None = None) -> bytes:
        if length <= 0:
            return b""
        with HttpStream(self.wire, url, offset, offset + length, etag, *self.timeouts()) as stream:
            buffer = bytearray(min(length, max(0, stream.stat.size - offset)) if stream.stat.size is not None else length)
            count = fill(stream, memoryview(buffer))
        return bytes(buffer) if count == len(buffer) else bytes(memoryview(buffer)[:count])

    def list(self, url: URL) -> Iterator[Stat]:
        folder = URL(url if url.partition("?")[0].endswith("/") else f"{url}/")
        with HttpStream(self.wire, folder, 0, None, None, *self.timeouts()) as stream:
            page = bytearray()
            piece = memoryview(bytearray(1 << 16))
            while (count := stream.readinto(piece)) and len(page) < _PAGE_LIMIT:
                page += piece[:count]
        return iter(children(folder, bytes(page)))

    def create(self, url: URL) -> Sink:
        _refuse(url, "written")

    def delete(self, url: URL) -> None:
        _refuse(url, "deleted")

    def _persist(self, url: URL, call: Callable[[float], _T]) -> _T:
        retry, stall = self.timeouts()
        attempts = Attempts(url, retry, self.clock)
        return persist(lambda: call(stall), attempts, lambda: origin(url) in self.wire.reached)

    def _stat(self, url: URL, stall_timeout: float) -> Stat:
        try:
            answer = self.wire.send("HEAD", url, {}, stall_timeout)
        except NotFoundError:
            raise
        except StoreError as error:
            if error.code != "E_AUTH" and error.details.get("status") not in (400, 405, 501):
                raise
            # A signed URL is signed for GET alone, and some servers know no HEAD: ask for one byte.
            answer = self.wire.send("GET", url, {"Range": "bytes=0-0"}, stall_timeout)
        with answer:
            return _stat_of(url, answer)


@functools.lru_cache(maxsize=16)
def _timeouts(retry: float | None, stall: float | None, _: tuple[str | None, ...], second: int) -> tuple[float, float]:
    """The options, looked up once a second: a small ranged read takes less time than looking into the files."""
    found = config.options(retry_timeout=retry, stall_timeout=stall)
    return found.retry_timeout, found.stall_timeout


def _stat_of(url: URL, answer: urllib3.BaseHTTPResponse) -> Stat:
    version = Version.of(answer)
    if answer.status == 200:
        length = answer.headers.get("Content-Length", "")
        ranges = answer.headers.get("Accept-Ranges", "").lower() == "bytes" and not version.coded
        return Stat(url, int(length) if length.isdecimal() else None, version.etag, version.mtime, ranges)
    return Stat(url, total_of(answer), version.etag, version.mtime, ranges=True)


def _rebuild(settings: dict[str, Any]) -> HttpStore:
    return HttpStore(**settings)


def _refuse(url: str, verb: str) -> NoReturn:
    raise UsageError(f"http(s) URLs can be read, not {verb}.", shard=url, hint="Write to a local path and upload it from there.")


def store() -> HttpStore:
    """The store of `http://` and `https://`."""
    return HttpStore()
