"""The stand-alone page: one controller served to any number of browsers over HTTP, with the standard library alone.

It listens on 127.0.0.1; a 256-bit token in the address gives a cookie, and every request needs it; the Host header is
checked against DNS rebinding; nothing from elsewhere may be loaded (Content-Security-Policy).
"""

from __future__ import annotations

import logging
import re
import secrets
import socket
import sys
import threading
import time
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, cast
from urllib.parse import parse_qs
from weakref import WeakSet

from tarviz.model.errors import UsageError
from tarviz.widgets.host.behind import start_thread
from tarviz.widgets.host.replies import CSP, HEADERS, Reply, answer_get, answer_post, sentence
from tarviz.widgets.host.rpc import MAX_FRAME, Controller

log = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LENGTH = re.compile(r"[0-9]{1,18}")
_BESIDE = re.compile(r"/(\d{1,4})(/.*)")


class ControllerPage:
    """A controller as a page: `url` is its address with the token; `serve()` blocks, `start()` does not.

    `port=0` takes a free one. With `idle_exit` (seconds), the page ends after so long without a request. A `host` other than
    127.0.0.1 opens it to the network: the caller says so to the reader.
    """

    def __init__(
        self, controller: Controller, *, title: str = "tarviz", host: str = "127.0.0.1", port: int = 0, idle_exit: float | None = None
    ) -> None:
        self.controllers = [controller]
        self.title = title
        if host in LOOPBACK:  # others may look at what is shown, not at every file of this machine
            controller.opener = self.open
        self.token = secrets.token_urlsafe(32)
        self.idle_exit = idle_exit
        self.asked = time.monotonic()
        try:
            self._server = _Server((host, port), self)
        except OSError as error:
            raise UsageError(f"Port {port} of {host} cannot be used ({error.strerror}).", hint="--port 0 takes a free one.") from error
        self.host = host
        self.port = int(self._server.server_address[1])
        shown = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host
        self.hosts = {f"{name}:{self.port}" for name in (shown, host, "localhost", "127.0.0.1") if name}
        self.origin = f"http://{shown}:{self.port}"
        self.url = f"{self.origin}/?token={self.token}"
        self.cookie = f"tarviz_{self.port}"
        self._thread: threading.Thread | None = None

    @property
    def controller(self) -> Controller:
        """What the first page shows."""
        return self.controllers[0]

    def open(self, urls: str) -> str:
        """Open other shards on a page beside the first: its address."""
        controller = self.controller.beside(urls)
        controller.opener = self.open
        self.controllers.append(controller)
        return f"/{len(self.controllers) - 1}/"

    def serve(self) -> None:
        """Answer until `close()` is called from another thread, or `idle_exit` seconds passed without a request."""
        if self.idle_exit:
            start_thread("idle", self._watch, self.idle_exit)
        self._server.serve_forever(poll_interval=0.2)

    def start(self) -> ControllerPage:
        """Serve on a thread of its own."""
        self._thread = start_thread("page", self.serve)
        return self

    def _watch(self, seconds: float) -> None:
        while (left := self.asked + seconds - time.monotonic()) > 0:
            time.sleep(left)
        self._server.shutdown()

    def close(self) -> None:
        """Stop answering and close the controller. Safe to call twice."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join(5)
            self._thread = None
        self._server.server_close()
        self._server.hang_up()
        for controller in self.controllers:
            controller.close()

    def __enter__(self) -> ControllerPage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingTCPServer):  # not HTTPServer, which asks DNS for the machine's name
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128  # many pages at once; five of socketserver's are soon over

    def __init__(self, address: tuple[str, int], page: ControllerPage) -> None:
        self.page = page
        self._open: WeakSet[socket.socket] = WeakSet()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def hang_up(self) -> None:
        """End the connections that browsers keep open."""
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle is not an event; anything else is a line in the log."""
        error = sys.exception()
        if not isinstance(error, (ConnectionError, TimeoutError)):
            log.error("a request to the page failed", exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "tarviz"
    sys_version = ""
    timeout = 120
    disable_nagle_algorithm = True

    @property
    def page(self) -> ControllerPage:
        return cast(_Server, self.server).page

    def _controller(self) -> tuple[Controller | None, str]:
        """The controller that an address is of, None where there is none such, and the rest of its path."""
        path = self.path.partition("?")[0]
        number, rest = found.groups() if (found := _BESIDE.fullmatch(path)) else ("0", path)
        return (self.page.controllers[int(number)] if int(number) < len(self.page.controllers) else None), rest

    def log_message(self, format: str, *args: Any) -> None:
        """No line a request: the address holds the token."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        welcome = path == "/" and secrets.compare_digest(asked.get("token", "").encode(), self.page.token.encode())
        if refusal := self._refusal(welcome):
            self._refuse(403, refusal)
            return
        controller, place = self._controller()
        if controller is None:
            self._send(sentence(404, "There is nothing here."))
            return
        session, span = asked.get("session", ""), self.headers.get("Range", "")
        self._send(answer_get(controller, place[1:], title=self.page.title, session=session, span=span), cookie=welcome)

    def do_POST(self) -> None:
        # the header cannot be sent from another origin without a preflight, which is never answered
        refusal = self._refusal(False)
        controller, place = self._controller()
        if refusal or self.headers.get("X-Tarviz") != "1" or place != "/rpc" or controller is None:
            self._refuse(403, refusal or "Not allowed.")
            return
        length = self.headers.get("Content-Length", "")
        if not _LENGTH.fullmatch(length) or int(length) > MAX_FRAME:
            self._refuse(413, "Too long.")
            return
        self._send(answer_post(controller, self.rfile.read(int(length))))

    def _refusal(self, welcome: bool) -> str:
        """Why a request is not answered; "" where Host and token are right."""
        self.page.asked = time.monotonic()
        if self.headers.get("Host", "") not in self.page.hosts:
            return "Wrong host."
        origin = self.headers.get("Origin")
        if origin is not None and origin.partition("://")[2] not in self.page.hosts:
            return "Wrong origin."
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(self.page.cookie)
        except CookieError:
            cookie = None
        if welcome or (cookie is not None and secrets.compare_digest(cookie.value.encode(), self.page.token.encode())):
            return ""
        return "This page needs the whole address, with its token, as the command printed it."

    def _send(self, reply: Reply, *, cookie: bool = False) -> None:
        self.send_response(reply.status)
        head = {"Content-Type": reply.mime, "Content-Length": str(reply.length)}
        head["Content-Security-Policy"] = f"{CSP}; frame-ancestors 'none'"
        if cookie:
            head["Set-Cookie"] = f"{self.page.cookie}={self.page.token}; HttpOnly; SameSite=Strict; Path=/"
        if self.close_connection:
            head["Connection"] = "close"
        for name, value in {**head, **HEADERS, **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        sent = 0
        for piece in reply.pieces:
            self.wfile.write(piece)
            sent += len(piece)
        if sent < reply.length:  # the length promised cannot be kept
            self.close_connection = True

    def _refuse(self, status: int, text: str) -> None:
        """Say why, and hang up: what else was sent is not read."""
        self.close_connection = True
        self._send(sentence(status, text))
