"""What a store, a stream and a sink are: the protocols every file of this folder fulfils."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Protocol, Self, runtime_checkable

from tarviz.model.errors import NotFoundError, StoreError, TarvizError
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL, Buffer

READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)  # no descriptor is inherited: PEP 446

_turn = threading.Lock()
_PIECE = 1 << 20
_AT_ONCE = 16 << 20  # so that an interrupt is not kept waiting
_REFUSED = (errno.EXDEV, errno.EINVAL, errno.EBADF, errno.ENOSYS, errno.EOPNOTSUPP, errno.ETXTBSY, errno.EPERM)


@dataclass(frozen=True, slots=True)
class Stat:
    """What a store knows about one object.

    `size` in bytes, `mtime` in seconds since 1970; None where the store does not tell. `etag` names this
    version of the object: equal etags mean equal bytes. `ranges`: a part can be read without the rest.
    """

    url: URL
    size: int | None = None
    etag: str | None = None
    mtime: float | None = None
    ranges: bool = True

    __repr__ = redacted_repr


class Stream(Protocol):
    """The bytes of one object from an offset to its end, in order, as stored (never decompressed).

    One thread reads; another may `close` meanwhile, which ends the read with `StoreError`. `stat` is what
    was known when the object was opened; `offset` the object's byte that comes next.
    """

    stat: Stat
    offset: int

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the front of `buffer`: the number of bytes, 1 at least, or 0 at the end of the object.

        `StoreError` when it cannot go on, `ChangedError` when the object is no longer the one opened.
        """

    def close(self) -> None:
        """Let go of file and socket at once, read to the end or not. Closing twice does nothing.

        A connection whose answer was read to its end may serve the store's next request.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Whole(Protocol):
    """Something that is made whole or not at all: as a context manager it commits at the end, and aborts when an exception passes."""

    def commit(self) -> object:
        """Complete it, so that it is seen."""

    def abort(self) -> None:
        """Drop it; nothing of it is seen."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self.abort()
            return
        try:
            self.commit()
        except BaseException:
            self.abort()
            raise


class Sink(Whole, Protocol):
    """A streamed write of one object. Nothing has the final name before `commit`, then all of it has."""

    def write(self, data: Buffer, /) -> None:
        """Append all of `data`."""

    def writev(self, pieces: Sequence[Buffer], /) -> None:
        """Append the pieces one after the other."""
        for piece in pieces:
            self.write(piece)

    def send(self, fd: int, offset: int, count: int, /) -> int:
        """Append `count` bytes of the open file `fd` from byte `offset` on, as fast as can be; its position stays.

        The number of bytes there were: fewer only where that file ends.
        """
        done = 0
        while done < count and (data := read_at(fd, min(count - done, _PIECE), offset + done)):
            self.write(data)
            done += len(data)
        return done

    def commit(self) -> Stat:
        """Make the object visible under its name; what was there is replaced, unless `create` said otherwise. The second call changes
        nothing."""

    def abort(self) -> None:
        """Drop what was written. Does nothing after `commit`."""


class OneSink(Sink):
    """What sinks share: `complete` makes the object and `discard` drops what was written, one of them, once."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self._over = False
        self._made: Stat | None = None

    def complete(self) -> Stat:
        """Make the object visible under its name; what is raised aborts the write."""
        raise NotImplementedError

    def discard(self) -> None:
        """Drop what was written."""

    def check_open(self) -> None:
        """`E_WRITE` where it is committed or aborted."""
        if self._over:
            raise StoreError("the write is already committed or aborted.", shard=self.url, code="E_WRITE")

    def commit(self) -> Stat:
        if self._made is None:
            self.check_open()
            try:
                self._made = self.complete()
            except BaseException:
                self.abort()
                raise
            self._over = True
        return self._made

    def abort(self) -> None:
        if not self._over:
            self._over = True
            self.discard()


class errors_as(AbstractContextManager[None]):  # noqa: N801  (used like a function)
    """What a library raises as `translate(error, *told)` has it; what that gives None for, and our own errors, stay as they are."""

    def __init__(self, translate: Callable[..., Exception | None], *told: str) -> None:
        self._translate, self._told = translate, told

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, TarvizError) and (ours := self._translate(error, *self._told)):
            raise ours from error


@runtime_checkable
class Store(Protocol):
    """Reads, lists and writes the objects of one URL scheme. Threads may share it; it pickles.

    `lists`: the store can list a folder. `writes`: it can create and delete. `selects`: braces of a template
    pick among the objects a listing shows, instead of naming objects that all must exist. One that sets `remote` too has what is
    read of it kept on this machine, where the option `shard_cache` asks for that.
    """

    lists: ClassVar[bool] = True
    writes: ClassVar[bool] = True
    selects: ClassVar[bool] = False

    def stat(self, url: URL) -> Stat:
        """Size and version of an object. `NotFoundError` when there is none."""

    def open(self, url: URL, *, offset: int = 0, etag: str | None = None) -> Stream:
        """A stream from byte `offset` on. `ChangedError` when `etag` is given and the object has another."""

    def read(self, url: URL, offset: int, length: int, *, etag: str | None = None) -> bytes:
        """`length` bytes from byte `offset`; fewer only where the object ends. `ChangedError` as in `open`."""

    def list(self, url: URL) -> Iterator[Stat]:
        """The objects that lie directly in a folder, sorted by name (code points). `NotFoundError` without a folder."""

    def walk(self, url: URL) -> Iterator[Stat]:
        """The objects whose URLs begin with `url`, however deep they lie, sorted by name; that there are none is no error.

        A store that shows one folder at a time gives those that lie directly in the folder.
        """
        folder = URL(url[: url.rindex("/") + 1])
        return (stat for stat in self.list(folder) if stat.url.startswith(url))

    def create(self, url: URL, *, replace: bool = True) -> Sink:
        """A sink for an object that exists, whole, once it is committed. Parent folders are made.

        With `replace=False` its `commit` raises `E_EXISTS` where an object has the name by then, and leaves that one alone.
        """

    def delete(self, url: URL) -> None:
        """Remove an object. `NotFoundError` when there is none."""


def refuse_taken(store: Store, url: URL) -> None:
    """`E_EXISTS` where an object has the name now: for stores that know no write under a condition, just before a commit."""
    if is_there(store, url):
        raise already_there(url)


def is_there(store: Store, url: URL) -> bool:
    """Whether an object has the name now."""
    try:
        store.stat(url)
    except NotFoundError:
        return False
    return True


def already_there(url: URL) -> StoreError:
    """The error of a write that replaces nothing, under a name that an object has."""
    what = "an object of that name is there, perhaps of another run; it was left alone."
    return StoreError(what, code="E_EXISTS", shard=url, hint="Choose another name, or exists='replace'.")


def read_at(fd: int, count: int, offset: int) -> bytes:
    """`count` bytes of a file from `offset` on; fewer only where it ends."""
    data = _read_once(fd, count, offset)
    while 0 < len(data) < count and (more := _read_once(fd, count - len(data), offset + len(data))):
        data += more
    return data


def _read_once(fd: int, count: int, offset: int) -> bytes:
    """As `os.pread`, which Windows has not."""
    if hasattr(os, "pread"):
        return os.pread(fd, count, offset)
    with _turn:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, count)


def read_into(fd: int, buffer: memoryview, offset: int) -> int:
    """As `os.preadv` into one buffer, which Windows has not."""
    if hasattr(os, "preadv"):
        return os.preadv(fd, [buffer], offset)
    data = read_at(fd, len(buffer), offset)
    buffer[: len(data)] = data
    return len(data)


def send_file(target: int, fd: int, offset: int, count: int) -> int:
    """Copy bytes of the file `fd` to the descriptor `target` inside the kernel: how many it took before it refused or `fd` ended.

    What is left goes through memory: pipes and files appended to are not for every system call.
    """
    done = 0
    for copy in (_copy_range, _sendfile):
        try:
            while done < count and (moved := copy(target, fd, offset + done, min(count - done, _AT_ONCE))):
                done += moved
        except BrokenPipeError:
            raise
        except OSError as error:
            if error.errno not in _REFUSED:
                raise
    return done


def _copy_range(target: int, fd: int, offset: int, count: int) -> int:
    return os.copy_file_range(fd, target, count, offset) if hasattr(os, "copy_file_range") else 0


def _sendfile(target: int, fd: int, offset: int, count: int) -> int:
    return os.sendfile(target, fd, offset, count) if sys.platform == "linux" else 0  # elsewhere to sockets only


def take(stream: Stream, length: int) -> bytes:
    """The next `length` bytes of a stream; fewer only where the object ends."""
    size = stream.stat.size
    buffer = bytearray(length if size is None else max(0, min(length, size - stream.offset)))
    count = fill(stream, memoryview(buffer))
    return bytes(buffer if count == len(buffer) else buffer[:count])


def skip(stream: Stream, offset: int) -> None:
    """Read on up to byte `offset` of the object, or to its end, and keep nothing."""
    while stream.offset < offset and take(stream, min(_PIECE, offset - stream.offset)):
        pass


def fill(stream: Stream, buffer: memoryview) -> int:
    """Read until `buffer` is full or the object ends; the number of bytes."""
    done = 0
    while done < len(buffer) and (count := stream.readinto(buffer[done:])):
        done += count
    return done
