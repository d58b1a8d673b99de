"""`Cluster`: a small AIStore on this machine: a proxy and two targets on ports of their own, for the real SDK and for stores.

What it answers is what a cluster of AIStore 1.5 was seen to answer: objects by redirects (301 for GET, 307 otherwise), ranges without a
word of them in `Accept-Ranges`, listings in pages of MessagePack, reading inside of archives, uploads in parts, GetBatch, errors as JSON
whose text names `ais://bucket/object`, and the redirects of the S3 gateway, whose addresses are not escaped.

>>> with Cluster() as cluster:
...     cluster.put("shards", "a.tar", b"some bytes")
...     len(cluster.targets), sorted(cluster.buckets["shards"])
(2, ['a.tar'])
"""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import secrets
import socket
import ssl
import threading
import zlib
from collections.abc import Mapping
from http.client import responses
from typing import Any, Protocol, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tarviz.testing.aistore_answers import AisObject, Call, Fail, Problem, batch, chosen, listing, member, place_of

_PAGE = 10_000
NODES = {"proxy": 0, "t1": 0, "t2": 0}


class Transformers(Protocol):
    """What runs the transformers of a cluster, as Kubernetes does for a real one; `Problem` is what goes wrong."""

    def answer(self, call: Call, target: str) -> bytes:
        """The answer to a request below `etl`; `target` is the address that transformers read objects from."""
        ...

    def transform(self, name: str, call: Call, data: bytes) -> bytes:
        """What a transformer makes of an object."""
        ...

    def close(self) -> None: ...


class Cluster:
    """Serves until it is closed (a context manager does that). `token`: what every request at the proxy must bear.

    `pods`: what runs transformers; None is a cluster without Kubernetes, which refuses them. `tls`: it speaks TLS and nothing else.

    `requests` records (node, method, path with query); `fails` is what goes wrong next. `only`: the node of `ports` (0: a free one)
    that is served here; the others are elsewhere. `buckets`: what there is at the beginning.
    """

    def __init__(
        self,
        *,
        token: str = "",
        page_size: int = _PAGE,
        ports: Mapping[str, int] = NODES,
        only: str = "",
        buckets: dict[str, dict[str, AisObject]] | None = None,
        pods: Transformers | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.buckets = buckets or {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.fails: list[Fail] = []
        self.requests: list[tuple[str, str, str]] = []
        self.token = token
        self.page_size = page_size
        self.tls = tls
        self.lock = threading.RLock()
        self.still = threading.Condition(self.lock)  # an object lost a reader
        self.lacks: dict[int, int] = {}  # how often a target that joined says that it lacks what is its own now
        self.unseen: dict[int, int] = {}  # how often the proxy leads to a target that has died
        self.gone: set[int] = set()
        self._nodes = {name: _Node(self, name, port) for name, port in ports.items() if only in ("", name)}
        there = {**ports, **{name: node.server.server_port for name, node in self._nodes.items()}}
        self.pods = pods
        self.url, *self.targets = map(self._address, there.values())

    def _address(self, port: int) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{port}"

    def put(self, bucket: str, name: str, data: bytes, *, chunked: bool = False) -> None:
        """Store an object, making the bucket, once nobody reads the one that has the name."""
        with self.lock:
            objects = self.buckets.setdefault(bucket, {})
            self.still.wait_for(lambda: name not in objects or not objects[name].readers)
            objects[name] = AisObject(data, objects[name].version + 1 if name in objects else 1, chunked=chunked)

    def target_of(self, bucket: str, name: str) -> str:
        """The address of the target that has an object."""
        return self.targets[place_of(bucket, name, len(self.targets), self.gone)]

    def name_of(self, bucket: str, name: str) -> str:
        """The name of the target that has an object: `t1` for one."""
        return f"t{1 + self.targets.index(self.target_of(bucket, name))}"

    def restart(self, name: str) -> None:
        """Break every connection of a node, `t1` for one, and serve again on the same port; one that was gone is back."""
        port = self._nodes[name].server.server_port
        self._nodes[name].close()
        self._nodes[name] = _Node(self, name, port)
        self.gone.discard(int(name[1:] or 0) - 1)

    def leave(self, name: str, unseen: int = 2) -> None:
        """A target dies: the proxy leads to it `unseen` times more, and then the others are asked, which lack what it had."""
        self.unseen[int(name[1:]) - 1] = unseen
        self._nodes[name].close()

    def join(self, lacks: int = 3) -> str:
        """A target joins: it answers `lacks` times that it lacks what is its own now, until it looks at the others. Its name."""
        at = len(self.targets)
        self._nodes[f"t{at + 1}"] = node = _Node(self, f"t{at + 1}")
        self.lacks[at] = lacks
        self.targets.append(self._address(node.server.server_port))
        return node.server.name

    def notice(self) -> bool:
        """Whether a target that died is still led to, this once; it is gone from the map when that was often enough."""
        with self.lock:
            for at, times in list(self.unseen.items()):
                if times > 0:
                    self.unseen[at] = times - 1
                    return True
                self.gone.add(at)
                del self.unseen[at]
        return False

    def close(self) -> None:
        for node in self._nodes.values():
            node.close()
        if self.pods is not None:
            self.pods.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _NodeServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    cluster: Cluster
    name: str

    def __init__(self, *args: Any) -> None:
        self.sockets: set[socket.socket] = set()
        super().__init__(*args)

    def handle_error(self, request: Any, client_address: Any) -> None:
        return  # a client that left


class _Node:
    """One daemon of the cluster."""

    def __init__(self, cluster: Cluster, name: str, port: int = 0) -> None:
        self.server = _NodeServer(("127.0.0.1", port), _Proxy if name == "proxy" else _Target)
        self.server.cluster, self.server.name = cluster, name
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, name=f"AIStore {name}")
        self._thread.start()

    def close(self) -> None:
        if self.server.fileno() < 0:
            return  # it died before
        self.server.shutdown()
        for place in list(self.server.sockets):
            with contextlib.suppress(OSError):
                place.shutdown(socket.SHUT_RDWR)
        self.server.server_close()
        self._thread.join()


class _NodeHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _NodeServer

    def setup(self) -> None:
        tls, line = self.server.cluster.tls, self.request
        self.server.sockets.add(line)
        if tls and line.recv(1, socket.MSG_PEEK).isalpha():  # as Go's server does
            line.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
            tls = line.shutdown(socket.SHUT_RDWR)
        self._raw, self.request = line, tls.wrap_socket(line, server_side=True, do_handshake_on_connect=False) if tls else line
        self.server.sockets |= {self.request}
        super().setup()

    def finish(self) -> None:
        self.server.sockets -= {self.connection, self._raw}
        with contextlib.suppress(OSError):
            super().finish()
            self.connection.close()

    @property
    def cluster(self) -> Cluster:
        return self.server.cluster

    def log_message(self, format: str, *args: Any) -> None:
        return

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        self.cluster.requests.append((self.server.name, self.command, self.path))
        _, *places = parts.path.split("/", 3 if parts.path.startswith("/s3/") else 4)
        kind, bucket, name = [*places[places[:1] != ["s3"] :], "", "", ""][:3]
        query = {each: values[-1] for each, values in parse_qs(parts.query, keep_blank_values=True).items()}
        # Over TLS the SDK tells the proxy how long the body is, and sends it to the target alone.
        told = int(self.headers.get("Content-Length") or 0) if self.headers.get("Connection") != "close" else 0
        name = re.sub("//+", "/", unquote(name, errors="surrogateescape"))
        call = Call(self.command, kind, unquote(bucket), name, query, self.rfile.read(told))
        try:
            self.answer(call)
        except Problem as problem:
            text = {"tcode": problem.tcode, "message": str(problem), "method": call.method, "url_path": parts.path}
            text |= {"remote_addr": "127.0.0.1", "caller": "", "node": self.server.name}
            body = json.dumps({**text, "status": problem.status}).encode()
            self.say(problem.status, body, {"Content-Type": "application/json", **problem.headers})

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _serve  # noqa: N815

    def answer(self, call: Call) -> None:
        raise NotImplementedError

    def say(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None, cut: int | None = None) -> None:
        head = [f"HTTP/1.1 {status} {responses.get(status, '')}"]
        head += [
            f"{name}: {value}"
            for name, value in {**({"Content-Length": str(len(body))} if self.command != "HEAD" else {}), **(headers or {})}.items()
        ]
        self.wfile.write("\r\n".join([*head, "", ""]).encode("latin-1"))
        if self.command != "HEAD":
            self.wfile.write(body if cut is None else body[:cut])
        if cut is not None and cut < len(body):
            self.close_connection = True

    def bucket(self, name: str) -> dict[str, AisObject]:
        found = self.cluster.buckets.get(name)
        if found is None:
            raise Problem(404, f'bucket "ais://{name}" does not exist', "ErrBckNotFound")
        return found

    def fail(self, of: str) -> Fail:
        """What goes wrong now, if anything: at the proxy (`of` "tcode"), or with a target's answer."""
        with self.cluster.lock:
            for fail in self.cluster.fails:
                if bool(fail.tcode) == (of == "tcode"):
                    fail.times -= 1
                    if fail.times <= 0:
                        self.cluster.fails.remove(fail)
                    return fail
        return Fail()


class _Proxy(_NodeHandler):
    """Knows buckets and lists them; for objects it names the target."""

    def answer(self, call: Call) -> None:
        token = self.cluster.token
        if token and self.headers.get("Authorization") != f"Bearer {token}":
            raise Problem(401, "token required" if "Authorization" not in self.headers else "invalid token")
        if (fail := self.fail("tcode")).status:
            raise Problem(fail.status, "no storage targets in the cluster", fail.tcode)
        if call.kind in ("objects", "s3"):
            self.bucket(call.bucket)
            self.cluster.notice()
            self._redirect(self.cluster.target_of(call.bucket, call.name))
        elif call.kind == "ml":
            self._redirect(self.cluster.targets[0])
        elif call.kind == "etl":
            if self.cluster.pods is None:
                raise Problem(501, "cannot use ETL in a build without ETL support", "ErrUnsupp")
            self.say(200, self.cluster.pods.answer(call, self.cluster.url))
        elif call.kind == "buckets":
            self._buckets(call)
        elif call.kind == "cluster" and (action := call.message.get("action", "")).endswith("-maintenance"):
            at = int(call.message["value"]["sid"][1:]) - 1
            (self.cluster.gone.add if action.startswith("start") else self.cluster.gone.discard)(at)
            self.say(200)
        elif call.kind == "health":
            self.say(200)
        elif call.kind == "daemon" and call.query.get("what") == "smap":
            self.say(200, json.dumps(self._map()).encode(), {"Content-Type": "application/json"})
        else:
            raise Problem(404, f"invalid URL path {self.path!r}")

    def _redirect(self, target: str) -> None:
        path = self.path
        if path.startswith("/s3/"):  # the gateway escapes nothing
            path = unquote(path).encode().decode("latin-1")
        status = 301 if self.command == "GET" and path.startswith("/v1/objects/") else 307
        self.say(status, headers={"Location": f"{target}{path}{'&' if '?' in path else '?'}pid=proxy&utm=1"})

    def _map(self) -> dict[str, Any]:
        def node(name: str, url: str, kind: str) -> dict[str, Any]:
            net = {"node_hostname": "127.0.0.1", "daemon_port": url.rpartition(":")[2], "direct_url": url}
            digest = zlib.crc32(name.encode())
            nets = dict.fromkeys(("public_net", "intra_control_net", "intra_data_net"), net)
            return {"daemon_id": name, "daemon_type": kind, "flags": 0, "id_digest": digest, **nets}

        proxy = node("proxy", self.cluster.url, "proxy")
        targets = {f"t{at}": node(f"t{at}", url, "target") for at, url in enumerate(self.cluster.targets, 1)}
        return {"tmap": targets, "pmap": {"proxy": proxy}, "proxy_si": proxy, "version": 1, "uuid": "tarviz"}

    def _buckets(self, call: Call) -> None:
        name, action = call.bucket, call.message.get("action", "")
        with self.cluster.lock:
            if call.method == "POST" and action == "create-bck":
                if name in self.cluster.buckets:
                    raise Problem(409, f'bucket "ais://{name}" already exists', "ErrBucketAlreadyExists")
                self.cluster.buckets[name] = {}
                self.say(200)
            elif call.method == "DELETE" and action == "destroy-bck":
                self.bucket(name)
                del self.cluster.buckets[name]
                self.say(200)
            elif call.method == "HEAD":
                self.bucket(name)
                self.say(200, headers={"ais-bucket-props": "{}"})
            elif call.method == "GET" and not name:
                self.say(200, json.dumps([{"name": each, "provider": "ais"} for each in self.cluster.buckets]).encode())
            elif call.method == "GET" and action == "list":
                self._list(call)
            else:
                raise Problem(400, f"invalid action {action!r}")

    def _list(self, call: Call) -> None:
        if self.cluster.notice():
            raise Problem(400, "p[proxy]: failed to call t[t1]: connection reset by peer", "ErrFailedTo")
        page = listing(self.bucket(call.bucket), call.message.get("value") or {}, self.cluster.page_size)
        self.say(200, page, {"Content-Type": "application/msgpack"})


class _Target(_NodeHandler):
    """Has the objects."""

    def answer(self, call: Call) -> None:
        if call.kind == "ml":
            self._batch(call)
            return
        actions = {"GET": self._get, "HEAD": self._head, "PUT": self._put, "POST": self._post, "DELETE": self._delete}
        fail = self.fail("answer") if call.method == "GET" else Fail()
        if fail.status:
            raise Problem(fail.status, f"t1 is busy: ais://{call.bucket}/{call.name}")
        self._cut = fail.cut
        actions[call.method](call)

    def _find(self, call: Call) -> AisObject:
        cluster, at = self.cluster, int(self.server.name[1:]) - 1
        found = self.bucket(call.bucket).get(call.name)
        lost = place_of(call.bucket, call.name, len(cluster.targets)) in cluster.gone
        if found is not None and cluster.lacks.get(at, 0):
            cluster.lacks[at] -= 1
            lost = True
        if found is None or lost:
            raise Problem(404, f'object "ais://{call.bucket}/{call.name}" does not exist', "ErrObjNotFound")
        return found

    def _get(self, call: Call) -> None:
        found = self._find(call)
        where = f"ais://{call.bucket}/{call.name}"
        if name := call.query.get("etl_name"):
            if self.cluster.pods is None:
                raise Problem(404, f"etl {name!r} does not exist")
            self.say(200, self.cluster.pods.transform(name, call, found.data), cut=self._cut)
        elif path := call.query.get("archpath"):
            data = member(found.data, path)
            if data is None:
                raise Problem(404, f'file "{path}" in archive "{where}" does not exist')
            self.say(200, data, cut=self._cut)
        elif mode := call.query.get("archmode"):
            self.say(200, chosen(found.data, mode, call.query.get("archregx", "")), cut=self._cut)
        else:
            self._send(found)

    def _send(self, found: AisObject) -> None:
        asked, size = self.headers.get("Range", ""), len(found.data)
        if not asked.startswith("bytes=") or not found.present:
            found.present |= self._cut is None  # before it is sent: who has all of it may ask at once
            self._lend(found, 200, found.data, found.headers)
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        begin = int(first) if first else max(0, size - int(last))
        end = min(size, int(last) + 1) if first and last else size
        if begin >= end:
            raise Problem(416, f"invalid range {asked}: size {size}", "ErrRangeNotSatisfiable", {"Content-Range": f"bytes */{size}"})
        self._lend(found, 206, found.data[begin:end], {"Content-Range": f"bytes {begin}-{end - 1}/{size}", **found.headers})

    def _lend(self, found: AisObject, status: int, body: bytes, headers: dict[str, str]) -> None:
        """Send an object, which nobody may replace meanwhile."""
        try:
            with self.cluster.lock:
                found.readers += 1
            self.say(status, body, headers, self._cut)
        finally:
            with self.cluster.lock:
                found.readers -= 1
                self.cluster.still.notify_all()

    def _head(self, call: Call) -> None:
        found = self._find(call)
        told = {"ais-bucket-name": call.bucket, "ais-name": quote(call.name, errors="surrogateescape"), "ais-mirror-copies": "1"}
        told |= {"ais-location": f"{self.server.name}[mp]", "ais-present": str(found.present).lower()}
        length = {"Content-Length": str(len(found.data))} if found.data else {}  # none for an empty object
        self.say(200, headers={**found.headers, **told, **length})

    def _put(self, call: Call) -> None:
        objects = self.bucket(call.bucket)
        if upload := call.query.get("uploadId"):
            self._parts(upload)[int(call.query["partNumber"])] = call.body
        elif kind := call.query.get("append_type"):
            handle = call.query.get("append_handle") or secrets.token_hex(4)
            parts = self.cluster.uploads.setdefault(handle, {})
            parts[len(parts)] = call.body
            if kind == "flush":
                self.cluster.put(call.bucket, call.name, b"".join(self.cluster.uploads.pop(handle).values()))
            self.say(200, headers={"ais-append-handle": handle})
            return
        else:
            self.cluster.put(call.bucket, call.name, call.body)
        self.say(200, headers={} if call.name not in objects else objects[call.name].headers)

    def _post(self, call: Call) -> None:
        action = call.message.get("action", "")
        if action == "mpt-upload":
            upload = secrets.token_hex(8)
            self.cluster.uploads[upload] = {}
            self.say(200, upload.encode())
        elif action == "mpt-complete":
            parts = self._parts(call.query.get("uploadId", ""))
            order = [int(each["part-number"]) for each in call.message.get("value") or []]
            self.cluster.put(call.bucket, call.name, b"".join(parts[number] for number in order), chunked=True)
            del self.cluster.uploads[call.query["uploadId"]]
            self.say(200)
        else:
            raise Problem(400, f"invalid action {action!r}")

    def _parts(self, upload: str) -> dict[int, bytes]:
        if upload not in self.cluster.uploads:
            raise Problem(404, f"upload {upload!r} does not exist")
        return self.cluster.uploads[upload]

    def _delete(self, call: Call) -> None:
        if upload := call.query.get("uploadId"):
            self._parts(upload)
            del self.cluster.uploads[upload]
        else:
            self._find(call)
            del self.cluster.buckets[call.bucket][call.name]
        self.say(200)

    def _batch(self, call: Call) -> None:
        asked = call.message
        rows = []
        for item in asked.get("in", []):
            bucket = item.get("bucket") or call.name
            found = self.cluster.buckets.get(bucket, {}).get(item["objname"])
            data = None if found is None else found.data if not item.get("archpath") else member(found.data, item["archpath"])
            if data is not None and (start := item.get("start", 0)) + item.get("length", 0):
                data = data[start:] if item.get("length", -1) < 0 else data[start : start + item["length"]]
            if data is None and not asked.get("coer"):
                raise Problem(404, f'object "ais://{bucket}/{item["objname"]}" does not exist')
            rows.append((bucket, item, data))
        body, kind = batch(rows, names_only=bool(asked.get("onob")), streamed=bool(asked.get("strm")))
        self.say(200, body, {"Content-Type": kind})
