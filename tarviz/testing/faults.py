"""`FaultServer`: a web server on this machine that fails on purpose, for tests and for trying things out.

>>> from tarviz import stores
>>> with FaultServer() as server:
...     url = server.put("/a.tar", bytes(3000), plan=[Fault(cut=1000), Fault(status=503)])
...     data = stores.of(url).read(url, 0, 3000)
>>> len(data), [request.status for request in server.requests]
(3000, [206, 503, 206])
"""

from __future__ import annotations

import contextlib
import email.utils
import re
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.client import responses
from pathlib import Path
from typing import Literal, Self, TypeAlias

from tarviz.model.types import URL

Source: TypeAlias = bytes | Path | Callable[[int, int], bytes]
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_PIECE = 1 << 16
_QUEUE = 0.02  # seconds of bytes that wait on a line's way: it goes on while this thread has no turn
ALWAYS = 1 << 60


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What goes wrong with the next `times` requests of `method` for a path.

    `cut` ends the body at that byte of the object, `cut_after` after that many bytes of the answer, with a
    `close`, a `reset`, or a `stall` (nothing more comes until the client goes). `before_headers` does so
    before any answer. `status` answers with `headers` and `body`. `lie` is added to Content-Length. A header
    of None is left out. `then` is what the object is replaced by once this answer is sent. `resumed` True or
    False: only for requests with or without a Range.
    """

    times: int = 1
    method: str = "GET"
    resumed: bool | None = None
    status: int | None = None
    body: bytes = b""
    headers: Mapping[str, str | None] = field(default_factory=dict)
    cut: int | None = None
    cut_after: int | None = None
    end: Literal["close", "reset", "stall"] = "close"
    before_headers: bool = False
    lie: int = 0
    chunked: bool = False
    ignore_range: bool = False
    delay: float = 0.0
    then: bytes | None = None


@dataclass
class Request:
    """One request that came in: what was asked, what was answered, how many bytes of body went out."""

    method: str
    path: str
    headers: dict[str, str]
    at: float
    status: int = 0
    sent: int = 0


@dataclass
class _Object:
    read: Callable[[int, int], bytes]
    size: int
    etag: str | None
    modified: str | None
    plan: list[Fault]
    headers: Mapping[str, str]
    told: dict[str, str] = field(default_factory=dict)


class FaultServer:
    """Serves objects put into it, on a port of its own, until it is closed (a context manager does that).

    `latency` (seconds, once for a connection and once for every answer) and `bandwidth` (bytes per second, all
    connections together) make it as slow as a real one: 0.04 and 12.5e6 are a home
    line. `requests` records all that was asked, `most` how many connections were open at a time, `taken` how many there were in all.
    """

    def __init__(
        self,
        *,
        latency: float = 0.0,
        bandwidth: float | None = None,
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.latency = latency
        self.bandwidth = bandwidth
        self.requests: list[Request] = []
        self.most = self.taken = 0
        self._tls = tls
        self._objects: dict[str, _Object] = {}
        self._versions = 0
        self._lock = threading.Lock()
        self._free = 0.0  # when the bytes that are on their way have passed, in seconds of the steady clock
        self._closing = threading.Event()
        self._threads: set[threading.Thread] = set()
        self._listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128)
        port = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
        self._acceptor = self._start(self._accept)

    def put(
        self,
        path: str,
        data: Source,
        *,
        size: int | None = None,
        plan: Sequence[Fault] = (),
        etag: str | None = "auto",
        modified: str | None = "auto",
        headers: Mapping[str, str] | None = None,
    ) -> URL:
        """Serve an object under `path`, replacing what was there; its URL.

        `data`: bytes, a file, or a function (offset, length) → bytes with `size` for objects larger than memory.
        `etag` and `modified` are the headers sent with it; None leaves one out. `headers` are others, `{version}`
        in them counts the objects put.
        """
        self._versions += 1
        read, known = _reader(data)
        etag = f'"{self._versions}"' if etag == "auto" else etag
        modified = email.utils.formatdate(1.7e9 + self._versions, usegmt=True) if modified == "auto" else modified
        self._objects[path] = _Object(read, known if size is None else size, etag, modified, list(plan), dict(headers or {}))
        self._objects[path].told = {name: value.replace("{version}", str(self._versions)) for name, value in (headers or {}).items()}
        return URL(self.url + path)

    @property
    def sent(self) -> int:
        """Bytes of bodies that went out, over all requests."""
        return sum(request.sent for request in self.requests)

    @property
    def connections(self) -> int:
        """Connections open now."""
        return len(self._threads) - 1

    def close(self) -> None:
        """Stop serving: every connection is closed, every thread has ended."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join()  # it alone starts threads: from now on their number only falls
        for thread in list(self._threads):
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, call: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=self._run, args=(call,), daemon=True, name="FaultServer")
        self._threads.add(thread)
        thread.start()
        return thread

    def _run(self, call: Callable[[], None]) -> None:
        try:
            call()
        finally:
            self._threads.discard(threading.current_thread())

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.taken += 1
            self.most = max(self.most, self.connections + 1)
            self._start(lambda connection=connection: self._serve(connection))  # type: ignore[misc]

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, _HangUp), contextlib.closing(connection):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _PIECE)  # so that little is under way when a client leaves
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with contextlib.closing(connection):
                self._closing.wait(self.latency)
                while (request := self._receive(connection)) is not None:
                    self.requests.append(request)
                    if not self._answer(connection, request):
                        return

    def _receive(self, connection: socket.socket) -> Request | None:
        head = b""
        while b"\r\n\r\n" not in head:
            self._await(connection)
            if not (piece := connection.recv(_PIECE)):
                return None
            head += piece
            if not head[:1].isalpha():  # a TLS hello, for one
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                return None
        start, _, body = head.partition(b"\r\n\r\n")
        first, *lines = start.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        left = int(headers.get("content-length", "0")) - len(body)
        while left > 0:
            self._await(connection)
            if not (piece := connection.recv(_PIECE)):
                return None
            left -= len(piece)
        return Request(method, path, headers, time.monotonic())

    def _await(self, connection: socket.socket) -> None:
        """Wait until the client sends or goes."""
        pending = isinstance(connection, ssl.SSLSocket) and connection.pending()
        while not pending and not select.select([connection], [], [], 0.05)[0]:
            if self._closing.is_set():
                raise _HangUp

    def _answer(self, connection: socket.socket, request: Request) -> bool:
        """Answer one request; whether the connection stays open."""
        served = self._objects.get(request.path) or self._objects.get(request.path.partition("?")[0])
        fault = self._next_fault(served, request) if served else Fault()
        self._closing.wait(self.latency + fault.delay)
        if fault.before_headers:
            self._break(connection, fault)
        if served is None or fault.status is not None:
            request.status = fault.status or 404
            return self._send(connection, request, fault, {}, lambda at, count: fault.body[at : at + count], 0, len(fault.body))
        headers = {"ETag": served.etag, "Last-Modified": served.modified, "Accept-Ranges": "bytes", **served.told}
        request.status, start, stop = self._plan_range(served, request, fault)
        if request.status in (206, 416):
            part = "*" if request.status == 416 else f"{start}-{stop - 1}"
            headers["Content-Range"] = f"bytes {part}/{served.size}"
        return self._send(connection, request, fault, headers, served.read, start, stop)

    def _next_fault(self, served: _Object, request: Request) -> Fault:
        with self._lock:
            for place, fault in enumerate(served.plan):
                if fault.method == request.method and fault.resumed in (None, "range" in request.headers):
                    if fault.times > 1:
                        served.plan[place] = replace(fault, times=fault.times - 1)
                    else:
                        del served.plan[place]
                    if fault.then is not None:
                        etag, modified = served.etag and "auto", served.modified and "auto"
                        self.put(request.path, fault.then, plan=served.plan, etag=etag, modified=modified, headers=served.headers)
                    return fault
        return Fault()

    def _plan_range(self, served: _Object, request: Request, fault: Fault) -> tuple[int, int, int]:
        asked = request.headers
        if asked.get("if-match", served.etag) != served.etag or asked.get("if-unmodified-since", served.modified) != served.modified:
            return 412, 0, 0
        match = _RANGE.fullmatch(asked.get("range", ""))
        if match is None or fault.ignore_range:
            return 200, 0, served.size
        if not match[1]:
            return 206, max(0, served.size - int(match[2])), served.size
        start, stop = int(match[1]), min(served.size, int(match[2]) + 1 if match[2] else served.size)
        return (206, start, stop) if start < stop else (416, 0, 0)

    def _send(
        self,
        connection: socket.socket,
        request: Request,
        fault: Fault,
        headers: dict[str, str | None],
        read: Callable[[int, int], bytes],
        start: int,
        stop: int,
    ) -> bool:
        length = {"Transfer-Encoding": "chunked"} if fault.chunked else {"Content-Length": str(stop - start + fault.lie)}
        lines = {**headers, **length, **fault.headers}
        told = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
        connection.sendall(f"HTTP/1.1 {request.status} {responses.get(request.status, '')}\r\n{told}\r\n".encode("latin-1"))
        if request.method == "HEAD":
            return True
        end = stop
        if fault.cut is not None:
            end = max(start, min(stop, fault.cut))
        if fault.cut_after is not None:
            end = min(end, start + fault.cut_after)
        for at in range(start, end, _PIECE):
            piece = read(at, min(_PIECE, end - at))
            self._pace(len(piece))
            request.sent += len(piece)
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if fault.chunked else piece)
        if fault.cut is not None or fault.cut_after is not None:
            self._break(connection, fault)
        if fault.chunked:
            connection.sendall(b"0\r\n\r\n")
        return fault.chunked or lines.get("Content-Length") == str(stop - start)

    def _pace(self, count: int) -> None:
        if self._closing.is_set():
            raise _HangUp
        if self.bandwidth:
            with self._lock:
                self._free = max(self._free, time.monotonic() - _QUEUE) + count / self.bandwidth
                wait = self._free - time.monotonic()
            self._closing.wait(wait)

    def _break(self, connection: socket.socket, fault: Fault) -> None:
        if fault.end == "stall":
            self._await(connection)
        elif fault.end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise _HangUp


class _HangUp(Exception):  # noqa: N818  (no error)
    """The connection ends here."""


def _reader(data: Source) -> tuple[Callable[[int, int], bytes], int]:
    if isinstance(data, Path):
        return lambda at, count: _read_file(data, at, count), data.stat().st_size
    if isinstance(data, bytes | bytearray | memoryview):
        return lambda at, count: bytes(data[at : at + count]), len(data)
    return data, 0


def _read_file(path: Path, at: int, count: int) -> bytes:
    with path.open("rb") as file:
        file.seek(at)
        return file.read(count)
