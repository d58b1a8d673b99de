"""`Cluster`: a small AIStore on this machine: a proxy and two targets on ports of their own, for the real SDK and for stores.

What it answers is what a cluster of AIStore 1.5 was seen to answer: objects by redirects (301 for GET, 307 otherwise), ranges without a
word of them in `Accept-Ranges`, listings in pages of MessagePack, members of archives by GetBatch, errors as JSON whose text names
`ais://bucket/object`. It is for reading: objects come by `put`.

>>> with Cluster() as cluster:
...     cluster.put("shards", "a.tar", b"some bytes")
...     len(cluster.targets), sorted(cluster.buckets["shards"])
(2, ['a.tar'])
"""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import re
import secrets
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

NODES = ("proxy", "t1", "t2")
_PAGE = 10_000
_ARCHIVES, _FLAT, _NO_FOLDERS = 1 << 3, 1 << 11, 1 << 13  # bits of `flags` of a listing


class Problem(Exception):  # noqa: N818  (an answer)
    """What is wrong with a request: the status, the words and the code of the answer, and headers."""

    def __init__(self, status: int, message: str, tcode: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.tcode = tcode
        self.headers = dict(headers or {})


@dataclass
class AisObject:
    """Bytes and what AIStore keeps with them."""

    data: bytes
    version: int = 1

    @property
    def headers(self) -> dict[str, str]:
        import google_crc32c

        value = google_crc32c.Checksum(self.data).hexdigest().decode()
        return {"ais-checksum-type": "crc32c", "ais-checksum-value": value, "ais-version": str(self.version), "ais-atime": "1700000000"}

    def files(self) -> dict[str, bytes]:
        """The files in it by name, where it is a tar."""
        try:
            with tarfile.open(fileobj=io.BytesIO(self.data)) as tar:
                return {each.name: file.read() for each in tar if each.isfile() and (file := tar.extractfile(each))}
        except tarfile.TarError:
            return {}

    def members(self) -> dict[str, bytes]:
        """Those of them that the cluster lists."""
        return self.files()


@dataclass
class Fail:
    """How a target answers the next `times` requests for objects: with `status`, or cut after `cut` bytes of the body."""

    times: int = 1
    status: int = 0
    cut: int | None = None


@dataclass
class AisCall:
    """A request, parted."""

    method: str
    kind: str
    bucket: str
    name: str
    query: dict[str, str]
    body: bytes = field(repr=False)

    @property
    def message(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.body or b"{}")
        except ValueError as error:
            raise Problem(400, f"failed to unmarshal: {error}") from error
        return found


def place_of(bucket: str, name: str, targets: Iterable[int]) -> int:
    """Which of the targets has an object.

    >>> place_of("data", "a.tar", range(2)), place_of("data", "c.tar", range(2))
    (0, 1)
    """
    return max(targets, key=lambda at: hashlib.sha256(f"{at}/{bucket}/{name}".encode("utf-8", "surrogateescape")).digest())


class Cluster:
    """Serves until it is closed (a context manager does that).

    `requests` records (node, method, path with query); `fails` is what goes wrong next.
    """

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, Any]] = {}
        self.fails: list[Any] = []
        self.requests: list[tuple[str, str, str]] = []
        self.lock = threading.RLock()
        self._nodes = [Node(self, name, Proxy if name == "proxy" else Target) for name in NODES]
        self.url, *self.targets = (f"http://127.0.0.1:{node.server_port}" for node in self._nodes)

    def put(self, bucket: str, name: str, data: bytes) -> None:
        """Store an object, making the bucket."""
        with self.lock:
            objects = self.buckets.setdefault(bucket, {})
            objects[name] = AisObject(data, objects[name].version + 1 if name in objects else 1)

    def target_of(self, bucket: str, name: str) -> str:
        """The address of the target that has an object."""
        return self.targets[place_of(bucket, name, range(len(self.targets)))]

    def close(self) -> None:
        for node in self._nodes:
            node.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Node(http.server.ThreadingHTTPServer):
    """One daemon of the cluster."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, cluster: Any, name: str, handler: Callable[..., http.server.BaseHTTPRequestHandler], port: int = 0) -> None:
        self.cluster, self.name = cluster, name
        super().__init__(("127.0.0.1", port), handler)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, name=f"AIStore {name}")
        self._thread.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        return  # a client that left

    def end(self) -> None:
        """Serve no more."""
        self.shutdown()
        self.server_close()
        self._thread.join()


class Handler(http.server.BaseHTTPRequestHandler):
    """What proxy and targets have in common."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Node

    @property
    def cluster(self) -> Any:
        return self.server.cluster

    def log_message(self, format: str, *args: Any) -> None:
        return

    def serve(self) -> None:
        """Answer the request that came."""
        parts = urlsplit(self.path)
        self.cluster.requests.append((self.server.name, self.command, self.path))
        kind, bucket, name = [*self.places(parts.path), "", "", ""][:3]
        query = {each: values[-1] for each, values in parse_qs(parts.query, keep_blank_values=True).items()}
        # Over TLS the SDK tells the proxy how long the body is, and sends it to the target alone.
        told = int(self.headers.get("Content-Length") or 0) if self.headers.get("Connection") != "close" else 0
        name = re.sub("//+", "/", unquote(name, errors="surrogateescape"))
        call = AisCall(self.command, kind, unquote(bucket), name, query, self.rfile.read(told))
        try:
            self.answer(call)
        except Problem as problem:
            text = {"tcode": problem.tcode, "message": str(problem), "method": call.method, "url_path": parts.path}
            text |= {"remote_addr": "127.0.0.1", "caller": "", "node": self.server.name}
            body = json.dumps({**text, "status": problem.status}).encode()
            self.say(problem.status, body, {"Content-Type": "application/json", **problem.headers})

    do_GET = do_HEAD = do_POST = serve  # noqa: N815

    def places(self, path: str) -> list[str]:
        """Kind, bucket and name in the path `/v1/KIND/BUCKET/NAME`."""
        return path.split("/", 4)[2:]

    def answer(self, call: AisCall) -> None:
        raise NotImplementedError

    def say(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None, cut: int | None = None) -> None:
        head = {**({"Content-Length": str(len(body))} if self.command != "HEAD" else {}), **(headers or {})}
        self.send_response_only(status)
        for name, value in head.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:cut])
        self.close_connection |= cut is not None

    def bucket(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] | None = self.cluster.buckets.get(name)
        if found is None:
            raise Problem(404, f'bucket "ais://{name}" does not exist', "ErrBckNotFound")
        return found


class Proxy(Handler):
    """Knows buckets and lists them; for objects it names the target."""

    def answer(self, call: AisCall) -> None:
        if call.kind == "objects":
            self.bucket(call.bucket)
            self.redirect(self.cluster.target_of(call.bucket, call.name))
        elif call.kind == "ml":
            self.redirect(self.cluster.targets[0])
        elif call.kind == "buckets" and call.method == "GET" and call.message.get("action") == "list":
            self.list(call)
        elif call.kind == "buckets" and call.method == "HEAD":
            self.bucket(call.bucket)
            self.say(200, headers={"ais-bucket-props": "{}"})
        elif call.kind == "health":
            self.say(200)
        elif call.kind == "daemon" and call.query.get("what") == "smap":
            self.say(200, json.dumps(self._map()).encode(), {"Content-Type": "application/json"})
        else:
            raise Problem(404, f"invalid URL path {self.path!r}")

    def redirect(self, target: str) -> None:
        status = 301 if self.command == "GET" and self.path.startswith("/v1/objects/") else 307
        self.say(status, headers={"Location": f"{target}{self.path}{'&' if '?' in self.path else '?'}pid=proxy&utm=1"})

    def _map(self) -> dict[str, Any]:
        def node(name: str, url: str, kind: str) -> dict[str, Any]:
            net = {"node_hostname": "127.0.0.1", "daemon_port": url.rpartition(":")[2], "direct_url": url}
            digest = zlib.crc32(name.encode())
            nets = dict.fromkeys(("public_net", "intra_control_net", "intra_data_net"), net)
            return {"daemon_id": name, "daemon_type": kind, "flags": 0, "id_digest": digest, **nets}

        proxy = node("proxy", self.cluster.url, "proxy")
        targets = {f"t{at}": node(f"t{at}", url, "target") for at, url in enumerate(self.cluster.targets, 1)}
        return {"tmap": targets, "pmap": {"proxy": proxy}, "proxy_si": proxy, "version": 1, "uuid": "tarviz"}

    def list(self, call: AisCall, page_size: int = _PAGE) -> None:
        """One page of a bucket's objects, as MessagePack."""
        import msgspec

        value = call.message.get("value") or {}
        prefix, after = value.get("prefix") or "", value.get("continuation_token") or ""
        objects = {name: kept for name, kept in self.bucket(call.bucket).items() if name.startswith(prefix)}
        rows = _rows(objects, prefix, int(value.get("flags") or 0))
        order = [name for name in sorted(rows) if name > after]
        size = min(int(value.get("pagesize") or page_size), page_size)
        page: dict[str, Any] = {"UUID": value.get("uuid") or secrets.token_hex(4), "Flags": 0}
        page["ContinuationToken"] = order[size - 1] if len(order) > size else ""
        page["Entries"] = [rows[name] for name in order[:size]] or None
        self.say(200, msgspec.msgpack.encode(page), {"Content-Type": "application/msgpack"})


def _rows(there: Mapping[str, AisObject], prefix: str, flags: int) -> dict[str, dict[str, Any]]:
    """The entries of a listing by name: objects, what lies in those that are archives, and folders, as the flags ask."""
    rows: dict[str, dict[str, Any]] = {name: {"n": name, "s": len(kept.data), "v": str(kept.version)} for name, kept in there.items()}
    if flags & _ARCHIVES:
        rows |= {
            f"{name}/{inner}": {"n": f"{name}/{inner}", "s": len(data)}
            for name, kept in there.items()
            for inner, data in kept.members().items()
        }
    if flags & _FLAT:
        below = {name.removeprefix(prefix).partition("/")[0] for name in rows if "/" in name.removeprefix(prefix)}
        rows = {name: row for name, row in rows.items() if "/" not in name.removeprefix(prefix)}
        if not flags & _NO_FOLDERS:
            rows |= {f"{prefix}{name}/": {"n": f"{prefix}{name}/", "f": 1 << 6} for name in below}
    return rows


class Target(Handler):
    """Has the objects."""

    cut: int | None = None

    def answer(self, call: AisCall) -> None:
        if call.kind == "ml":
            self._batch(call)
            return
        self.fail(call)
        found = self.find(call)
        if call.method == "GET":
            self.send(found)
        else:
            told = {"ais-bucket-name": call.bucket, "ais-name": quote(call.name, errors="surrogateescape"), "ais-mirror-copies": "1"}
            told |= {"ais-location": f"{self.server.name}[mp]", "ais-present": "true"}
            length = {"Content-Length": str(len(found.data))} if found.data else {}  # none for an empty object
            self.say(200, headers={**told, **found.headers, **length})

    def fail(self, call: AisCall) -> None:
        """What goes wrong with an answer to GET, if anything."""
        self.cut = None
        with self.cluster.lock:
            if call.method != "GET" or (fail := next(self.failing(), None)) is None:
                return
            fail.times -= 1
            if fail.times <= 0:
                self.cluster.fails.remove(fail)
        self.cut = fail.cut
        if fail.status:
            raise Problem(fail.status, f"t1 is busy: ais://{call.bucket}/{call.name}")

    def failing(self) -> Any:
        return iter(self.cluster.fails)

    def find(self, call: AisCall) -> Any:
        found = self.bucket(call.bucket).get(call.name)
        if found is None:
            raise Problem(404, f'object "ais://{call.bucket}/{call.name}" does not exist', "ErrObjNotFound")
        return found

    def send(self, found: Any) -> None:
        """An object, or the range of it that is asked for."""
        asked, size = self.headers.get("Range", ""), len(found.data)
        if not asked.startswith("bytes="):
            self.say(200, found.data, found.headers, self.cut)
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        begin = int(first) if first else max(0, size - int(last))
        end = min(size, int(last) + 1) if first and last else size
        if begin >= end:
            raise Problem(416, f"invalid range {asked}: size {size}", "ErrRangeNotSatisfiable", {"Content-Range": f"bytes */{size}"})
        self.say(206, found.data[begin:end], {"Content-Range": f"bytes {begin}-{end - 1}/{size}", **found.headers}, self.cut)

    def _batch(self, call: AisCall) -> None:
        asked = call.message
        rows = []
        for item in asked.get("in", []):
            bucket = item.get("bucket") or call.name
            found = self.cluster.buckets.get(bucket, {}).get(item["objname"])
            data = None if found is None else found.data if not item.get("archpath") else found.files().get(item["archpath"])
            if data is not None:
                start, length = item.get("start", 0), item.get("length", 0)
                data = data[start : start + length] if length > 0 else data[start:]
            if data is None and not asked.get("coer"):
                raise Problem(404, f'object "ais://{bucket}/{item["objname"]}" does not exist')
            rows.append((bucket, item, data))
        body, kind = _batch_answer(rows, names_only=bool(asked.get("onob")), streamed=bool(asked.get("strm")))
        self.say(200, body, {"Content-Type": kind})


def _batch_answer(rows: Iterable[tuple[str, dict[str, Any], bytes | None]], *, names_only: bool, streamed: bool) -> tuple[bytes, str]:
    """Body and content type of the answer to a GetBatch: a tar in the order asked, what is missing below `__404__/`."""
    made, told = io.BytesIO(), []
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for bucket, item, data in rows:
            name = "/".join(filter(None, ("" if names_only else bucket, item["objname"], item.get("archpath", ""))))
            info = tarfile.TarInfo(name if data is not None else f"__404__/{name}")
            info.size = len(data or b"")
            tar.addfile(info, io.BytesIO(data or b""))
            row: dict[str, Any] = {key: item[key] for key in ("objname", "archpath", "opaque") if key in item}
            row |= {"bucket": bucket, "provider": item.get("provider", "ais"), "size": info.size}
            told.append(row if data is not None else {**row, "err_msg": f'"ais://{bucket}/{item["objname"]}" does not exist'})
    if streamed:
        return made.getvalue(), "application/x-tar"
    mark = secrets.token_hex(16)
    head = json.dumps({"uuid": mark[:8], "out": told}).encode()
    parts = [("application/json", head), ("application/octet-stream", made.getvalue())]
    body = b"".join(b"--%b\r\nContent-Type: %b\r\n\r\n%b\r\n" % (mark.encode(), kind.encode(), part) for kind, part in parts)
    return body + f"--{mark}--\r\n".encode(), f"multipart/mixed; boundary={mark}"
