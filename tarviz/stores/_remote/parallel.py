"""One object over several connections: once one turns out to be the limit, the parts ahead are fetched side by side."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from tarviz.model.errors import StoreError
from tarviz.stores._remote.resume import ResumingStream
from tarviz.stores.base import Stream, fill
from tarviz.stores.retry import Clock

TRIAL = 8 << 20  # bytes of the first connection after which it is judged
PART = 8 << 20  # bytes of a later request; one more than there are connections are held
_LIMITED = 0.5  # share of the time spent waiting for bytes from which on the connection is the limit
_WORTH = 4  # parts left from which on more connections pay


class ParallelStream(Stream):
    """A `ResumingStream` that goes over to up to `count` connections where its reader waits for bytes most of the time.

    `part(start, stop)` makes the stream of a range of the same version. Every part resumes, and is held against version and length, as
    the whole is; the bytes come in order, and what the server promised of their checksum is kept. A
    server without ranges, or one that names no version, is read by the one connection.
    """

    def __init__(self, first: ResumingStream, part: Callable[[int, int], ResumingStream], count: int, clock: Clock) -> None:
        self.stat = first.stat
        self.offset = first.offset
        self._first = first
        self._open_part = part
        self._count = count
        self._clock = clock
        self._owner = os.getpid()
        self._waited = 0.0
        self._began = clock.now()
        self._start = self._next = first.offset  # where the first part of all began, and where the next to be asked for does
        self._ahead: deque[Future[memoryview]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._piece = memoryview(b"")
        self._lock = threading.Lock()
        self._parts: set[ResumingStream] = set()
        self._closed = False
        self._end: Future[memoryview] = Future()  # done once it is closed: a reader waits for a part or for this

    def readinto(self, buffer: memoryview, /) -> int:
        if os.getpid() != self._owner:
            self._pool = None  # threads stay with the parent: go on with a connection of our own
        if self._pool is None and self._pays():
            self._spread()
        if self._pool is not None:
            return self._take(buffer)
        began = self._clock.now()
        count = self._first.readinto(buffer)
        self._waited += self._clock.now() - began
        self.offset = self._first.offset
        return count

    def _pays(self) -> bool:
        read, size = self.offset - self._start, self.stat.size
        if read < TRIAL or size is None or size - self.offset < _WORTH * PART or not (self.stat.ranges and self.stat.etag):
            return False
        if os.getpid() != self._owner or self._closed:
            return False
        return self._waited >= _LIMITED * (self._clock.now() - self._began)

    def _spread(self) -> None:
        """Let go of the one connection and begin with several."""
        self._first.drop()
        self._next = self.offset
        self._pool = ThreadPoolExecutor(self._count, thread_name_prefix="tarviz-part")
        for _ in range(self._count + 1):
            self._ask()

    def _ask(self) -> None:
        assert self._pool is not None and self.stat.size is not None
        if self._next < self.stat.size:
            stop = min(self._next + PART, self.stat.size)
            try:
                self._ahead.append(self._pool.submit(self._fetch, self._next, stop))
            except RuntimeError:  # shut down by `close` in another thread
                self._check_open()
                raise
            self._next = stop

    def _fetch(self, start: int, stop: int) -> memoryview:
        part, data = self._open_part(start, stop), memoryview(bytearray(stop - start))
        try:
            self._begin(part)
            with part.connect():
                if fill(part, data) < len(data):
                    what = f"the server promised {self.stat.size} bytes and ends at {part.offset}."
                    raise StoreError(what, code="E_LENGTH", shard=self.stat.url, offset=part.offset)
        finally:
            with self._lock:
                self._parts.discard(part)
        return data

    def _begin(self, part: ResumingStream) -> None:
        """A part is about to connect: from here on `close` reaches it."""
        with self._lock:
            self._parts.add(part)
        self._check_open()

    def _take(self, buffer: memoryview) -> int:
        self._check_open()
        if not len(buffer):
            return 0
        if not len(self._piece):
            if not self._ahead:
                return 0
            part = self._ahead.popleft()
            wait((part, self._end), return_when=FIRST_COMPLETED)
            self._check_open()
            self._piece = part.result()
            self._ask()
        piece, self._piece = self._piece[: len(buffer)], self._piece[len(buffer) :]
        self._first.advance(piece)
        buffer[: len(piece)] = piece
        self.offset += len(piece)
        return len(piece)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the stream is closed.", shard=self.stat.url)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._end.set_result(memoryview(b""))
        self._first.close()
        if self._pool is None or os.getpid() != self._owner:
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            parts = list(self._parts)
        for part in parts:
            part.close()  # wakes its thread, unless no server has taken the connection yet; that one ends by itself
