"""Google's object store as its documents describe it, as far as tarviz asks: sessions, generations, conditions, lists in pages.

The emulators know no conditions and no generations in what they answer, keep every byte of a part and never fail.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

UNIT = 256 << 10  # bytes of which a part that is not the last is kept in multiples
_SPAN = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")


@dataclass(slots=True)
class Google:
    """Where the server is, what it holds, and what it was asked. `before` may answer a request by a status, or break it by None."""

    url: str = ""
    page: int = 1000  # objects of a page of a list
    versions: bool = False  # whether what is replaced is kept
    objects: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    keep: int = 1 << 40  # bytes that it keeps of the next part
    before: Callable[[str, Google], int | None] = lambda line, server: 0
    after: Callable[[str, Google], bool] = lambda line, server: True  # whether the answer is sent
    _generation: int = 1_700_000_000_000_000

    def put(self, name: str, data: bytes) -> int:
        """Make an object, or a new version of it: its generation."""
        self._generation += 1
        held = self.objects.setdefault(name, [])
        held[:] = [*(held if self.versions else ()), (self._generation, data)]
        return self._generation


@contextlib.contextmanager
def google_server(**settings: Any) -> Iterator[Google]:
    """The server, for one bucket of any name."""
    found = Google(**settings)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        found.url, server.google = f"http://127.0.0.1:{server.server_port}", found  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 20.0

    def do_GET(self) -> None:
        self.google: Google = self.server.google  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        self.query = dict(parse_qsl(parts.query))
        line = f"{self.command} {self.path} {self.headers.get('Content-Range', '')}".strip()
        self.google.asked.append(line)
        self.line = line
        if (status := self.google.before(line, self.google)) is None:
            self.close_connection = True
            return
        if status:
            self._answer(status)
            return
        match = re.fullmatch(r"(/upload|/download)?/storage/v1/b/[^/]+/o(?:/([^/]+))?", parts.path)
        if match is None:
            self._answer(404)
        elif match[1] == "/upload":
            self._upload(body)
        elif match[2] is None:
            self._list()
        else:
            self._object(unquote(match[2]))

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def _upload(self, body: bytes) -> None:
        sessions = self.google.sessions
        if self.command == "POST":
            if self.query.get("ifGenerationMatch") == "0" and self.google.objects.get(self.query["name"]):
                self._answer(412)
                return
            number = f"session-{len(sessions)}"
            sessions[number] = {"name": self.query["name"], "data": b"", "fresh": self.query.get("ifGenerationMatch") == "0"}
            self._answer(200, headers={"Location": f"{self.google.url}{self.path}&upload_id={number}"})
            return
        session = sessions.get(self.query["upload_id"])
        if session is None or self.command == "DELETE":
            sessions.pop(self.query["upload_id"], None)
            self._answer(499 if session else 410)
            return
        match = _SPAN.fullmatch(self.headers["Content-Range"])
        if "made" not in session:
            if match[1]:
                begin, last = int(match[1]), match[3] != "*"
                if begin != len(session["data"]) or (not last and len(body) % UNIT and begin + len(body) < UNIT):
                    self._answer(400)
                    return
                body, self.google.keep = body[: self.google.keep], 1 << 40
                session["data"] += body if last else body[: len(body) // UNIT * UNIT]
            if match[3] == str(len(session["data"])):
                if session["fresh"] and self.google.objects.get(session["name"]):
                    self._answer(412)
                    return
                session["made"] = self.google.put(session["name"], session["data"])
        if "made" in session:
            self._answer(200, self._described(session["name"], session["made"], session["data"]))
        else:
            end = len(session["data"])
            self._answer(308, headers={"Range": f"bytes=0-{end - 1}"} if end else {})

    def _list(self) -> None:
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter")
        names = sorted(name for name, held in self.google.objects.items() if held and name.startswith(prefix))
        parts = [(name, name[len(prefix) :].partition("/")) for name in names]
        rows = sorted({f"{prefix}{first}/" if delimiter and slash else name for name, (first, slash, _) in parts})
        begin = int(self.query.get("pageToken", "0"))
        page = rows[begin : begin + self.google.page]
        found: dict[str, Any] = {"kind": "storage#objects", "prefixes": [], "items": []}
        for row in page:
            held = self.google.objects.get(row)
            found["prefixes" if not held else "items"].append(row if not held else self._described(row, *held[-1]))
        if begin + len(page) < len(rows):
            found["nextPageToken"] = str(begin + len(page))
        self._answer(200, found)

    def _object(self, name: str) -> None:
        held = dict(self.google.objects.get(name) or ())
        generation = int(self.query.get("generation", max(held, default=0)))
        if generation not in held:
            error = {"code": 404, "message": f"No such object: bucket/{name}", "errors": [{"reason": "notFound"}]}
            self._answer(404, {"error": error})
            return
        data = held[generation]
        if self.command == "DELETE":
            del self.google.objects[name]
            self._answer(204)
        elif self.query.get("alt") != "media":
            self._answer(200, self._described(name, generation, data))
        else:
            headers = {"ETag": f"CJ{generation}EAE=", "x-goog-generation": str(generation)}
            match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            if match and int(match[1]) >= len(data):
                self._answer(416)
            elif match:
                begin, end = int(match[1]), min(int(match[2] or len(data)) + 1, len(data))
                headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
                self._answer(206, data[begin:end], headers)
            else:
                self._answer(200, data, headers)

    @staticmethod
    def _described(name: str, generation: int, data: bytes) -> dict[str, Any]:
        facts = {"name": name, "size": str(len(data)), "generation": str(generation), "etag": f"CJ{generation}EAE="}
        return {"kind": "storage#object", "updated": "2026-11-25T10:00:00.123Z", **facts}

    def _answer(self, status: int, body: bytes | dict[str, Any] = b"", headers: dict[str, str] | None = None) -> None:
        if not self.google.after(self.line, self.google):
            self.close_connection = True
            return
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        return
