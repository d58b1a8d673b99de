"""Uploads: an object goes up in parts while it is written, and is there, whole, once the last call is accepted."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from urllib.parse import parse_qsl, urlsplit
from xml.sax.saxutils import escape

from tarviz.model.errors import NotFoundError, StoreError
from tarviz.model.types import URL, Buffer
from tarviz.stores._remote.version import Version
from tarviz.stores._remote.wire import WRITTEN, read_whole
from tarviz.stores.base import OneSink, Stat, already_there, refuse_taken
from tarviz.stores.retry import RetryError

if TYPE_CHECKING:
    from tarviz.stores._remote.reader import BucketStore

PART = 8 << 20
_LARGER = 1000  # parts after which parts get twice as large: S3 takes ten thousand
_INCOMPLETE = 308  # Google: the session goes on
_UPLOAD_ID = re.compile(rb"<UploadId>\s*([^<\s]+)\s*</UploadId>")
_ETAG = re.compile(rb"<ETag>\s*([^<\s]+)\s*</ETag>")
_ERROR = re.compile(rb"<Error>.*?<Code>\s*([\w.]+)\s*</Code>", re.DOTALL)


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: bytes


class Upload:
    """How one store takes an object: by calls that are tried again while that may help.

    `part` may be called from `at_once` threads, the rest from one. `absent` is the condition that no object has the name.
    """

    at_once: ClassVar[int] = 2
    absent: ClassVar[Mapping[str, str]] = {"If-None-Match": "*"}
    accept: ClassVar[frozenset[int]] = WRITTEN

    def __init__(self, store: BucketStore, url: URL, *, replace: bool = True) -> None:
        self._store = store
        self._url = url
        self._condition = {} if replace else self.absent
        self._stop = threading.Event()

    def whole(self, data: bytes) -> str | None:
        """Put a small object in one request: its ETag."""
        raise NotImplementedError

    def begin(self) -> None:
        """Before the first part."""

    def part(self, number: int, data: bytes) -> str:
        """Send a part, from 1 on: what `complete` names it by."""
        raise NotImplementedError

    def complete(self, parts: list[str], size: int) -> str | None:
        """Make the parts the object: its ETag."""
        raise NotImplementedError

    def stop(self) -> None:
        """Give up what waits to be tried again."""
        self._stop.set()

    def abort(self) -> None:
        """Have the store drop the parts. May be called without `begin`."""

    def once(self, stall: float, method: str, query: Mapping[str, str], body: bytes, headers: Mapping[str, str] | None) -> _Answer:
        """One request about the object, sent once."""
        if self._stop.is_set():
            raise StoreError("the write was aborted.", code="E_WRITE", shard=self._url)
        answer = self._store.wire.send(method, self._url, headers or {}, stall, query=query, body=body, accept=self.accept)
        text = read_whole(answer)
        if found := _ERROR.search(text[:4096]):  # 200 at first, and then it failed
            raise RetryError(f"the server answers {answer.status} with the error {found[1].decode()}")
        return _Answer(answer.status, answer.headers, text)

    def call(self, method: str, query: Mapping[str, str], body: bytes = b"", headers: Mapping[str, str] | None = None) -> _Answer:
        """One request about the object, tried again while that may help."""
        return self._store.persist(self._url, lambda stall: self.once(stall, method, query, body, headers), self._stop)

    def last(self, method: str, query: Mapping[str, str], body: bytes, headers: Mapping[str, str] | None = None) -> _Answer:
        """The call that makes the object visible: under the condition, if there is one, that nothing has its name.

        It is looked for first, too: AIStore's gateway, older MinIO, Ceph and Swift take no notice of the condition.
        """
        with self.unless_taken():
            return self.call(method, query, body, {**(headers or {}), **self._condition})

    @contextmanager
    def unless_taken(self) -> Iterator[None]:
        """`E_EXISTS` before or after, where an object has the name and none may be replaced."""
        if self._condition:
            refuse_taken(self._store, self._url)
        try:
            yield
        except StoreError as error:
            if not self._condition or error.details.get("status") not in (409, 412):
                raise
            raise already_there(self._url) from error

    def drop(self, query: Mapping[str, str]) -> None:
        """Ask that the parts be dropped; that it fails changes nothing for the caller."""
        with suppress(RetryError, OSError, ValueError):  # the store drops stale parts by its own rules
            self._store.wire.send("DELETE", self._url, {}, 10.0, query=query, accept=WRITTEN).close()


class UploadSink(OneSink):
    """A write of unknown length: a part waits in memory, one or two are under way."""

    def __init__(self, url: URL, upload: Upload) -> None:
        super().__init__(url)
        self._upload = upload
        self._buffer = bytearray()
        self._size = 0
        self._sent: list[Future[str]] = []
        self._pool: ThreadPoolExecutor | None = None

    def write(self, data: Buffer, /) -> None:
        self.check_open()
        view = memoryview(data).cast("B")
        self._size += len(view)
        while len(view):
            limit = PART << (len(self._sent) // _LARGER)
            room = limit - len(self._buffer)
            self._buffer += view[:room]
            view = view[room:]
            if len(self._buffer) >= limit:
                self._send()

    def _send(self) -> None:
        if self._pool is None:
            self._upload.begin()
            self._pool = ThreadPoolExecutor(self._upload.at_once, thread_name_prefix="tarviz-upload")
        if len(self._sent) >= self._upload.at_once:
            self._sent[-self._upload.at_once].result()
        data = bytes(self._buffer)
        self._buffer.clear()
        self._sent.append(self._pool.submit(self._upload.part, len(self._sent) + 1, data))

    def complete(self) -> Stat:
        if self._pool is None:
            etag = self._upload.whole(bytes(self._buffer))
        else:
            if self._buffer:
                self._send()
            etag = self._upload.complete([each.result() for each in self._sent], self._size)
            self._pool.shutdown()
        self._buffer.clear()
        return Stat(self.url, self._size, etag)

    def discard(self) -> None:
        self._upload.stop()
        self._buffer.clear()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._upload.abort()


class S3Upload(Upload):
    """Multipart uploads as S3 and Google's XML interface have them."""

    _id = ""

    def whole(self, data: bytes) -> str | None:
        try:
            return self.last("PUT", {}, data).headers.get("ETag")
        except StoreError as error:
            ours = f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
            if error.code != "E_EXISTS" or self._store.stat(self._url).etag != ours:
                raise
            return ours  # an answer was lost: these very bytes lie there

    def begin(self) -> None:
        found = _UPLOAD_ID.search(self.call("POST", {"uploads": ""}).text)
        if found is None:
            raise StoreError("the server begins no upload in parts.", code="E_WRITE", shard=self._url)
        self._id = found[1].decode()

    def part(self, number: int, data: bytes) -> str:
        etag = self.call("PUT", {"partNumber": str(number), "uploadId": self._id}, data).headers.get("ETag", "")
        if not etag:
            raise StoreError(f"the server names no ETag for part {number}.", code="E_WRITE", shard=self._url)
        return etag

    def complete(self, parts: list[str], size: int) -> str | None:
        rows = "".join(f"<Part><PartNumber>{at}</PartNumber><ETag>{escape(etag)}</ETag></Part>" for at, etag in enumerate(parts, 1))
        body = f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>".encode()
        try:
            answer = self.last("POST", {"uploadId": self._id}, body)
        except NotFoundError:
            return self._etag_if_complete(parts, size)
        found = _ETAG.search(answer.text)
        return found[1].decode().replace("&quot;", '"') if found else self._store.stat(self._url).etag

    def _etag_if_complete(self, parts: list[str], size: int) -> str | None:
        """The upload is gone: its completion was accepted before, and only the answer was lost, or somebody aborted it."""
        stat = self._store.stat(self._url)
        try:
            made = hashlib.md5(b"".join(bytes.fromhex(each.strip('"')) for each in parts), usedforsecurity=False).hexdigest()
        except ValueError:
            made = ""
        ours = stat.etag == f'"{made}-{len(parts)}"' if made else (stat.etag or "").endswith(f'-{len(parts)}"')
        if stat.size != size or not ours:
            raise StoreError("the upload was dropped by the server before it was complete.", code="E_WRITE", shard=self._url)
        return stat.etag

    def abort(self) -> None:
        if self._id:
            self.drop({"uploadId": self._id})


class GoogleUpload(Upload):
    """A resumable session, which takes parts in their order; the last one says where the object ends.

    Source: cloud.google.com/storage/docs/performing-resumable-uploads
    """

    at_once: ClassVar[int] = 1
    absent: ClassVar[Mapping[str, str]] = {"ifGenerationMatch": "0"}
    accept: ClassVar[frozenset[int]] = WRITTEN | {_INCOMPLETE}
    _id = ""
    _sent = 0  # bytes that the server has
    _held = b""  # the last part: it may be the one that ends the object

    def whole(self, data: bytes) -> str | None:
        self.begin()
        self._held = data
        return self.complete([], len(data))

    def begin(self) -> None:
        with self.unless_taken():
            answer = self.call("POST", {"uploadType": "resumable", **self._condition})
        found = dict(parse_qsl(urlsplit(answer.headers.get("Location", "")).query))
        if "upload_id" not in found:
            raise StoreError("the server begins no upload.", code="E_WRITE", shard=self._url)
        self._id = found["upload_id"]

    def part(self, number: int, data: bytes) -> str:
        if self._held:
            self._append(self._held, "*")
        self._held = data
        return str(number)

    def complete(self, parts: list[str], size: int) -> str | None:
        with self.unless_taken():
            found = self._append(self._held, str(size))
        try:
            return Version.of_description(json.loads(found))[0].token(size)
        except ValueError:
            return self._store.stat(self._url).etag

    def _append(self, data: bytes, total: str) -> bytes:
        """What the server says once it has these bytes: nothing, or what the object is when they are its last."""
        end, asks = self._sent + len(data), False

        def once(stall: float) -> bytes:
            nonlocal asks
            if asks and (found := self._put(stall, b"", f"bytes */{total}")) is not None:
                return found
            asks = True  # the next time the server says first how much of it came
            while self._sent < end or total != "*":
                before, rest = self._sent, data[len(data) - (end - self._sent) :]
                where = f"{before}-{end - 1}/{total}" if rest else f"*/{total}"
                if (found := self._put(stall, rest, f"bytes {where}")) is not None:
                    return found
                if not end - len(data) <= self._sent <= end or self._sent == before:
                    raise RetryError(f"the server keeps {self._sent} bytes of {end}")
            return b""

        return self._store.persist(self._url, once, self._stop)

    def _put(self, stall: float, data: bytes, where: str) -> bytes | None:
        """Send bytes, or ask: what the object is when it is there; how much of it is, is in `_sent`."""
        answer = self.once(stall, "PUT", {"uploadType": "resumable", "upload_id": self._id}, data, {"Content-Range": where})
        if answer.status != _INCOMPLETE:
            return answer.text
        last = answer.headers.get("Range", "").rpartition("-")[2]
        self._sent = int(last) + 1 if last.isdecimal() else 0
        return None

    def abort(self) -> None:
        if self._id:
            self.drop({"uploadType": "resumable", "upload_id": self._id})


class AzureUpload(Upload):
    """Blocks and their list. Blocks that no list names are dropped by Azure after a week; nobody sees them."""

    def whole(self, data: bytes) -> str | None:
        return self.last("PUT", {}, data, {"x-ms-blob-type": "BlockBlob"}).headers.get("ETag")

    def part(self, number: int, data: bytes) -> str:
        name = base64.b64encode(f"{number:08d}".encode()).decode()
        self.call("PUT", {"comp": "block", "blockid": name}, data)
        return name

    def complete(self, parts: list[str], size: int) -> str | None:
        rows = "".join(f"<Latest>{name}</Latest>" for name in parts)
        body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{rows}</BlockList>'.encode()
        return self.last("PUT", {"comp": "blocklist"}, body).headers.get("ETag")
