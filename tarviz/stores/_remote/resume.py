"""A download that goes on where it broke, of the version that it began with, or says why it cannot."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import threading
from collections.abc import Callable
from http.client import HTTPException, IncompleteRead
from typing import Self, TypeVar

from urllib3 import BaseHTTPResponse, exceptions

from tarviz.model.config import Options
from tarviz.model.errors import ChangedError, NotFoundError, StoreError
from tarviz.model.types import URL
from tarviz.stores._remote.checksum import Checksum, promised
from tarviz.stores._remote.connections import excess, read_direct, release
from tarviz.stores._remote.version import CONTENT_RANGE, Version, total_of
from tarviz.stores._remote.wire import Wire, causes, refuse_flood
from tarviz.stores.base import Stat, Stream
from tarviz.stores.retry import Attempts, Pace, RetryError

_PIECE = 1 << 18
_XML_LIMIT = 1 << 16
_XML_ERROR = re.compile(rb"<Code>\s*(SlowDown|InternalError|ServiceUnavailable|RequestTimeout|ServerBusy|OperationAborted)\s*</Code>")

_Came = TypeVar("_Came", int | None, bytes)


class ResumingStream(Stream):
    """Bytes `start` to `stop` (None: the end; who reads wants no more) of an object; `connect` comes first.

    Another thread may close it before, too.
    """

    def __init__(self, wire: Wire, url: URL, start: int, stop: int | None, etag: str | None, options: Options) -> None:
        self._wire = wire
        self._url = url
        self._start = self.offset = start
        self._stop = stop
        self._pinned: Version | None = None
        self._size: int | None = None
        if etag:
            self._pinned, self._size = Version.named(etag)
        self._options = options
        self._pace = Pace(float(options.min_rate))
        self._version: Version | None = None
        self._query: dict[str, str] = {}
        self._sum: Checksum | None = None
        self._body_end: int | None = None
        self._delivered = hashlib.sha256()  # fed only where nothing else tells the version
        self._answer: BaseHTTPResponse | None = None
        self._pushed = b""
        self._ended = False
        self._line: socket.socket | None = None
        self._renew()

    def connect(self) -> Self:
        """Pin the version by a first answer."""
        self._guarded(memoryview(b""))
        version = self._version or Version()
        self.stat = Stat(self._url, self._size, version.token(self._size), version.mtime, self._ranges)
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
        return self._guarded(buffer)

    def close(self) -> None:
        if os.getpid() != self._owner:
            self._after_fork()
        self._closed.set()
        if self._busy.acquire(blocking=False):
            self._drop()
            self._busy.release()
        else:  # another thread reads: wake it, it lets go itself
            answer, line = self._answer, self._line
            with contextlib.suppress(OSError, ValueError, RuntimeError):  # already over
                if answer is not None:
                    answer.shutdown()
                elif line is not None:
                    socket.socket.shutdown(line, socket.SHUT_RDWR)  # not TLS's own, which is for the thread that reads

    def _after_fork(self) -> None:
        """The connection belongs to the parent: leave it alone and go on with one of our own."""
        closed = self._closed.is_set()
        self._answer, self._pushed = None, b""  # closes the copy of the descriptor, not the connection
        self._renew()
        if closed:
            self._closed.set()

    def _guarded(self, buffer: memoryview) -> int:
        with self._busy:
            try:
                return self._read(buffer)
            except BaseException:
                self._drop()
                raise
            finally:
                if self._closed.is_set():
                    self._drop()

    def _read(self, buffer: memoryview) -> int:
        """One piece; with an empty buffer, only the connection."""
        self._check_open()
        self._attempts.begin()
        while not self._is_done():
            try:
                if self._answer is None:
                    self._request()
                    continue
                if not len(buffer):
                    return 0
                count = self._piece(buffer)
            except RetryError as error:
                self._drop()
                self._check_open()
                self._attempts.failed(error, self.offset, reached=self._wire.reached(self._url))
                self._check_open()
                continue
            if count:
                self._check_open()  # closed meanwhile: what came before that is nobody's
                self._check_sum(buffer[:count])
                self.offset += count
                if self._version is not None and not self._version.known:
                    self._delivered.update(buffer[:count])
                self._attempts.progress()
                return count
        self._drop()
        return 0

    def drop(self) -> None:
        """Let go of the connection; the next read makes another."""
        with self._busy:
            self._drop()

    def passed(self, piece: memoryview) -> None:
        """Bytes that came another way from where this stream stands: it goes on after them, and holds them against the checksum."""
        self._check_sum(piece)
        self.offset += len(piece)

    def _check_sum(self, piece: memoryview) -> None:
        if self._sum is not None:
            self._sum.update(piece)
            if self.offset + len(piece) == self._size and not self._sum.is_right():
                what = f"the bytes that came do not have the {self._sum.name} checksum that the server sent with them."
                hint = "Read it again; if that fails too, the object is damaged where it is stored."
                raise StoreError(what, code="E_CORRUPT", shard=self._url, offset=self.offset, hint=hint)

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise StoreError("the stream is closed.", shard=self._url)

    def _is_done(self) -> bool:
        ends = (self._stop, None if self._version is None else self._size)
        return self._ended or any(end is not None and self.offset >= end for end in ends)

    def _drop(self) -> None:
        answer, self._answer, self._pushed = self._answer, None, b""
        if answer is not None:
            release(answer)

    def _piece(self, buffer: memoryview) -> int:
        """Bytes for the front of `buffer`: how many, none where the answer is over."""
        if count := self._take_into(buffer):
            return count
        if self._body_end is None:  # no length was promised: what came is all there is; the tar's end blocks tell more
            self._ended = True
        elif self.offset < self._body_end:
            raise RetryError(f"the connection was closed, {self._body_end - self.offset} bytes early", at_once=True)
        self._ended |= self._whole
        self._drop()
        return 0

    def _take_into(self, buffer: memoryview) -> int:
        answer = self._answer
        assert answer is not None
        if not self._pushed and (count := self._receive(lambda: read_direct(answer, buffer))) is not None:
            return count
        piece = self._take(min(len(buffer), _PIECE))
        buffer[: len(piece)] = piece
        return len(piece)

    def _take(self, length: int) -> bytes:
        if self._pushed:
            piece, self._pushed = self._pushed[:length], self._pushed[length:]
            return piece
        answer = self._answer
        assert answer is not None
        return self._receive(lambda: answer.read1(length)) or b""

    def _receive(self, receive: Callable[[], _Came]) -> _Came:
        """What comes next; `RetryError` for what may pass."""
        began = self._wire.clock.now()
        try:
            found = receive()
        except (exceptions.ReadTimeoutError, TimeoutError) as error:
            raise RetryError(f"no byte came for {self._options.stall_timeout:g} s", code="E_STALL", at_once=True) from error
        except (exceptions.HTTPError, HTTPException, OSError, ValueError) as error:
            if excess(error):
                where = f"byte {self._body_end}, where Content-Length ends it"
                raise StoreError(f"the body goes on after {where}.", code="E_LENGTH", shard=self._url, offset=self.offset) from error
            refuse_flood(error, self._url)
            early = any(isinstance(each, IncompleteRead) for each in causes(error))  # urllib3's is one too
            raise RetryError("the connection was closed early" if early else "the connection broke", at_once=True) from error
        if found is not None:
            self._pace.count(self._wire.clock.now() - began, found if isinstance(found, int) else len(found))
        return found

    def _request(self) -> None:
        version = self._version
        begin = self._start if version is not None and not version.known else self.offset
        headers = version.condition() if version is not None and version.known else {}
        if version is None and self._pinned is not None:
            headers = self._pinned.condition()
        if begin or self._stop is not None:
            # The last byte is part of the range: RFC 9110 §14.1.2
            headers["Range"] = f"bytes={begin}-{'' if self._stop is None else self._stop - 1}"
        try:
            self._answer = self._wire.send("GET", self._url, headers, self._options.stall_timeout, query=self._query, waits=self._waits)
        except (StoreError, NotFoundError) as error:
            if not self._query or error.code not in ("E_NOT_FOUND", "E_AUTH"):
                raise
            raise self._changed(Version()) from error  # the old version is not kept, or not for us
        finally:
            self._line = None
        self._accept(self._answer, begin)

    def _waits(self, line: socket.socket) -> None:
        """The answer is waited for on this socket: `close` may end that from here on."""
        self._line = line
        self._check_open()

    def _accept(self, answer: BaseHTTPResponse, begin: int) -> None:
        if answer.status == 412:
            raise self._replaced(Version.of(answer.headers))
        if answer.status == 416 or (answer.status == 206 and answer.headers.get("Content-Length") == "0"):
            self._past_end(answer, begin)
            return
        declared = answer.headers.get("Content-Length", "")
        length = int(declared) if declared.isdecimal() and answer.headers.get("Transfer-Encoding") is None else None
        first, size = 0, length
        self._whole = answer.status == 200
        if not self._whole:
            first, size = self._check_range(answer, begin, length)
        elif length is None or length <= _XML_LIMIT:
            self._check_xml()
        self._check_version(self._version_of(answer), size)
        if self.offset == 0 and self._whole and self._stop is None:
            self._sum = promised(answer.headers)
        self._ranges = not self._whole or answer.headers.get("Accept-Ranges", "").lower() == "bytes"
        self._skip(first)

    def _version_of(self, answer: BaseHTTPResponse) -> Version:
        """The version that an answer is of; where it does not say so, as answers of Google's emulators, what the server says just after."""
        version = Version.of(answer.headers)
        if version.known or not self._wire.access.described:
            return version
        version = self._head()[1]
        if self._pinned is None:  # no version comes back: where the one named before is named after, too, it is the one that was read
            self._pinned = version
            raise RetryError("the answer does not say which version it is of", at_once=True)
        return version

    def _replaced(self, now: Version) -> Exception:
        """What to raise where another version is there: the bucket may keep what was replaced."""
        if self._version is None or self._version.pin is None or self._query:
            return self._changed(now)
        self._query = dict([self._version.pin])
        return RetryError("the object was replaced", at_once=True)

    def _check_range(self, answer: BaseHTTPResponse, begin: int, length: int | None) -> tuple[int, int | None]:
        said = answer.headers.get("Content-Range", "")
        match = CONTENT_RANGE.fullmatch(said)
        last = None if self._stop is None else self._stop - 1
        if match is None or match[1] is None or int(match[1]) != begin or (last is not None and int(match[2]) > last):
            what = f"bytes {begin}-{'' if last is None else last}"
            raise StoreError(f"asked for {what}, the server sends {said or 'no Content-Range'}.", code="E_RANGE", shard=self._url)
        self._body_end = int(match[2]) + 1
        if length is not None and length != self._body_end - begin:
            raise StoreError(f"Content-Length {length} and Content-Range {said} differ.", code="E_LENGTH", shard=self._url)
        return begin, None if match[3] == "*" else int(match[3])

    def _check_xml(self) -> None:
        """An object store may answer 200 and then fail: the body is a short XML error then."""
        head = self._take(_XML_LIMIT)
        if head.lstrip()[:1] == b"<":
            while len(head) < _XML_LIMIT and (more := self._take(_XML_LIMIT - len(head))):
                head += more
            if found := _XML_ERROR.search(head):
                raise RetryError(f"the server answers 200 with the error {found[1].decode()}")
        self._pushed = head

    def _check_version(self, version: Version, size: int | None) -> None:
        """Pin the version with the first answer, hold every later one against it."""
        if self._version is None:
            if self._pinned is not None and not version.is_same(self._pinned):
                raise self._changed(version)
            self._version = version
        elif self._version.known and not self._version.is_same(version):
            raise self._replaced(version)
        if None not in (size, self._size) and size != self._size:
            raise self._changed(version, f"{self._size} bytes before, {size} now")
        self._size = size if self._size is None else self._size
        if self._whole:
            self._body_end = size

    def _skip(self, position: int) -> None:
        """Pass over what was delivered before; where nothing tells the version, compare it with what came then."""
        resumed = self.offset > self._start
        again = hashlib.sha256()
        clock = self._wire.clock
        if self._body_end is not None and self._body_end <= self.offset and not resumed:
            self._ended = True  # it begins after the end
            self._drop()
            return
        if self._body_end is not None and self._body_end < self.offset:
            raise self._changed(self._version or Version(), f"{self._body_end} bytes now")
        while position < self.offset:
            before = clock.now()
            piece = self._take(min(_PIECE, self.offset - position))
            if not piece:
                if self._body_end is None and not resumed:
                    self._ended = True
                    return
                raise RetryError("the connection was closed before new bytes came", at_once=True)
            again.update(piece[max(0, self._start - position) :])
            position += len(piece)
            self._attempts.excuse(clock.now() - before)
            self._check_open()
        if resumed and self._version is not None and not self._version.known and again.digest() != self._delivered.digest():
            raise self._changed(self._version, "the bytes before this place are others now")

    def _past_end(self, answer: BaseHTTPResponse, begin: int) -> None:
        """416: nothing lies at or after `begin`."""
        total, version = total_of(answer), Version.of(answer.headers)
        self._drop()
        if total is None:  # S3 does not say
            total, version = self._head()
        if total is None or total > begin:
            what = f"the server has no bytes from {begin} on, and of {total if total is not None else 'unknown'} in all"
            raise StoreError(f"{what}.", code="E_RANGE", shard=self._url)
        if self._version is None:
            if self._pinned is not None and version.known and not version.is_same(self._pinned):
                raise self._changed(version)
            self._version, self._size, self._ranges = version, total, True
        elif total < begin:
            raise self._changed(version, f"{total} bytes now")
        elif self._size is not None:
            what = f"the server promised {self._size} bytes and has {total}."
            raise StoreError(what, code="E_LENGTH", shard=self._url, offset=self.offset)
        self._ended = True

    def _changed(self, now: Version, why: str | None = None) -> ChangedError:
        before = self._version or self._pinned or Version()
        if why is None and now.etag is None and now.modified is None:
            with contextlib.suppress(RetryError, OSError):  # for the message alone
                now = self._wire.head(self._url, self._options.stall_timeout)[1]
        what = f"the object was replaced: {why or f'{before} before, {now} now'}."
        return ChangedError(what, shard=self._url, offset=self.offset, hint="Read it again from the beginning.")

    def _head(self) -> tuple[int | None, Version]:
        """Size and version of the object there now."""
        stat, version = self._wire.head(self._url, self._options.stall_timeout, self._query)
        return stat.size, version
