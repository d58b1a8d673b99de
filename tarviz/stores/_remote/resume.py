"""A download that goes on where it broke, of the version that it began with, or says why it cannot."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.client import HTTPException, IncompleteRead
from typing import Any, ClassVar, Self, TypeVar

from urllib3 import BaseHTTPResponse, exceptions

from tarviz.model.config import Options
from tarviz.model.errors import ChangedError, NotFoundError, StoreError
from tarviz.model.types import URL
from tarviz.stores._remote.checksum import Checksum, checksum_in
from tarviz.stores._remote.connections import excess, read_direct, release
from tarviz.stores._remote.version import CONTENT_RANGE, Version, total_of
from tarviz.stores._remote.wire import Wire, causes, refuse_flood
from tarviz.stores.base import Stat, Stream
from tarviz.stores.retry import Attempts, Pace, RetryError

_PIECE = 1 << 18
_XML_LIMIT = 1 << 16
_XML_ERROR = re.compile(rb"<Code>\s*(SlowDown|InternalError|ServiceUnavailable|RequestTimeout|ServerBusy|OperationAborted)\s*</Code>")

_Came = TypeVar("_Came", int | None, bytes)


@dataclass(frozen=True, slots=True)
class Sought:
    """No answer was taken yet. The first must be of this version and size, where the caller names them."""

    version: Version | None = None
    size: int | None = None
    query: ClassVar[dict[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Pinned:
    """An answer told the version that all must be of. `query` asks for just this one, once the object was replaced."""

    version: Version
    size: int | None
    ranges: bool
    query: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unproven(Pinned):
    """No answer tells versions apart: each begins where the first did, and is held against the hash of what was delivered."""

    delivered: Any = field(default_factory=hashlib.sha256)


@dataclass(slots=True, eq=False)
class Open:
    """The bytes of an answer come, up to byte `end` of the object where that is known; `pushed` were looked at already."""

    answer: BaseHTTPResponse
    end: int | None = None
    pushed: bytes = b""


class ResumingStream(Stream):
    """Bytes `start` to `stop` (None: the end; who reads wants no more) of an object; `connect` comes first, or another thread's `close`."""

    def __init__(self, wire: Wire, url: URL, start: int, stop: int | None, etag: str | None, options: Options) -> None:
        self._wire = wire
        self._url = url
        self._start = self.offset = start
        self._stop = stop
        self._end = float("inf") if stop is None else stop  # where it is over, as far as is known
        self._options = options
        self._pace = Pace(float(options.min_rate))
        self._sum: Checksum | None = None
        self._known: Sought | Pinned = Sought(*Version.of_token(etag)) if etag else Sought()
        self._body: Open | socket.socket | None = None  # a socket: the answer is waited for on it; None: nothing was asked for
        self._renew()

    def connect(self) -> Self:
        """Pin the version by a first answer."""
        self.readinto(memoryview(b""))
        known = self._known
        assert isinstance(known, Pinned)
        self.stat = Stat(self._url, known.size, known.version.token(known.size), known.version.mtime, known.ranges)
        return self

    def _renew(self) -> None:
        """Locks and counters of this process."""
        self._owner = os.getpid()
        self._busy = threading.Lock()
        self._closed = threading.Event()
        self._attempts = Attempts(self._url, self._options.retry_timeout, self._wire.clock, self._closed)

    def readinto(self, buffer: memoryview, /) -> int:
        if os.getpid() != self._owner:
            self._after_fork()
        with self._busy:
            try:
                return self._read(buffer)
            except BaseException:
                self._drop()
                raise
            finally:
                if self._closed.is_set():
                    self._drop()

    def close(self) -> None:
        if os.getpid() != self._owner:
            self._after_fork()
        self._closed.set()
        if self._busy.acquire(blocking=False):
            self._drop()
            self._busy.release()
        else:  # another thread reads: wake it, it lets go itself
            with contextlib.suppress(OSError, ValueError, RuntimeError):  # already over
                match self._body:
                    case Open(answer):
                        answer.shutdown()
                    case socket.socket() as line:
                        socket.socket.shutdown(line, socket.SHUT_RDWR)  # not TLS's own, which is for the thread that reads

    def _after_fork(self) -> None:
        """The connection belongs to the parent: leave it alone and go on with one of our own."""
        closed = self._closed.is_set()
        self._body = None  # closes the copy of the descriptor, not the connection
        self._renew()
        if closed:
            self._closed.set()

    def _read(self, buffer: memoryview) -> int:
        """One piece; with an empty buffer, only the connection."""
        self._check_open()
        self._attempts.begin()
        while self.offset < self._end:
            try:
                match self._body:
                    case Open() if not len(buffer):
                        return 0
                    case Open() as body:
                        count = self._piece(body, buffer)
                    case _:
                        self._request()
                        continue
            except RetryError as error:
                self._drop()
                self._check_open()
                self._attempts.fail(error, self.offset, reached=self._wire.has_answered(self._url))
                self._check_open()
                continue
            if count:
                self._check_open()  # closed meanwhile: what came before that is nobody's
                self.advance(buffer[:count])
                if isinstance(self._known, Unproven):
                    self._known.delivered.update(buffer[:count])
                self._attempts.progress()
                return count
        self._drop()
        return 0

    def drop(self) -> None:
        """Let go of the connection; the next read makes another."""
        with self._busy:
            self._drop()

    def advance(self, piece: memoryview) -> None:
        """Bytes that came another way from where this stream stands: it goes on after them, and holds them against the checksum."""
        if self._sum is not None:
            self._sum.update(piece)
            if self.offset + len(piece) == self._known.size and not self._sum.is_right():
                what = f"the bytes that came do not have the {self._sum.name} checksum that the server sent with them."
                hint = "Read it again; if that fails too, the object is damaged where it is stored."
                raise StoreError(what, code="E_CORRUPT", shard=self._url, offset=self.offset, hint=hint)
        self.offset += len(piece)

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise StoreError("the stream is closed.", shard=self._url)

    def _drop(self) -> None:
        body, self._body = self._body, None
        if isinstance(body, Open):
            release(body.answer)

    def _piece(self, body: Open, buffer: memoryview) -> int:
        """Bytes for the front of `buffer`: how many, none where the answer is over."""
        count = None if body.pushed else self._receive(body, lambda answer: read_direct(answer, buffer))
        if count is None:
            piece = self._take(body, min(len(buffer), _PIECE))
            count = len(piece)
            buffer[:count] = piece
        if not count:
            if body.end is None:  # no length was promised: what came is all there is; the tar's end blocks tell more
                self._end = self.offset
            elif self.offset < body.end:
                raise RetryError(f"the connection was closed, {body.end - self.offset} bytes early", at_once=True)
            self._drop()
        return count

    def _take(self, body: Open, length: int) -> bytes:
        if body.pushed:
            piece, body.pushed = body.pushed[:length], body.pushed[length:]
            return piece
        return self._receive(body, lambda answer: answer.read1(length)) or b""

    def _receive(self, body: Open, receive: Callable[[BaseHTTPResponse], _Came]) -> _Came:
        """What comes next; `RetryError` for what may pass."""
        began = self._wire.clock.now()
        try:
            found = receive(body.answer)
        except (exceptions.ReadTimeoutError, TimeoutError) as error:
            raise RetryError(f"no byte came for {self._options.stall_timeout:g} s", code="E_STALL", at_once=True) from error
        except (exceptions.HTTPError, HTTPException, OSError, ValueError) as error:
            if excess(error):
                where = f"byte {body.end}, where Content-Length ends it"
                raise StoreError(f"the body goes on after {where}.", code="E_LENGTH", shard=self._url, offset=self.offset) from error
            refuse_flood(error, self._url)
            early = any(isinstance(each, IncompleteRead) for each in causes(error))  # urllib3's is one too
            raise RetryError("the connection was closed early" if early else "the connection broke", at_once=True) from error
        if found is not None:
            self._pace.count(self._wire.clock.now() - began, found if isinstance(found, int) else len(found))
        return found

    def _request(self) -> None:
        known = self._known
        begin = self._start if isinstance(known, Unproven) else self.offset
        headers = known.version.condition() if known.version is not None and known.version.known else {}
        if begin or self._stop is not None:  # the last byte is part of the range: RFC 9110 §14.1.2
            headers["Range"] = f"bytes={begin}-{'' if self._stop is None else self._stop - 1}"
        try:
            answer = self._wire.send("GET", self._url, headers, self._options.stall_timeout, query=known.query, waits=self._waits)
        except (StoreError, NotFoundError) as error:
            if not known.query or error.code not in ("E_NOT_FOUND", "E_AUTH"):
                raise
            raise self._change_error(Version()) from error  # the old version is not kept, or not for us
        self._body = Open(answer)
        self._accept(self._body, begin)

    def _waits(self, line: socket.socket) -> None:
        """The answer is waited for on this socket: `close` may end that from here on."""
        self._body = line
        self._check_open()

    def _accept(self, body: Open, begin: int) -> None:
        answer, whole = body.answer, body.answer.status == 200
        if answer.status == 412:
            raise self._replacement_error(Version.of(answer.headers))
        if answer.status == 416 or (answer.status == 206 and answer.headers.get("Content-Length") == "0"):
            self._past_end(answer, begin)
            return
        declared = answer.headers.get("Content-Length", "")
        length = int(declared) if declared.isdecimal() and answer.headers.get("Transfer-Encoding") is None else None
        if whole:
            first, size, body.end = 0, length, length
            if length is None or length <= _XML_LIMIT:
                self._check_xml(body)
        else:
            first, size = begin, self._check_range(body, begin, length)
        self._pin(self._version_of(answer), size, ranges=not whole or answer.headers.get("Accept-Ranges", "").lower() == "bytes")
        if self.offset == 0 and whole and self._stop is None:
            self._sum = checksum_in(answer.headers)
        self._skip(body, first)

    def _version_of(self, answer: BaseHTTPResponse) -> Version:
        """The version that an answer is of; where it does not say so, as answers of Google's emulators, what the server says just after."""
        version = Version.of(answer.headers)
        if not version.known and self._wire.access.described:
            version = self._wire.head(self._url, self._options.stall_timeout, self._known.query)[1]
            if self._known == Sought():  # no version comes back: the one that is named before and after is the one that was read
                self._known = Sought(version)
                raise RetryError("the answer does not say which version it is of", at_once=True)
        return version

    def _replacement_error(self, now: Version) -> Exception:
        """What to raise where another version is there: the bucket may keep what was replaced."""
        match self._known:
            case Pinned(Version(pin=(name, value))) as known if not known.query:
                self._known = replace(known, query={name: value})
                return RetryError("the object was replaced", at_once=True)
        return self._change_error(now)

    def _check_range(self, body: Open, begin: int, length: int | None) -> int | None:
        """The size of the object, where the answer tells it; its part is the one that was asked for."""
        said = body.answer.headers.get("Content-Range", "")
        match = CONTENT_RANGE.fullmatch(said)
        stop = float("inf") if self._stop is None else self._stop
        if match is None or match[1] is None or int(match[1]) != begin or not begin <= int(match[2]) < stop:
            what = f"bytes {begin}-{'' if self._stop is None else self._stop - 1}"
            raise StoreError(f"asked for {what}, the server sends {said or 'no Content-Range'}.", code="E_RANGE", shard=self._url)
        body.end = int(match[2]) + 1
        if length is not None and length != body.end - begin:
            raise StoreError(f"Content-Length {length} and Content-Range {said} differ.", code="E_LENGTH", shard=self._url)
        return None if match[3] == "*" else int(match[3])

    def _check_xml(self, body: Open) -> None:
        """An object store may answer 200 and then fail: the body is a short XML error then."""
        head = self._take(body, _XML_LIMIT)
        if head.lstrip()[:1] == b"<":
            while len(head) < _XML_LIMIT and (more := self._take(body, _XML_LIMIT - len(head))):
                head += more
            if found := _XML_ERROR.search(head):
                raise RetryError(f"the server answers 200 with the error {found[1].decode()}")
        body.pushed = head

    def _pin(self, version: Version, size: int | None, *, ranges: bool) -> None:
        """Pin the version with the first answer, hold every later one against it."""
        known = self._known
        match known:
            case Sought(Version() as named) if not version.is_same(named):
                raise self._change_error(version)
            case Pinned(pinned) if pinned.known and not pinned.is_same(version):
                raise self._replacement_error(version)
        if None not in (size, known.size) and size != known.size:
            raise self._change_error(version, f"{known.size} bytes before, {size} now")
        if isinstance(known, Sought):
            known = (Pinned if version.known else Unproven)(version, known.size, ranges)
        self._known = replace(known, size=known.size if size is None else size, ranges=ranges)
        self._end = self._end if self._known.size is None else min(self._end, self._known.size)

    def _skip(self, body: Open, position: int) -> None:
        """Pass over what was delivered before; where nothing tells the version, compare it with what came then."""
        resumed = self.offset > self._start
        again = hashlib.sha256()
        if self.offset >= self._end and not resumed:
            return  # it begins after the end
        if body.end is not None and body.end < self.offset:
            raise self._change_error(Version(), f"{body.end} bytes now")
        while position < self.offset:
            before = self._wire.clock.now()
            piece = self._take(body, min(_PIECE, self.offset - position))
            if not piece:
                if body.end is None and not resumed:
                    self._end = self.offset
                    return
                raise RetryError("the connection was closed before new bytes came", at_once=True)
            again.update(piece[max(0, self._start - position) :])
            position += len(piece)
            self._attempts.excuse(self._wire.clock.now() - before)
            self._check_open()
        if isinstance(self._known, Unproven) and again.digest() != self._known.delivered.digest():
            raise self._change_error(self._known.version, "the bytes before this place are others now")

    def _past_end(self, answer: BaseHTTPResponse, begin: int) -> None:
        """416: nothing lies at or after `begin`."""
        total, version = total_of(answer), Version.of(answer.headers)
        self._drop()
        if total is None:  # S3 does not say
            stat, version = self._wire.head(self._url, self._options.stall_timeout, self._known.query)
            total = stat.size
        if total is None or total > begin:
            what = f"the server has no bytes from {begin} on, and of {total if total is not None else 'unknown'} in all"
            raise StoreError(f"{what}.", code="E_RANGE", shard=self._url)
        match self._known:
            case Sought(Version() as named) if version.known and not version.is_same(named):
                raise self._change_error(version)
            case Sought():
                self._known = Pinned(version, total, ranges=True)
            case Pinned() if total < begin:
                raise self._change_error(version, f"{total} bytes now")
            case Pinned(size=int(size)):
                what = f"the server promised {size} bytes and has {total}."
                raise StoreError(what, code="E_LENGTH", shard=self._url, offset=self.offset)
        self._end = self.offset

    def _change_error(self, now: Version, why: str | None = None) -> ChangedError:
        before = self._known.version or Version()
        if why is None and now.etag is None and now.modified is None:
            with contextlib.suppress(RetryError, OSError):  # for the message alone
                now = self._wire.head(self._url, self._options.stall_timeout)[1]
        what = f"the object was replaced: {why or f'{before} before, {now} now'}."
        return ChangedError(what, shard=self._url, offset=self.offset, hint="Read it again from the beginning.")
