"""The Hugging Face hub on this machine: a repository that `huggingface_hub` commits to, small files in the commit, others by Git LFS."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_token-of-the-test"
SMALL = 1000  # bytes up to which a file travels in the commit itself
REPOSITORY = "datasets/org/name"


@dataclass
class Hub:
    """What lies in `datasets/org/name`, and what was asked. `refuses`: the status that every commit gets."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)  # by SHA-256: bytes that came, of which no commit need have told
    commits: list[list[str]] = field(default_factory=list)
    refuses: int = 0

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        """Status, and JSON or bytes."""
        repository, _, rest = path.removeprefix("/api").removeprefix("/").partition(REPOSITORY)
        if path.startswith("/lfs/"):
            if hashlib.sha256(body).hexdigest() != path[5:]:
                return 400, {"error": "other bytes than were promised"}
            self.large[path[5:]] = body
            return 200, {}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if repository or not rest:
            return 404, {"error": "Repository not found"}
        what, _, name = rest.removeprefix("/").partition("/main")
        name = name.removeprefix("/")
        match what:
            case "resolve":
                return (200, self.files[name]) if name in self.files else (404, {"error": "Entry not found"})
            case "tree":
                below = f"{name.rstrip('/')}/" if name else ""
                rows = [{"type": "file", "path": each, "size": len(data)} for each, data in self.files.items() if each.startswith(below)]
                here = [row for row in rows if "/" not in str(row["path"])[len(below) :]]
                return (200, here) if rows else (404, {"error": "Entry not found"})
            case "preupload":
                asked = json.loads(body)["files"]
                modes = [{"path": each["path"], "uploadMode": "regular" if each["size"] <= SMALL else "lfs"} for each in asked]
                return 200, {"files": [{**each, "shouldIgnore": False} for each in modes]}
            case "commit":
                return self.commit([json.loads(line) for line in body.splitlines()])
            case _ if rest == ".git/info/lfs/objects/batch":
                return 200, {
                    "transfer": "basic",
                    "objects": [
                        {**each, "actions": {"upload": {"href": f"{self.url}/lfs/{each['oid']}"}}} for each in json.loads(body)["objects"]
                    ],
                }
        return 404, {"error": f"{method} {path}"}

    def commit(self, lines: list[dict[str, Any]]) -> tuple[int, Any]:
        """All of a commit, or nothing."""
        if self.refuses:
            return self.refuses, {"error": "not today"}
        new = dict(self.files)
        for line in lines:
            value = line["value"]
            match line["key"]:
                case "file":
                    new[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    new[value["path"]] = self.large[value["oid"]]
                case "deletedFile":
                    del new[value["path"]]
        self.files = new
        self.commits.append([line["value"].get("path", "") for line in lines[1:]])
        return 200, {"commitUrl": f"{self.url}/{REPOSITORY}/commit/{len(self.commits)}", "commitOid": f"{len(self.commits):040d}"}


@contextlib.contextmanager
def hub() -> Iterator[Hub]:
    """A hub that serves until the end; who writes needs `TOKEN`."""
    made = Hub()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.chunks() if self.headers.get("Transfer-Encoding") else self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = unquote(urlsplit(self.path).path)
            allowed = self.command in ("GET", "HEAD") or path.startswith("/lfs/") or self.headers.get("Authorization") == f"Bearer {TOKEN}"
            status, said = made.answer(self.command, path, body) if allowed else (401, {"error": "Invalid username or password."})
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send(status, data)

        do_GET = do_HEAD = do_PUT = do_POST  # noqa: N815

        def chunks(self) -> bytes:
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size + 2)[:size]
            self.rfile.readline()
            return body

        def send(self, status: int, data: bytes) -> None:
            first, last = 0, len(data) - 1
            if status == 200 and (asked := self.headers.get("Range")):
                begin, _, end = asked.removeprefix("bytes=").partition("-")
                first, last = int(begin), min(int(end or last), last)
                status = 206 if first <= last else 416
            self.send_response(status)
            if status == 404:
                error = "EntryNotFound" if "Entry" in str(data) else "RepoNotFound"
                self.send_header("X-Error-Code", error)
            if status in (206, 416):
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}" if status == 206 else f"bytes */{len(data)}")
            self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
            piece = data[first : last + 1] if status != 416 else b""
            self.send_header("Content-Length", str(len(piece)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(piece)

        def log_message(self, format: str, *args: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            made.url = f"http://127.0.0.1:{server.server_port}"
            yield made
        finally:
            server.shutdown()
            thread.join()
