"""`-`: standard input as a stream, standard output as a sink."""

from __future__ import annotations

import os
import stat as modes
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import UnsupportedOperation
from typing import BinaryIO, ClassVar, NoReturn, cast

from tarviz.model.errors import StoreError, UsageError
from tarviz.model.types import URL, Buffer
from tarviz.stores.base import OneSink, Sink, Stat, Store, Stream, errors_as, send_file, skip

_DASH = URL("-")


@dataclass(frozen=True)
class StdioStore(Store):
    """Reads what is piped in, once; writes what is piped on. No ranges, no names."""

    lists: ClassVar[bool] = False

    def stat(self, url: URL) -> Stat:
        return _stat(_binary("stdin"))

    def open(self, url: URL, *, offset: int = 0, etag: str | None = None) -> Stream:
        source = _binary("stdin")
        if source.isatty():
            raise UsageError("standard input is a terminal.", hint="Pipe a tar into it: cat a.tar | tarviz ls -")
        stream = _StdinStream(source)
        skip(stream, offset)
        return stream

    def read(self, url: URL, offset: int, length: int, *, etag: str | None = None) -> bytes:
        _refuse("cannot be read in parts")

    def list(self, url: URL) -> Iterator[Stat]:
        _refuse("is not a folder")

    def create(self, url: URL, *, replace: bool = True) -> Sink:
        target = _binary("stdout")
        if target.isatty():
            raise UsageError("standard output is a terminal, and a tar is not text.", hint="Redirect it (> out.tar) or use -o.")
        _widen(target)
        return _StdoutSink(target)

    def delete(self, url: URL) -> None:
        _refuse("cannot be deleted")


store = StdioStore


def _refuse(why: str) -> NoReturn:
    raise UsageError(f"'-' {why}.", hint="Save it to a file first.")


def _binary(name: str) -> BinaryIO:
    """The binary side of `sys.stdin` or `sys.stdout`, looked up now because notebooks and tests replace them."""
    stream = getattr(getattr(sys, name), "buffer", None)
    if stream is None:
        raise UsageError(f"{name} takes no bytes here (a notebook?).", hint="Name a file.")
    return cast("BinaryIO", stream)


def _widen(target: BinaryIO) -> None:
    """A pipe takes 1 MiB at a time where the system lets it: twice as fast as its usual 64 KiB."""
    with suppress(ImportError, AttributeError, OSError, ValueError):  # Windows, macOS; no pipe, no descriptor, more than is allowed
        import fcntl

        fcntl.fcntl(target.fileno(), fcntl.F_SETPIPE_SZ, 1 << 20)


def _stat(source: BinaryIO) -> Stat:
    try:
        status = os.fstat(source.fileno())
    except OSError:
        return Stat(_DASH, ranges=False)
    return Stat(_DASH, status.st_size if modes.S_ISREG(status.st_mode) else None, ranges=False)


class _StdinStream(Stream):
    def __init__(self, source: BinaryIO) -> None:
        self.stat = _stat(source)
        self.offset = 0
        self._source: BinaryIO | None = source

    def readinto(self, buffer: memoryview, /) -> int:
        if self._source is None:
            raise StoreError("the stream is closed.", shard="-")
        try:
            count = self._source.readinto1(buffer)  # type: ignore[attr-defined]  # BufferedIOBase has it, typing.BinaryIO does not
        except OSError as error:
            raise StoreError(f"standard input cannot be read: {error.strerror}.", shard="-", code="E_READ") from error
        self.offset += count
        return int(count)

    def close(self) -> None:
        self._source = None


class _StdoutSink(OneSink):
    def __init__(self, target: BinaryIO) -> None:
        super().__init__(_DASH)
        self._target = target
        self._size = 0

    def write(self, data: Buffer, /) -> None:
        self.check_open()
        with errors_as(_error):
            self._target.write(data)
        self._size += memoryview(data).nbytes

    def writev(self, pieces: Sequence[Buffer], /) -> None:
        self.write(b"".join(pieces))

    def send(self, fd: int, offset: int, count: int, /) -> int:
        self.check_open()
        done = 0
        with errors_as(_error), suppress(UnsupportedOperation, ValueError):  # no descriptor: a notebook or a test
            self._target.flush()
            done = send_file(self._target.fileno(), fd, offset, count)
        self._size += done
        return done if done == count else done + super().send(fd, offset + done, count - done)

    def complete(self) -> Stat:
        with errors_as(_error):
            self._target.flush()
        return Stat(_DASH, self._size, ranges=False)


def _error(error: Exception) -> StoreError | None:
    """What standard output refuses, but for a reader that has gone, as in `| head`: that is no error of ours."""
    if isinstance(error, BrokenPipeError) or not isinstance(error, OSError):
        return None
    return StoreError(f"standard output cannot be written: {error.strerror}.", shard="-", code="E_WRITE")
