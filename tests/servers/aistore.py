"""The small AIStore of `tarviz.testing` with all that our own tests ask of one: writing, TLS, a token, the S3 gateway, transformers, and
nodes that die, come back, join and are taken out."""

from __future__ import annotations

import contextlib
import io
import json
import re
import secrets
import socket
import ssl
import tarfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote

from tarviz.testing import aistore
from tarviz.testing.aistore import AisCall, Handler, Problem

NODES = dict.fromkeys(aistore.NODES, 0)
_MATCHES: dict[str, Callable[[str, str], bool]] = {
    "regexp": lambda name, text: re.search(text, name) is not None,
    "prefix": lambda name, text: name.startswith(text),
    "suffix": lambda name, text: name.endswith(text),
    "substr": lambda name, text: text in name,
    "wdskey": lambda name, text: (
        re.split(r"\.", name.rpartition("/")[2], maxsplit=1)[0] == text.rpartition("/")[2]
        and name.rpartition("/")[0] == text.rpartition("/")[0]
    ),
}


@dataclass
class AisObject(aistore.AisObject):
    """Bytes and what AIStore keeps with them.

    `present`: the cluster holds a copy; an object of a remote bucket that it does not hold yet comes whole, whatever range is asked for.
    `chunked`: it was put in parts, and is kept so: the cluster lists no members of it. `readers`: answers with it that are on their way.
    """

    present: bool = True
    chunked: bool = False
    readers: int = 0

    @property
    def headers(self) -> dict[str, str]:
        return {**super().headers, "ais-present": str(self.present).lower()}

    def members(self) -> dict[str, bytes]:
        return {} if self.chunked else super().members()


@dataclass
class Fail(aistore.Fail):
    """With a `tcode` it is the proxy that so answers whatever it is asked."""

    tcode: str = ""


class Transformers(Protocol):
    """What runs the transformers of a cluster, as Kubernetes does for a real one; `Problem` is what goes wrong."""

    def answer(self, call: AisCall, target: str) -> bytes:
        """The answer to a request below `etl`; `target` is the address that transformers read objects from."""
        ...

    def transform(self, name: str, call: AisCall, data: bytes) -> bytes:
        """What a transformer makes of an object."""
        ...

    def close(self) -> None: ...


def place_of(bucket: str, name: str, targets: int, gone: Collection[int] = ()) -> int:
    """Which of the targets has an object: another one only for what was on one that is `gone`, or is the newest one's."""
    return aistore.place_of(bucket, name, (at for at in range(targets) if at not in gone))


class Cluster(aistore.Cluster):
    """Serves until it is closed (a context manager does that). `token`: what every request at the proxy must bear.

    `pods`: what runs transformers; None is a cluster without Kubernetes, which refuses them. `tls`: it speaks TLS and nothing else.
    `only`: the node of `ports` (0: a free one) that is served here; the others are elsewhere. `buckets`: what there is at the beginning.
    """

    def __init__(
        self,
        *,
        token: str = "",
        page_size: int = 10_000,
        ports: Mapping[str, int] = NODES,
        only: str = "",
        buckets: dict[str, dict[str, Any]] | None = None,
        pods: Transformers | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.buckets = buckets or {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.fails: list[Any] = []
        self.requests: list[tuple[str, str, str]] = []
        self.token = token
        self.page_size = page_size
        self.tls = tls
        self.pods = pods
        self.lock = threading.RLock()
        self.still = threading.Condition(self.lock)  # an object lost a reader
        self.lacks: dict[int, int] = {}  # how often a target that joined says that it lacks what is its own now
        self.unseen: dict[int, int] = {}  # how often the proxy leads to a target that has died
        self.gone: set[int] = set()
        self._served = {name: _Node(self, name, port) for name, port in ports.items() if only in ("", name)}
        there = {**ports, **{name: node.server_port for name, node in self._served.items()}}
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
        return self.targets[place_of(bucket, name, len(self.targets), self.gone)]

    def name_of(self, bucket: str, name: str) -> str:
        """The name of the target that has an object: `t1` for one."""
        return f"t{1 + self.targets.index(self.target_of(bucket, name))}"

    def restart(self, name: str) -> None:
        """Break every connection of a node, `t1` for one, and serve again on the same port; one that was gone is back."""
        port = self._served[name].server_port
        self._served[name].end()
        self._served[name] = _Node(self, name, port)
        self.gone.discard(int(name[1:] or 0) - 1)

    def leave(self, name: str, unseen: int = 2) -> None:
        """A target dies: the proxy leads to it `unseen` times more, and then the others are asked, which lack what it had."""
        self.unseen[int(name[1:]) - 1] = unseen
        self._served[name].end()

    def join(self, lacks: int = 3) -> str:
        """A target joins: it answers `lacks` times that it lacks what is its own now, until it looks at the others. Its name."""
        at = len(self.targets)
        self._served[f"t{at + 1}"] = node = _Node(self, f"t{at + 1}", 0)
        self.lacks[at] = lacks
        self.targets.append(self._address(node.server_port))
        return node.name

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
        for node in self._served.values():
            node.end()
        if self.pods is not None:
            self.pods.close()


class _Node(aistore.Node):
    """One daemon of the cluster, which can be ended with its connections."""

    def __init__(self, cluster: Cluster, name: str, port: int) -> None:
        self.sockets: set[socket.socket] = set()
        super().__init__(cluster, name, _Proxy if name == "proxy" else _Target, port)

    def end(self) -> None:
        if self.fileno() < 0:
            return  # it died before
        self.shutdown()
        for place in list(self.sockets):
            with contextlib.suppress(OSError):
                place.shutdown(socket.SHUT_RDWR)
        super().end()


class _Ours(Handler):
    server: _Node

    def setup(self) -> None:
        tls, line = self.cluster.tls, self.request
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

    do_PUT = do_DELETE = do_PATCH = Handler.serve  # noqa: N815

    def places(self, path: str) -> list[str]:
        if path.startswith("/s3/"):
            return ["s3", *path.split("/", 3)[2:]]
        return super().places(path)


class _Proxy(_Ours, aistore.Proxy):
    def answer(self, call: AisCall) -> None:
        token = self.cluster.token
        if token and self.headers.get("Authorization") != f"Bearer {token}":
            raise Problem(401, "token required" if "Authorization" not in self.headers else "invalid token")
        with self.cluster.lock:
            if (fail := next((fail for fail in self.cluster.fails if getattr(fail, "tcode", "")), None)) is not None:
                fail.times -= 1
                if fail.times <= 0:
                    self.cluster.fails.remove(fail)
                if fail.status:
                    raise Problem(fail.status, "no storage targets in the cluster", fail.tcode)
        if call.kind in ("objects", "s3"):
            self.bucket(call.bucket)
            self.cluster.notice()
            self.redirect(self.cluster.target_of(call.bucket, call.name))
        elif call.kind == "etl":
            if self.cluster.pods is None:
                raise Problem(501, "cannot use ETL in a build without ETL support", "ErrUnsupp")
            self.say(200, self.cluster.pods.answer(call, self.cluster.url))
        elif call.kind == "cluster" and (action := call.message.get("action", "")).endswith("-maintenance"):
            at = int(call.message["value"]["sid"][1:]) - 1
            (self.cluster.gone.add if action.startswith("start") else self.cluster.gone.discard)(at)
            self.say(200)
        elif call.kind == "buckets" and not (call.method == "HEAD" or (call.method == "GET" and call.name == "" and call.bucket)):
            self._buckets(call)
        elif call.kind == "buckets" and call.method == "GET" and call.message.get("action") != "list":
            raise Problem(400, f"invalid action {call.message.get('action', '')!r}")
        else:
            super().answer(call)

    def redirect(self, target: str) -> None:
        if self.path.startswith("/s3/"):  # the gateway escapes nothing
            self.path = unquote(self.path).encode().decode("latin-1")
        super().redirect(target)

    def _buckets(self, call: AisCall) -> None:
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
            elif call.method == "GET" and not name:
                self.say(200, json.dumps([{"name": each, "provider": "ais"} for each in self.cluster.buckets]).encode())
            else:
                raise Problem(400, f"invalid action {action!r}")

    def list(self, call: AisCall, page_size: int = 0) -> None:
        if self.cluster.notice():
            raise Problem(400, "p[proxy]: failed to call t[t1]: connection reset by peer", "ErrFailedTo")
        with self.cluster.lock:
            super().list(call, self.cluster.page_size)


class _Target(_Ours, aistore.Target):
    def answer(self, call: AisCall) -> None:
        own = {"PUT": self._put, "POST": self._post, "DELETE": self._delete}.get(call.method)
        if own is not None and call.kind != "ml":
            own(call)
        elif call.kind != "ml" and call.method == "GET" and {"etl_name", "archpath", "archmode"} & call.query.keys():
            self.fail(call)
            self._made_of(call, self.find(call))
        else:
            super().answer(call)

    def failing(self) -> Iterator[Any]:
        return (fail for fail in self.cluster.fails if not getattr(fail, "tcode", ""))

    def find(self, call: AisCall) -> Any:
        cluster, at = self.cluster, int(self.server.name[1:]) - 1
        found = self.bucket(call.bucket).get(call.name)
        lost = place_of(call.bucket, call.name, len(cluster.targets)) in cluster.gone
        if found is not None and cluster.lacks.get(at, 0):
            cluster.lacks[at] -= 1
            lost = True
        if lost:
            raise Problem(404, f'object "ais://{call.bucket}/{call.name}" does not exist', "ErrObjNotFound")
        return super().find(call)

    def _made_of(self, call: AisCall, found: AisObject) -> None:
        """What a transformer makes of an object, one of its members, or a tar of some."""
        if name := call.query.get("etl_name"):
            if self.cluster.pods is None:
                raise Problem(404, f"etl {name!r} does not exist")
            self.say(200, self.cluster.pods.transform(name, call, found.data), cut=self.cut)
        elif path := call.query.get("archpath"):
            if (data := found.files().get(path)) is None:
                raise Problem(404, f'file "{path}" in archive "ais://{call.bucket}/{call.name}" does not exist')
            self.say(200, data, cut=self.cut)
        else:
            self.say(200, _chosen(found.data, call.query["archmode"], call.query.get("archregx", "")), cut=self.cut)

    def send(self, found: Any) -> None:
        if not found.present:
            del self.headers["Range"]
            found.present |= self.cut is None  # before it is sent: who has all of it may ask at once
        try:  # nobody may replace it meanwhile
            with self.cluster.lock:
                found.readers += 1
            super().send(found)
        finally:
            with self.cluster.lock:
                found.readers -= 1
                self.cluster.still.notify_all()

    def _put(self, call: AisCall) -> None:
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

    def _post(self, call: AisCall) -> None:
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

    def _delete(self, call: AisCall) -> None:
        if upload := call.query.get("uploadId"):
            self._parts(upload)
            del self.cluster.uploads[upload]
        else:
            self.find(call)
            del self.cluster.buckets[call.bucket][call.name]
        self.say(200)


def _chosen(data: bytes, mode: str, text: str) -> bytes:
    """A tar of the files whose names match."""
    made = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar, tarfile.open(fileobj=made, mode="w") as new:
        for each in tar:
            if each.isfile() and _MATCHES[mode](each.name, text):
                new.addfile(each, tar.extractfile(each))
    return made.getvalue()
