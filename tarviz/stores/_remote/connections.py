"""Connections of a request: bodies that are longer than they say are found out, and come without a copy where they can."""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

_BATCH = 384 << 10  # bytes for which a reader is woken; a megabyte leaves the server waiting between two of them
_LINES, _LINE = 100, 1 << 16  # lines of a trailer, answers before the answer (1xx); bytes of a line
_MOMENT = 0.05  # seconds after which what came is handed on, though more is wanted


class _Excess(http.client.HTTPException):
    """The body goes on where Content-Length says that it ends."""


class _Flood(http.client.HTTPException):
    """Lines without end before or after a body."""


class _Timed(io.RawIOBase):
    """What comes over a socket, until `until` (seconds of the steady clock; None: however long it takes)."""

    until: float | None = None

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        if self.until is not None and time.monotonic() > self.until:
            raise TimeoutError("timed out")
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Body(http.client.HTTPResponse):
    """A response that detects bytes past its Content-Length, and lines without end: http.client does neither."""

    _failed: OSError | ValueError | None = None
    _held = True
    _over = False
    _batch = 1  # bytes that wake a reader
    _limit: float | None = None  # seconds without a byte after which it is given up; negative: Python keeps the time

    def __init__(self, sock: object, *args: object, **options: object) -> None:
        super().__init__(sock, *args, **options)  # type: ignore[arg-type]
        self.wire = sock
        self._timed = _Timed(self.fp.detach())
        self.fp = io.BufferedReader(self._timed)

    def begin(self) -> None:
        with self._in_time():
            super().begin()

    @contextlib.contextmanager
    def _in_time(self) -> Iterator[None]:
        """Lines have twice the time that one byte has, all together."""
        limit = self.wire.gettimeout()  # type: ignore[attr-defined]
        self._timed.until = None if limit is None else time.monotonic() + 2 * limit
        try:
            yield
        finally:
            self._timed.until = None

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(_LINES):
            found: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
            if found[1] // 100 != 1 or found[1] == http.client.SWITCHING_PROTOCOLS:
                return found
            http.client.parse_headers(self.fp)
        raise _Flood

    def _read_and_discard_trailer(self) -> None:
        with self._in_time():
            for _ in range(_LINES):
                if not self.fp.readline(_LINE).strip(b"\r\n"):
                    return
        raise _Flood

    def read1(self, n: int = -1) -> bytes:
        if self.fp is None or self.chunked or not self.length or self._method == "HEAD":  # type: ignore[attr-defined]
            return super().read1(n)
        data: bytes = self.fp.read1(self.length if n < 0 else min(n, self.length))
        self._take_off(len(data))
        return data

    def straight_into(self, buffer: memoryview) -> int | None:
        """What comes, without a copy, until `buffer` is full or a moment has passed; None where the body's length is not known."""
        if self.fp is None or self.chunked or not self.length:
            return None
        if self._failed is not None:
            raise self._failed
        done, wanted, until = 0, min(len(buffer), self.length), time.monotonic() + _MOMENT
        try:
            while done < wanted and (count := self._once(buffer[done:wanted], self.length - done)):
                done += count
                if time.monotonic() > until:
                    break
        except (OSError, ValueError) as error:
            if not done:
                raise
            self._failed = error  # for the next call: what came before is the reader's
        self._take_off(done)
        return done

    def _once(self, buffer: memoryview, left: int) -> int:
        """What the file over the socket holds, or one read of the socket: by itself, for `readinto1` loses that where the socket fails.

        `left`: bytes of the body that are still to come.
        """
        if self._held:
            self._held = len(buffer) <= io.DEFAULT_BUFFER_SIZE
            piece = self.fp.read1(len(buffer))
            buffer[: len(piece)] = piece
            return len(piece)
        if self._limit is None:
            self._limit = _let_kernel_wait(self.wire)
        if self._limit < 0:
            count: int = self.fp.readinto1(buffer)
            return count
        # At a body's end nothing follows that would make a batch full.
        wanted = min(len(buffer), left - _BATCH) if left > _BATCH else len(buffer)
        self._wake_at(min(wanted, _BATCH) if left > _BATCH else 1)
        end = time.monotonic() + self._limit
        while True:
            try:
                return self.wire.recv_into(buffer, wanted, socket.MSG_WAITALL)  # type: ignore[attr-defined,no-any-return]
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise TimeoutError("timed out") from None

    def _wake_at(self, count: int) -> None:
        """Have the kernel wake a reader for so many bytes, not for every packet: that costs more than copying what is in it."""
        if count != self._batch:
            self.wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)  # type: ignore[attr-defined]
            self._batch = count

    def _take_off(self, count: int) -> None:
        assert self.length is not None
        self.length -= count
        if self.length == 0:
            self._wake_at(1)
            behind = self._behind()
            if behind.strip(b"\r\n"):
                raise _Excess
            self._over = not behind

    def is_over(self) -> bool:
        """Whether all of the answer came and nothing after it: its connection is fit for the next request."""
        return self._over or (self._method == "HEAD" and self.fp is not None and not self._behind())  # type: ignore[attr-defined]

    def _behind(self) -> bytes:
        """What has arrived after the body, without waiting for it."""
        before = self.wire.gettimeout()  # type: ignore[attr-defined]
        self.wire.settimeout(0)  # type: ignore[attr-defined]
        try:
            return self.fp.peek(1)
        except OSError:  # nothing there (TLS), or reset by the server: the body is complete all the same
            return b""
        finally:
            self.wire.settimeout(before)  # type: ignore[attr-defined]


def _let_kernel_wait(line: object) -> float:
    """Have the kernel fill a buffer in one call, for a moment at most: the seconds that the socket had to wait; -1 where it cannot.

    A socket whose time Python keeps takes two calls, and a turn of Python's lock, for every few packets.
    """
    limit = line.gettimeout() if type(line) is socket.socket and sys.platform == "linux" else None
    if not limit:
        return -1.0
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, int(_MOMENT * 1e6)))  # type: ignore[attr-defined]
    line.settimeout(None)  # type: ignore[attr-defined]
    return limit


class _Asking(threading.local):
    """What this thread tells of the socket on which it waits for an answer."""

    waits: Callable[[socket.socket], object] | None = None


asking = _Asking()


class _Connection(HTTPConnection):
    response_class = _Body

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        if asking.waits is not None and self.sock is not None:
            asking.waits(self.sock)
        return super().getresponse()


class _SecureConnection(_Connection, HTTPSConnection):
    """The same over TLS."""


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


def make_manager(proxy: str, tls: ssl.SSLContext | None = None) -> urllib3.PoolManager:
    """Pools of such connections, through a proxy where one is named; `tls`: what they trust, if not what this machine does."""
    make: Any = urllib3.PoolManager
    if proxy:
        address = proxy if "://" in proxy else f"http://{proxy}"
        user = urlsplit(address).netloc.rpartition("@")[0]
        headers = urllib3.make_headers(proxy_basic_auth=unquote(user)) if user else None
        make = functools.partial(urllib3.ProxyManager, address, proxy_headers=headers)
    manager: urllib3.PoolManager = make(num_pools=32, maxsize=64, ssl_context=tls)
    manager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    return manager


def _body(answer: urllib3.BaseHTTPResponse) -> _Body | None:
    return getattr(answer, "_original_response", None)


def release(answer: urllib3.BaseHTTPResponse) -> None:
    """Let go of an answer; where it was read to its end the connection goes back to its pool, for the next request to that server."""
    if (body := _body(answer)) is not None and body.is_over():
        body.close()  # ends the answer, not the connection
        answer.release_conn()
    answer.close()


def read_direct(answer: urllib3.BaseHTTPResponse, buffer: memoryview) -> int | None:
    """Bytes of a body straight into `buffer`: how many, 0 at its end; None where they do not come as they are: read the answer then."""
    body = _body(answer)
    return None if body is None else body.straight_into(buffer)


def floods(error: BaseException) -> bool:
    """Whether an answer was given up since it has too many lines, or one that is too long: http.client has no class for the first."""
    return isinstance(error, _Flood | http.client.LineTooLong) or type(error) is http.client.HTTPException


def excess(error: BaseException) -> bool:
    """Whether an error of a body means that it is longer than its Content-Length."""
    return any(isinstance(each, _Excess) for each in (error, *error.args, error.__cause__))
