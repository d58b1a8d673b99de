"""The Hugging Face hub on this machine: a repository that `huggingface_hub` commits to, and a bucket whose bytes `hf_xet` keeps.

Small files of the repository come in the commit, others by Git LFS. The bucket lists in pages, and sends readers to a second server.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

TOKEN = "hf_token-of-the-test"
SMALL = 1000  # bytes up to which a file travels in the commit itself
REPOSITORY = "datasets/org/name"
BUCKET = "buckets/org/name"
PAGE = 2  # rows
_PASS = {"token": "any", "token_expiry_unix_secs": 1 << 33}


@dataclass
class Hub:
    """What lies in `datasets/org/name`, and what was asked. `refuses`: the status that every commit gets; `bucket`: another place."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)  # by SHA-256: bytes that came, of which no commit need have told
    commits: list[list[str]] = field(default_factory=list)
    refuses: int = 0
    bucket: Bucket = field(init=False)

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


@dataclass
class Bucket:
    """What lies in `buckets/org/name`. `seen`: the server, the path and the authorization of every request for it.

    `fails`: a name that no batch takes; `url`, `place`: of the hub, and of the bytes; `cas`: the folder of hf_xet.
    """

    url: str
    place: str
    cas: str
    files: dict[str, str] = field(default_factory=dict)  # names, and the hash of what each holds
    kept: dict[str, bytes] = field(default_factory=dict)  # by its hash, what was ever there
    seen: list[tuple[str, str, str | None]] = field(default_factory=list)
    fails: str = ""

    def put(self, name: str, data: bytes) -> None:
        import hf_xet

        with hf_xet.XetSession().new_upload_commit(endpoint=self.cas, **_PASS) as commit:
            sent = commit.start_upload_bytes(data, sha256=hf_xet.SKIP_SHA256)
        self.files[name] = key = sent.result().xet_info.hash
        self.kept[key] = data

    def row(self, name: str) -> dict[str, Any]:
        key = self.files[name]
        return {"type": "file", "path": name, "size": len(self.kept[key]), "xetHash": key, "mtime": "2026-01-02T03:04:05.000Z"}

    def answer(self, path: str, query: Mapping[str, str], body: bytes) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON or bytes, and headers."""
        api, _, rest = path.removeprefix("/").partition(BUCKET)
        what, _, name = rest.removeprefix("/").partition("/")
        match api, what:
            case "", "resolve":
                return self.resolve(name)
            case "api/", "":
                created = {"id": "org/name", "private": True, "createdAt": "2026-01-02T03:04:05.000Z"}
                return 200, {**created, "size": sum(len(self.kept[key]) for key in self.files.values()), "totalFiles": len(self.files)}, {}
            case "api/", "xet-read-token" | "xet-write-token":
                return 200, {"accessToken": "any", "exp": 1 << 33, "casUrl": self.cas}, {}
            case "api/", "paths-info":
                return 200, [self.row(each) for each in json.loads(body)["paths"] if each in self.files], {}
            case "api/", "tree":
                return self.tree(name, query)
            case "api/", "batch":
                return self.batch([json.loads(line) for line in body.splitlines()])
        return 404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"}

    def resolve(self, name: str) -> tuple[int, Any, dict[str, str]]:
        if name not in self.files:
            return 404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"}
        key = self.files[name]
        auth = f'<{self.url}/api/{BUCKET}/xet-read-token>; rel="xet-auth"'
        told = {"X-Linked-Size": str(len(self.kept[key])), "X-Linked-ETag": f'"{key}"', "X-Xet-Hash": key, "Link": auth}
        return 302, b"Found", told | {"Location": f"{self.place}/xet/{key}?Signature=any"}

    def tree(self, prefix: str, query: Mapping[str, str]) -> tuple[int, Any, dict[str, str]]:
        """A page: what begins with the prefix, and without `recursive` the folders right below it in place of what is in them."""
        rows, below = {}, f"{prefix}/" if prefix else ""
        for name in sorted(name for name in self.files if name.startswith(prefix)):
            if query.get("recursive") == "false" and "/" in (rest := name[len(below) :]):
                folder = name[: len(below)] + rest.partition("/")[0]
                rows[folder] = {"type": "directory", "path": folder, "uploadedAt": "2026-01-02T03:04:05.000Z"}
            else:
                rows[name] = self.row(name)
        first = int(query.get("cursor", "0"))
        more = {**query, "cursor": str(first + PAGE)}
        place = f"{self.url}/api/{BUCKET}/tree{'/' if prefix else ''}{prefix}?{'&'.join(map('='.join, more.items()))}"
        return 200, list(rows.values())[first : first + PAGE], {"Link": f'<{place}>; rel="next"'} if len(rows) > first + PAGE else {}

    def batch(self, lines: list[dict[str, Any]]) -> tuple[int, Any, dict[str, str]]:
        import hf_xet

        for line in lines:
            if line["path"] == self.fails:
                return 422, {"success": False, "failed": [{"path": line["path"], "error": "not today"}]}, {}
            if line["type"] == "deleteFile":
                del self.files[line["path"]]
            else:
                stored = hf_xet.XetSession().new_download_stream_group(endpoint=self.cas, **_PASS)
                self.kept[line["xetHash"]] = b"".join(stored.download_stream(hf_xet.XetFileInfo(line["xetHash"])))
                self.files[line["path"]] = line["xetHash"]
        return 200, {"success": True, "processed": len(lines), "succeeded": len(lines), "failed": []}, {}


@contextlib.contextmanager
def hub() -> Iterator[Hub]:
    """A hub that serves until the end; who writes needs `TOKEN`."""
    made = Hub()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.chunks() if self.headers.get("Transfer-Encoding") else self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = unquote(urlsplit(self.path).path)
            here = self.answer_bucket if "/buckets/" in path or path.startswith("/xet/") else self.answer
            status, said, more = here(path, body, self.headers.get("Authorization"))
            self.send(status, said if isinstance(said, bytes) else json.dumps(said).encode(), more)

        def answer(self, path: str, body: bytes, asked: str | None) -> tuple[int, Any, dict[str, str]]:
            if self.command in ("GET", "HEAD") or path.startswith("/lfs/") or asked == f"Bearer {TOKEN}":
                return *made.answer(self.command, path, body), {}
            return 401, {"error": "Invalid username or password."}, {}

        def answer_bucket(self, path: str, body: bytes, asked: str | None) -> tuple[int, Any, dict[str, str]]:
            host, bucket = f"http://{self.headers['Host']}", made.bucket
            bucket.seen.append((host, path, asked))
            if host == bucket.place:
                return (200, bucket.kept[path[5:]], {}) if asked is None else (400, {"error": "two ways to say who asks"}, {})
            if asked != f"Bearer {TOKEN}":
                return 401, {}, {"X-Error-Message": "Invalid username or password."}
            return bucket.answer(path, dict(parse_qsl(urlsplit(self.path).query)), body)

        do_GET = do_HEAD = do_PUT = do_POST  # noqa: N815

        def chunks(self) -> bytes:
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size + 2)[:size]
            self.rfile.readline()
            return body

        def send(self, status: int, data: bytes, more: Mapping[str, str]) -> None:
            first, last = 0, len(data) - 1
            if status == 200 and (asked := self.headers.get("Range")):
                begin, _, end = asked.removeprefix("bytes=").partition("-")
                first, last = int(begin), min(int(end or last), last)
                status = 206 if first <= last else 416
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            if status == 404 and not more:
                error = "EntryNotFound" if "Entry" in str(data) else "RepoNotFound"
                self.send_header("X-Error-Code", error)
            if status in (206, 416):
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}" if status == 206 else f"bytes */{len(data)}")
            self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
            piece = data[first : last + 1] if status != 416 else b""
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(piece)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(piece)

        def log_message(self, format: str, *args: Any) -> None:
            return

    with contextlib.ExitStack() as stack:
        urls = []
        for _ in range(2):
            server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler))
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            urls.append(f"http://127.0.0.1:{server.server_port}")
        made.url = urls[0]
        made.bucket = Bucket(*urls, f"local://{stack.enter_context(tempfile.TemporaryDirectory())}")
        yield made
