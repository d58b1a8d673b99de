"""Buffers of a source's bytes, one read ahead by a thread while the one before is worked on.

What the reader did not use up of a buffer (the record that is open at its end) is copied in front of the next one,
into room kept free there; nothing else is copied.
"""

from __future__ import annotations

import io
import mmap
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeAlias

import numpy as np

from tarviz.formats.compression import ByteSource
from tarviz.model.errors import UsageError

FIRST = 256 << 10  # bytes of the first buffer, small so that the first record comes soon
HEADROOM = 512 << 10  # room in front of a buffer that is read ahead
_SPARE = 8  # buffers the process keeps
_SPARE_BYTES = 36 << 20  # … and their bytes: what one stream from far away needs at a time
_LARGEST_SPARE = 9 << 20
MOVED = 4 << 20  # bytes of a payload from which `take_bytes` moves it, and that are there twice meanwhile

Memory: TypeAlias = bytearray | memoryview

_spare: list[bytearray] = []
_lock = threading.Lock()


def _after_fork() -> None:
    """A forked child may have the lock of a thread that it does not have."""
    global _lock
    _lock = threading.Lock()
    _spare.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _take(size: int) -> Memory:
    """Memory of `size` bytes; a spare buffer that nobody refers to any more is used again.

    Fresh memory costs a page fault every 4 KiB, which is as much as reading into it. A large piece is not set to zero, as a
    bytearray is: the system gives it page by page, when something is written there.
    """
    if size > _LARGEST_SPARE:
        return memoryview(_map_memory(size))
    with _lock:
        for at in range(len(_spare)):
            if len(_spare[at]) == size and sys.getrefcount(_spare[at]) == 2:  # the list's and the call's
                return _spare.pop(at)
    return bytearray(size)


def _map_memory(size: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sys.platform == "linux" and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel built without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def take_bytes(payload: memoryview) -> bytes:
    """A payload as bytes of its own, for who alone has its record: a large one is moved, and nobody may look at it again.

    The pages it was read into go back to the system as they are copied, so that it is never there twice.
    """
    memory = payload.obj
    if len(payload) < MOVED or not isinstance(memory, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return bytes(payload)
    begin = _address(payload) - _address(memory)
    out, place = io.BytesIO(), begin  # it grows in place, and hands its bytes out without a copy
    while place < begin + len(payload):
        stop = min(place // MOVED * MOVED + MOVED, begin + len(payload))
        out.write(payload[place - begin : stop - begin])
        first, last = -(-place // mmap.PAGESIZE) * mmap.PAGESIZE, stop // mmap.PAGESIZE * mmap.PAGESIZE
        if first < last:
            memory.madvise(mmap.MADV_DONTNEED, first, last - first)
        place = stop
    return out.getvalue()


def _address(memory: memoryview | mmap.mmap) -> int:
    return int(np.frombuffer(memory, np.uint8).__array_interface__["data"][0])


def _give(buffer: Memory) -> None:
    """Keep a buffer for a later `_take`; while records of it are held it only waits."""
    if isinstance(buffer, bytearray):
        with _lock:
            _spare.append(buffer)
            while len(_spare) > _SPARE or sum(map(len, _spare)) > _SPARE_BYTES:
                del _spare[0]


class Feed:
    """Hands out the bytes of `source`, front to back, in pieces of about `size` bytes.

    `final` is set when nothing more will come, `broken` to the error the source ended with. `interrupt` is called
    by `close` to end a read that another thread waits in. `ahead`: read the next piece while the present one is
    worked on; worth a thread where bytes come over a network or are inflated, not where they lie in memory already.
    """

    def __init__(self, source: ByteSource, size: int, interrupt: Callable[[], None] | None = None, *, ahead: bool = True) -> None:
        self.final = False
        self.broken: Exception | None = None
        self.bytes = 0
        self._source = source
        self._size = size
        self._interrupt = interrupt
        self._pieces = 0
        self._wants_ahead = ahead
        self._reader: _FillThread | None = None
        self._ahead: Memory | None = None  # what the reader fills
        self._present = memoryview(b"")

    def fit(self, size: int) -> None:
        """Hand out pieces of this size from now on; those that are read ahead keep theirs, which the line decides."""
        if not self._wants_ahead:
            self._size = size

    def more(self, keep: int = 0, need: int = 0) -> memoryview:
        """The last `keep` bytes of the piece before and what comes after them, `need` bytes at least unless the source ends. Read-only.

        The caller lets go of the piece before, so that its memory is free again.
        """
        self._pieces += 1
        carry, self._present = self._present[len(self._present) - keep :], memoryview(b"")
        if self._ahead is None:
            size = self._length(self._pieces)
            buffer, begin, end = self._move(carry, size, need), 0, keep
        else:
            assert self._reader is not None
            count, error = self._reader.wait()
            buffer, self._ahead = self._ahead, None  # not before: `close` has to know that a read is under way
            self._note_end(count < self._length(self._pieces), error)
            self.bytes += count
            begin, end = HEADROOM - keep, HEADROOM + count
            if begin >= 0:
                memoryview(buffer)[begin:HEADROOM] = carry
            else:
                piece, buffer = buffer, self._move(carry, count + self._size, need)
                memoryview(buffer)[keep : keep + count] = memoryview(piece)[HEADROOM:end]
                begin, end = 0, keep + count
                _give(piece)
                del piece
        del carry
        if begin == 0:
            end += self._fill(buffer, end)
        while end - begin < need and not self.final:
            present = memoryview(buffer)[begin:end]
            _give(buffer)
            buffer = self._move(present, self._size, need)
            begin, end = 0, len(present)
            del present
            end += self._fill(buffer, end)
        view = memoryview(buffer)[begin:end].toreadonly()
        _give(buffer)
        self._present = view
        if self._wants_ahead and self._pieces > 1 and not self.final:
            if self._reader is None:
                self._reader = _FillThread(self._source)
            self._ahead = _take(HEADROOM + self._size)
            self._reader.ask(memoryview(self._ahead)[HEADROOM:][: self._length(self._pieces + 1)])
        return view

    def _length(self, number: int) -> int:
        """Bytes of a piece, the first of which has number 1; those read ahead grow by steps, for over a line each takes its time."""
        if number > 1 and not self._wants_ahead:
            return self._size
        return min(self._size, FIRST << min(2 * (number - 1), 20))

    @staticmethod
    def _move(begin: memoryview, size: int, need: int) -> Memory:
        """A buffer that begins with these bytes and has room for `size` more at least, and beyond `need`.

        A large record grows by halves of what it needs: what a header promises is not allocated before half of it is there, and at
        no time do the bytes that are moved and those they are moved to take more than the record will.
        """
        # Room after what is needed: the header there says that the record is whole, and it should not be moved for that.
        room = size if need <= size and 2 * len(begin) <= size else max(len(begin), need) + size
        while room > 2 * (len(begin) + size):
            room = -(-room // 2)
        buffer = _take(-(-room // 512) * 512)
        memoryview(buffer)[: len(begin)] = begin  # of the buffer itself: a bytearray would copy what it is given first
        return buffer

    def _fill(self, buffer: Memory, at: int) -> int:
        if self.final or at == len(buffer):
            return 0
        count, error = _read(self._source, memoryview(buffer)[at:])
        self._note_end(count < len(buffer) - at, error)
        self.bytes += count
        return count

    def _note_end(self, short: bool, error: Exception | None) -> None:
        if error is not None:
            self.broken = error
        self.final = self.final or short or error is not None

    def close(self) -> None:
        """End a read that is under way and let go of the source."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.leave(None if self._ahead is None else self._interrupt)
        self._ahead = None

    def __del__(self) -> None:
        if self._reader is not None:
            self._reader.end()


def _read(source: ByteSource, view: memoryview) -> tuple[int, Exception | None]:
    """Fill `view`: the number of bytes, fewer only at the end, and the error that cut it short."""
    done = 0
    try:
        while done < len(view) and (count := source.readinto(view[done:])):
            done += count
    except Exception as error:  # noqa: BLE001  (handed to the reader, who raises it in its own thread)
        return done, error
    return done, None


class _FillThread:
    """A thread that fills the buffers it is asked to, one at a time, until it is told to end."""

    def __init__(self, source: ByteSource) -> None:
        self._asked: SimpleQueue[memoryview | None] = SimpleQueue()
        self._found: SimpleQueue[tuple[int, Exception | None]] = SimpleQueue()
        self._owner = os.getpid()
        # A daemon: a read from a pipe that never ends must not keep the process alive.
        self._thread = threading.Thread(target=_serve, args=(source, self._asked, self._found), name="tarviz-read", daemon=True)
        self._thread.start()

    def ask(self, view: memoryview) -> None:
        self._asked.put(view)

    def wait(self) -> tuple[int, Exception | None]:
        """How many bytes came, and the error that cut them short."""
        if os.getpid() != self._owner and self._found.empty():  # the thread stayed with the parent
            return 0, UsageError("this process was forked in the middle of a shard.", hint="Open the shard in the new process.")
        return self._found.get()

    def leave(self, interrupt: Callable[[], None] | None) -> None:
        """End the thread, and before that, by `interrupt`, a read that it waits in."""
        if interrupt is not None and self._thread.is_alive() and self._found.empty():
            with suppress(OSError):
                interrupt()
        self.end()
        self._thread.join(1.0)

    def end(self) -> None:
        self._asked.put(None)


def _serve(source: ByteSource, asked: SimpleQueue[memoryview | None], found: SimpleQueue[tuple[int, Exception | None]]) -> None:
    while (view := asked.get()) is not None:
        answer = _read(source, view)
        del view  # the memory is free for others as soon as nobody else has it
        found.put(answer)
        del answer
