"""The stand-alone page: one controller served to any number of browsers over HTTP, with the standard library alone.

It listens on 127.0.0.1; a 256-bit token in the address gives a cookie, and every request needs it; the Host header is
checked against DNS rebinding; nothing from elsewhere may be loaded (Content-Security-Policy).
"""

from __future__ import annotations

import html
import logging
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from tarviz.model.errors import TarvizError, UsageError
from tarviz.model.types import Buffer
from tarviz.widgets.host import assets
from tarviz.widgets.host.rpc import MAX_FRAME, Controller, Media, answer, error_message, pack, session_of, unpack

log = logging.getLogger(__name__)

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_BESIDE = re.compile(r"/(\d{1,4})(/.*)")
_PLAYED = re.compile(r"(audio|video)/[\w.+-]+")
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_PART = 1 << 20

_PAGE = """<!doctype html>
<html lang="en" data-tarviz-page>
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/widget.css">
<script type="module" src="/page.mjs"></script>
</head>
<body><main id="tarviz"></main><noscript>This page draws its shards with JavaScript, which is switched off.</noscript></body>
</html>
"""
_START = """const place = document.getElementById("tarviz");
try {
  const [{ pageModel, mount }, { default: widget }] = await Promise.all([import("/host.mjs"), import("/widget.mjs")]);
  mount(widget, await pageModel(location.pathname.replace(/\\/$/, "")), place);
} catch (error) {
  const text = document.createElement("p");
  text.className = "tvz-page-error";
  text.setAttribute("role", "alert");
  text.textContent = `This page could not be drawn. ${error.message}`;
  place.replaceChildren(text);
}
"""


class Page:
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
        self.hosts = {f"{shown}:{self.port}", f"localhost:{self.port}", f"127.0.0.1:{self.port}"} | (
            {f"{host}:{self.port}"} if host else set()
        )
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
            threading.Thread(target=self._watch, daemon=True, name="tarviz-idle").start()
        self._server.serve_forever(poll_interval=0.2)

    def start(self) -> Page:
        """Serve on a thread of its own."""
        self._thread = threading.Thread(target=self.serve, daemon=True, name="tarviz-page")
        self._thread.start()
        return self

    def _watch(self) -> None:
        assert self.idle_exit is not None
        while time.monotonic() - self.asked < self.idle_exit:
            time.sleep(min(1.0, self.idle_exit / 4))
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

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], page: Page) -> None:
        self.page = page
        self._open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End the connections that browsers keep open."""
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def server_bind(self) -> None:
        # HTTPServer.server_bind asks DNS for the machine's name; this page does without it
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "tarviz", self.server_address[1]

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
    def page(self) -> Page:
        return cast(_Server, self.server).page

    def _shown(self) -> tuple[Controller | None, str]:
        """The controller that an address is of, None where there is none such, and the rest of its path."""
        path = urlsplit(self.path).path
        number, rest = found.groups() if (found := _BESIDE.fullmatch(path)) else ("0", path)
        return (self.page.controllers[int(number)] if int(number) < len(self.page.controllers) else None), rest

    def log_message(self, format: str, *args: Any) -> None:
        """No line a request: the address holds the token."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        try:
            self._get()
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # the rim: the page says what happened, and so does the log
            found = error_message(error)
            text = " ".join(filter(None, (f"{found['code']}: {found['msg']}", found["hint"])))
            log.error("%s", text, exc_info=None if isinstance(error, TarvizError) else error)
            with suppress(OSError):
                self._refuse(500, text, closing=True)

    def _get(self) -> None:
        parts = urlsplit(self.path)
        token = parse_qs(parts.query).get("token", [""])[0]
        welcome = parts.path == "/" and secrets.compare_digest(token.encode(), self.page.token.encode())
        if not self._allowed(welcome):
            return
        controller, place = self._shown()
        if controller is None:
            self._refuse(404, "There is nothing here.")
            return
        script = controller.script
        match place:
            case "/":
                self._send(_PAGE.format(title=html.escape(self.page.title)), "text/html; charset=utf-8", cookie=welcome)
            case "/page.mjs":
                self._send(_START, "text/javascript; charset=utf-8")
            case "/host.mjs":
                self._send(assets.read("host.mjs"), "text/javascript; charset=utf-8")
            case "/widget.mjs":
                self._send(assets.module(script), "text/javascript; charset=utf-8")
            case "/widget.css":
                self._send(assets.style(script), "text/css; charset=utf-8")
            case "/state":
                first, pictures = controller.first(parse_qs(parts.query).get("session", [""])[0][:64])
                self._send(pack({"_first": first, "_state": {}}, pictures), "application/octet-stream")
            case path if path.startswith("/m/"):
                self._media(controller, path[3:])
            case _:
                self._refuse(404, "There is nothing here.")

    def do_POST(self) -> None:
        # the header cannot be sent from another origin without a preflight, which is never answered
        if not self._allowed(False):
            return
        controller, place = self._shown()
        if self.headers.get("X-Tarviz") != "1" or place != "/rpc" or controller is None:
            self._refuse(403, "Not allowed.", closing=True)
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_FRAME:
            self._refuse(413, "Too long.", closing=True)
            return
        try:
            request, _ = unpack(self.rfile.read(int(length)))
        except UsageError as error:
            self._refuse(400, error.message)
            return
        if request.get("k") == "tvz:state" and isinstance(request.get("state"), dict):
            controller.remember(request["state"], session_of(request))
            self._send(pack({"k": "tvz:ok"}), "application/octet-stream")
            return
        self._send(pack(*answer(controller, request)), "application/octet-stream")

    def _allowed(self, welcome: bool) -> bool:
        """True when Host and token are right; otherwise the refusal has been sent."""
        self.page.asked = time.monotonic()
        if self.headers.get("Host", "") not in self.page.hosts:
            self._refuse(403, "Wrong host.", closing=True)
            return False
        origin = self.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc not in self.page.hosts:
            self._refuse(403, "Wrong origin.", closing=True)
            return False
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(self.page.cookie)
        except CookieError:
            cookie = None
        if welcome or (cookie is not None and secrets.compare_digest(cookie.value.encode(), self.page.token.encode())):
            return True
        self._refuse(403, "This page needs the whole address, with its token, as the command printed it.", closing=True)
        return False

    def _headers(self, status: int, mime: str, length: int, extra: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        head = {
            "Content-Type": mime,
            "Content-Length": str(length),
            "Content-Security-Policy": _CSP,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        for name, value in {**head, **(extra or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, body: str | bytes, mime: str, *, cookie: bool = False) -> None:
        payload = body.encode() if isinstance(body, str) else body
        extra = {"Set-Cookie": f"{self.page.cookie}={self.page.token}; HttpOnly; SameSite=Strict; Path=/"} if cookie else None
        self._headers(200, mime, len(payload), extra)
        if self.command != "HEAD":
            self.wfile.write(payload)

    def _refuse(self, status: int, text: str, *, closing: bool = False) -> None:
        self.close_connection = self.close_connection or closing
        body = text.encode()
        self._headers(status, "text/plain; charset=utf-8", len(body), {"Connection": "close"} if closing else None)
        if self.command != "HEAD":
            self.wfile.write(body)

    def _media(self, controller: Controller, path: str) -> None:
        """A payload, whole or the one range requested (RFC 9110 §14)."""
        try:
            media = controller.media(path)
        except TarvizError as error:
            self._refuse(404, str(error))
            return
        if media is None:
            self._refuse(404, "There is no such field.")
            return
        begin, end, status = 0, media.size, 200
        found = _RANGE.fullmatch(self.headers.get("Range", "").strip())
        if found and (found[1] or found[2]):
            begin = int(found[1]) if found[1] else max(0, media.size - int(found[2]))
            end = min(int(found[2]) + 1, media.size) if found[1] and found[2] else media.size
            status = 206
            if begin >= end:
                self._headers(416, "text/plain", 0, {"Content-Range": f"bytes */{media.size}"})
                return
        played = _PLAYED.fullmatch(media.mime) is not None
        extra = {"Accept-Ranges": "bytes", **({} if played else {"Content-Disposition": "attachment"})}
        if status == 206:
            extra["Content-Range"] = f"bytes {begin}-{end - 1}/{media.size}"
        self._headers(status, media.mime if played else "application/octet-stream", end - begin, extra)
        if self.command != "HEAD":
            self._stream(media, begin, end)

    def _stream(self, media: Media, begin: int, end: int) -> None:
        while begin < end:
            piece: Buffer = media.read(begin, min(_PART, end - begin))
            if not piece:  # the shard shrank: the length promised cannot be kept
                self.close_connection = True
                return
            self.wfile.write(piece)
            begin += len(piece)
