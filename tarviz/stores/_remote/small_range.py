"""A small range by one short exchange: what a record read through an index costs when nothing goes wrong.

The reader that resumes does the same, and all the rest, with several times the work: whatever is out of the ordinary is left to it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import socket
import ssl
import struct
import sys
import time
import weakref
from dataclasses import dataclass, field
from http.client import responses
from urllib.parse import urlsplit

from urllib3 import HTTPHeaderDict, exceptions
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import parse_url
from urllib3.util.wait import wait_for_read

from tarviz.model.errors import StoreError, UsageError
from tarviz.model.types import URL
from tarviz.model.urls import PORTS
from tarviz.stores._remote.addresses import origin, redirect_target
from tarviz.stores._remote.version import CONTENT_RANGE, Version
from tarviz.stores._remote.wire import CONNECT_TIMEOUT, MOVED, REDIRECTS, TEMPORARY, USUAL, Wire, proxy_of
from tarviz.stores.retry import RetryError, retry_after

SMALL = 1 << 20  # bytes of the longest range read in this way
_HEAD = 2048  # bytes for the head of an answer
_HEAD_LIMIT = 1 << 16
_UNFIT = 10.0  # seconds for which a server that answers ranges in another way is not asked in this one
_OURS = {"host", "range", "if-match", "if-unmodified-since", "connection", "content-length", "transfer-encoding"}
_KEPT = 32  # connections to one server that wait for the next range
_FRESH = 0.1  # seconds after an answer for which its connection is taken to be as it was: looking costs a turn of Python's lock
_LED = 300.0  # seconds for which ranges of one version are asked for where a redirect led
_SAME = 1.0  # seconds for which a request is signed in the same way
_MOST = 1024  # ways that are remembered
_UNSENT = re.compile(r"[\r\n\0]|[^\x00-\xff]")
_OWN = re.compile(rb"\r\n(date|content-length|content-range):([^\r\n]*)", re.IGNORECASE)  # what differs from range to range


@dataclass(frozen=True, slots=True)
class RangeFront:
    """The front of a range, and whether that is all of it; `token` names the version it is of."""

    data: bytes
    whole: bool
    token: str | None


@dataclass(frozen=True, slots=True)
class _Way:
    """How ranges of one object are asked for, for a while.

    `begin` is the address of the object, `place` the one where redirects led from there, most often the same.
    """

    begin: str = field(repr=False)  # these three hold what proves who asks
    place: str = field(repr=False)
    first: bytes = field(repr=False)  # the lines that all requests share
    server: tuple[bool, str, int, ssl.SSLContext | None]  # TLS, host, port, what it trusts


@dataclass(frozen=True, slots=True)
class _Asked:
    """A range, and the version and size of the object that it is of, where they are known."""

    offset: int
    stop: int
    version: Version | None
    size: int | None

    def version_in(self, head: _Head, length: str, span: str) -> Version | None:
        """The version of an answer that holds just this range, or what there is of it before the object's end; None for any other.

        `length` and `span` are its Content-Length and Content-Range.
        """
        match = CONTENT_RANGE.fullmatch(span)
        if match is None or match[1] is None or int(match[1]) != self.offset:
            return None
        stop, total = int(match[2]) + 1, None if match[3] == "*" else int(match[3])
        if stop != self.stop and not (stop == total and self.offset < stop < self.stop):
            return None
        version = head.version
        if length != str(stop - self.offset) or version.coded:
            return None
        if self.version is not None and not version.is_same(self.version):
            return None
        return version if self.size is None or total is None or self.size == total else None


@dataclass(frozen=True, slots=True)
class _Head:
    """The head of an answer, but for what each range has of its own (`_OWN`)."""

    status: str
    headers: HTTPHeaderDict = field(repr=False)  # among them an address that may hold a signature
    version: Version
    token: str | None
    lasts: bool  # whether the connection does


class SmallRanges:
    """Asks for small ranges over plain sockets that it keeps. Threads share it; a forked child makes its own."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._ways: dict[tuple[object, ...], tuple[float, _Way | None]] = {}  # by URL, version and environment; until when
        self._unfit: dict[str, float] = {}  # by origin, until when
        self._owner = os.getpid()
        self._kept: dict[tuple[object, ...], list[tuple[socket.socket, float]]] = {}  # since when
        weakref.finalize(self, _close_all, self._kept)

    def read(
        self, url: URL, offset: int, length: int, etag: str | None, stall_timeout: float, state: tuple[object, ...]
    ) -> RangeFront | None:
        """What came of a range, or None where the reader that resumes has to ask.

        `state` is equal as long as the environment is. `RetryError` where the server asks for patience.
        """
        key, now = (url, etag, state), time.monotonic()
        until, way = self._ways.get(key, (0.0, None))
        if now >= until:
            place = self._wire.access.address(url, {})
            # what the other reader says beside the address is not said here
            way = None if any(self._wire.access.asks("GET", url, {})) else self._make_way(place, place)
        led = way is not None and way.place != way.begin
        answer = None
        try:
            answer, last = self._follow(url, way, _Asked(offset, offset + length, *_of_token(etag)), stall_timeout)
        except RetryError:
            if not led:
                raise
        if answer is None or not answer.whole:
            self._ways.pop(key, None)
            return self.read(url, offset, length, etag, stall_timeout, state) if answer is None and led else answer
        if now >= until:
            if len(self._ways) >= _MOST:
                self._ways.clear()
            self._ways[key] = (now + _LED, last) if etag and last != way else (now + _SAME, way)
        return answer

    def _follow(self, url: URL, way: _Way | None, asked: _Asked, stall_timeout: float) -> tuple[RangeFront | None, _Way | None]:
        """What came in the end, and by which way."""
        for _ in range(REDIRECTS + 1):
            answer = None if way is None else self._ask(url, way, asked, stall_timeout)
            if way is None or not isinstance(answer, str):
                return answer, way  # type: ignore[return-value]  # nobody was asked where there is no way
            try:
                way = self._make_way(way.begin, redirect_target(url, way.place, answer))
            except (StoreError, UsageError):
                break  # the reader that resumes says why
        return None, None

    def _ask(self, url: URL, way: _Way, asked: _Asked, stall_timeout: float) -> RangeFront | str | None:
        """What one exchange brought; the address where a redirect leads."""
        request = self._request(way, asked)
        if request is None:
            return None
        server = (*way.server, stall_timeout)
        try:
            line = self._line(server)
        except (OSError, exceptions.HTTPError, ValueError):
            return None  # another attempt finds words for it
        keep = False
        try:
            found, keep = self._exchange(url, line, request, way, asked, time.monotonic() + stall_timeout)
        except (OSError, ValueError):
            return None
        finally:
            kept = self._kept.setdefault(server, [])
            if keep and len(kept) < _KEPT:
                kept.append((line, time.monotonic()))
            else:
                line.close()
        return found

    def _make_way(self, begin: str, place: str) -> _Way | None:
        until = self._unfit.get(origin(place))
        parts = urlsplit(place)
        secure, netloc, host = parts.scheme == "https", parts.netloc.rpartition("@")[2], parts.hostname or ""
        if until is not None and time.monotonic() < until:
            return None
        if not host.isascii() or parts.scheme not in ("http", "https") or proxy_of(parts.scheme, netloc):
            return None
        try:
            target = parse_url(place).request_uri
        except exceptions.LocationValueError:
            return None
        usual = dict(USUAL)
        if self._wire.access.steady:
            usual |= self._wire.credentials("GET", begin, place, {**USUAL, "Range": "bytes=0-0"}, b"")
        if not _OURS.isdisjoint(map(str.lower, usual)):
            return None
        first = _join_lines([f"GET {target} HTTP/1.1", f"Host: {netloc}", *_lines(usual)])
        server = secure, host, parts.port or PORTS[parts.scheme], self._wire.access.tls()
        return None if first is None else _Way(begin, place, first, server)

    def _request(self, way: _Way, asked: _Asked) -> bytes | None:
        span = f"bytes={asked.offset}-{asked.stop - 1}"
        if self._wire.access.steady:
            rest = _condition(asked.version)
            return None if rest is None else b"%bRange: %b\r\n%b\r\n" % (way.first, span.encode(), rest)
        headers = {"Range": span, **(asked.version.condition() if asked.version else {})}
        headers |= self._wire.credentials("GET", way.begin, way.place, USUAL | headers, b"")
        rest = _join_lines(_lines(headers))
        return None if rest is None else way.first + rest + b"\r\n"

    def _line(self, server: tuple[bool, str, int, ssl.SSLContext | None, float]) -> socket.socket:
        """A connection that waits for a request."""
        if os.getpid() != self._owner:  # sockets of a parent process are not ours to use
            _close_all(self._kept)
            self._owner = os.getpid()
        kept = self._kept.get(server)
        while kept:
            try:
                line, since = kept.pop()
            except IndexError:
                break  # another thread was quicker
            # Else it was closed there, or sends what nobody asked for; where that is missed, the answer is not one to this range.
            if time.monotonic() - since < _FRESH or not wait_for_read(line, 0.0):
                return line
            line.close()
        return _connect(*server)

    def _exchange(
        self, url: URL, line: socket.socket, request: bytes, way: _Way, asked: _Asked, until: float
    ) -> tuple[RangeFront | str | None, bool]:
        """What came, or where the answer leads, and whether the connection is fit for the next request. The head comes before `until`."""
        line.sendall(request)
        head = line.recv(asked.stop - asked.offset + _HEAD)
        while (end := head.find(b"\r\n\r\n")) < 0:
            more = line.recv(_HEAD)
            if not more or len(head) > _HEAD_LIMIT or time.monotonic() > until:
                return None, False
            head += more
        self._wire.note_answer(way.place)
        told, own = _read_head(head[:end])
        length, span = own.get("content-length", ""), own.get("content-range", "")
        partial = told.status.startswith("HTTP/1.1 206")
        version, led = (asked.version_in(told, length, span), "") if partial else (None, self._other(url, told, own, way))
        if version is not None:
            self._wire.access.note(url)
        elif not led:
            return None, False
        body = head[end + 4 :]
        count = int(length) if length.isdecimal() and "transfer-encoding" not in told.headers else -1
        if len(body) > count or (led and count > _HEAD_LIMIT):
            return led or None, False
        data = _rest(line, body, count)
        whole = len(data) == count
        token = "" if version is None else told.token
        return led or (RangeFront(data, whole, token) if whole or token else None), whole and told.lasts

    def _other(self, url: URL, head: _Head, own: dict[str, str], way: _Way) -> str:
        """An answer that is not the range: where it leads, if anywhere."""
        version, _, rest = head.status.partition(" ")
        headers = head.headers
        status = int(rest[:3]) if rest[:3].isdecimal() else 0
        if status in TEMPORARY:
            after = retry_after(headers.get("Retry-After"), own.get("date"), self._wire.clock)
            raise RetryError(f"the server answers {status} {responses.get(status, '')}".rstrip(), after=after)
        if status in MOVED and headers.get("Location"):
            return headers["Location"]
        if version != "HTTP/1.1" or status < 400:
            for place in (way.begin, way.place):
                self._unfit[origin(place)] = time.monotonic() + _UNFIT
        else:
            self._wire.access.renew(url, status, headers, "")  # a region, for one, so that the other reader asks there at once
        return ""


@functools.lru_cache(maxsize=256)
def _of_token(etag: str | None) -> tuple[Version | None, int | None]:
    return Version.of_token(etag) if etag else (None, None)


@functools.lru_cache(maxsize=256)
def _condition(version: Version | None) -> bytes | None:
    """The lines that make a server refuse another version; None where they cannot be sent as they are."""
    return _join_lines(_lines(version.condition()) if version is not None else [])


def _lines(headers: dict[str, str]) -> list[str]:
    return [f"{name}: {value}" for name, value in headers.items()]


def _join_lines(lines: list[str]) -> bytes | None:
    """Lines of a request, or None where one of them cannot be sent as it is."""
    return None if any(map(_UNSENT.search, lines)) else "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def _read_head(head: bytes) -> tuple[_Head, dict[str, str]]:
    """What an answer's head says of the object, which ranges of one share, and of its range alone, by names in small letters."""
    parts = _OWN.split(head)
    own: dict[str, str] = {}
    for name, value in zip(parts[1::3], parts[2::3], strict=True):
        key, text = name.decode().lower(), value.decode("latin-1").strip()
        own[key] = f"{own[key]}, {text}" if key in own else text
    return _parse_head(b"".join(parts[::3])), own


@functools.lru_cache(maxsize=256)
def _parse_head(head: bytes) -> _Head:
    status, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":")[::2] for line in lines)
    headers = HTTPHeaderDict((name, value.strip()) for name, value in pairs)
    version = Version.of(headers)
    return _Head(status, headers, version, version.token(None), headers.get("Connection", "").lower() != "close")


def _rest(line: socket.socket, body: bytes, count: int) -> bytes:
    """The body whose front is `body`, or as much of it as came in time."""
    left = count - len(body)
    if not left:
        return body
    try:
        if (timeout := line.gettimeout()) is None:
            return body + line.recv(left, socket.MSG_WAITALL)
        end = time.monotonic() + timeout
        while left and time.monotonic() < end and (piece := line.recv(left)):
            body += piece
            left -= len(piece)
    except OSError:
        return body  # the reader that resumes goes on from here
    return body


def _connect(secure: bool, host: str, port: int, tls: ssl.SSLContext | None, stall_timeout: float) -> socket.socket:
    timeout = min(CONNECT_TIMEOUT, stall_timeout)
    made = HTTPSConnection(host, port, timeout=timeout, ssl_context=tls) if secure else HTTPConnection(host, port, timeout=timeout)
    try:
        made.connect()
    except BaseException:
        made.close()
        raise
    line = made.sock
    assert line is not None
    if secure or sys.platform == "win32":
        line.settimeout(stall_timeout)
        return line
    # The kernel keeps the time: half the system calls, and half the turns of Python's lock, of a socket whose time Python keeps.
    limit = struct.pack("@ll", int(stall_timeout), int(stall_timeout % 1 * 1e6))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        line.setsockopt(socket.SOL_SOCKET, option, limit)
    line.settimeout(None)
    return line


def _close_all(kept: dict[tuple[object, ...], list[tuple[socket.socket, float]]]) -> None:
    for lines in list(kept.values()):
        while lines:
            with contextlib.suppress(OSError):
                lines.pop()[0].close()
    kept.clear()
