"""Paths and `file://` URLs: files of this machine, read as they are, written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import stat as modes
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from itertools import islice

from tarviz.model.errors import ChangedError, NotFoundError, StoreError, TarvizError
from tarviz.model.types import URL, Buffer
from tarviz.model.urls import local_path
from tarviz.stores._temporary import make_temporary, remove_stale
from tarviz.stores.base import READ, OneSink, Sink, Stat, Store, Stream, already_there, errors_as, read_at, send_file, skip
from tarviz.stores.paths import nearest

_TEMPORARY = ".tmp-"
_MANY = 1000  # files of a folder that are listed again only when some time has passed
_listed: tuple[str, float, float, list[str]] = ("", 0.0, 0.0, [])  # the last such folder: when, seconds it took, its temporary files
_IOV_MAX = os.sysconf("SC_IOV_MAX") if "SC_IOV_MAX" in getattr(os, "sysconf_names", {}) else 16
_OPEN_FILE = re.compile(r"/dev/fd/(\d+)|/proc/(?:self|\d+)/fd/(\d+)")
_WHY: dict[int | None, str] = {  # where the system's own words say too little
    errno.EISDIR: "it is a folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EEXIST: "a part of the path is a file, not a folder",  # of makedirs
    errno.ENOSPC: "the disk is full",
    errno.EFBIG: "the file would be larger than the system allows",
}
_HINT: dict[int | None, str] = {
    errno.ENOSPC: "Free some space or choose another folder with -o; nothing was left under the final name.",
    errno.EACCES: "Check owner and mode (ls -l), or choose another folder.",
    errno.EROFS: "Choose another folder.",
    errno.EMFILE: "Use fewer workers or raise the limit (ulimit -n).",
}


def _error(error: Exception, url: str, code: str) -> TarvizError | None:
    if not isinstance(error, OSError) or isinstance(error, BrokenPipeError):
        return None  # the reader of a pipe has gone: no error of ours
    if error.errno == errno.ENOENT:
        return NotFoundError("there is no such file.", shard=url, hint=lambda: nearest(local_path(url)) or None)
    verb = "written" if code == "E_WRITE" else "read"
    why = _WHY.get(error.errno) or (error.strerror or str(error)).lower()
    return StoreError(f"cannot be {verb}: {why}.", code=code, shard=url, hint=_HINT.get(error.errno))


@dataclass(frozen=True)
class FileStore(Store):
    """Local files. The version of a file is its size, its times of change and its inode, so a file that was
    replaced, cut, or written to is noticed. Pipes and devices read and write straight through."""

    def stat(self, url: URL) -> Stat:
        with errors_as(_error, url, "E_READ"):
            return _stat(url, os.stat(local_path(url)))

    def open(self, url: URL, *, offset: int = 0, etag: str | None = None) -> Stream:
        with errors_as(_error, url, "E_READ"):
            fd, status = _open_version(url, etag)
        file = open(fd, "rb", buffering=0)  # noqa: SIM115  (closed by the stream)
        try:
            stream = _FileStream(file, _stat(url, status))
            stream.seek(offset)
        except BaseException:
            file.close()
            raise
        return stream

    def read(self, url: URL, offset: int, length: int, *, etag: str | None = None) -> bytes:
        with errors_as(_error, url, "E_READ"):
            fd, _ = _open_version(url, etag)
            try:
                return read_at(fd, length, offset)
            finally:
                os.close(fd)

    def list(self, url: URL) -> Iterator[Stat]:
        folder = local_path(url)
        with errors_as(_error, url, "E_READ"), os.scandir(folder) as entries:
            files = sorted((each for each in entries if _TEMPORARY not in each.name and not each.is_dir()), key=lambda each: each.name)
        for entry in files:
            with suppress(FileNotFoundError):  # removed since, or a link to nothing
                yield _stat(URL(os.path.join(folder, entry.name)), entry.stat())

    def create(self, url: URL, *, replace: bool = True) -> Sink:
        path = local_path(url)
        with errors_as(_error, url, "E_WRITE"):
            if not os.path.basename(path):
                raise IsADirectoryError(errno.EISDIR, "a folder's name ends like that")
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            through = _open_through(path)
            if through is not None:
                return _FileSink(url, path, None, through)
            path = os.path.realpath(path)  # what a link points to is replaced and the link stays, as when a shell writes there
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return _create(url, path, replace)

    def delete(self, url: URL) -> None:
        with errors_as(_error, url, "E_WRITE"):
            try:
                os.unlink(local_path(url))
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:  # the manifest of an output whose own name is as long as names may be
                    error.errno = errno.ENOENT
                raise


store = FileStore


def _stat(url: URL, status: os.stat_result) -> Stat:
    if modes.S_ISDIR(status.st_mode):
        raise StoreError("it is a folder, not a file.", code="E_READ", shard=url, hint="Name a file in it.")
    if not modes.S_ISREG(status.st_mode):
        return Stat(url, ranges=False)
    return Stat(url, status.st_size, file_version(status), status.st_mtime_ns / 1e9)


def file_version(status: os.stat_result) -> str:
    """The version of a file. The time of the last change of any kind stands last: no program can set it back, as `touch` does the other.

    Before it stands what a file keeps that is moved, linked or given another mode while it is open; see `same_bytes`.
    """
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}-{status.st_ctime_ns}"


def same_bytes(version: str | None, other: str | None) -> bool:
    """Whether a file that was held open has not been written to between two versions of it."""
    return (version or "").rpartition("-")[0] == (other or "").rpartition("-")[0]


def _open_version(url: URL, etag: str | None) -> tuple[int, os.stat_result]:
    """A file of this version, or of any, opened. Small reads spend their time here: no more is made of its status than that takes."""
    fd = os.open(local_path(url), READ)
    try:
        status = os.fstat(fd)
        if etag is None or etag != file_version(status):
            stat = _stat(url, status)
            if etag is not None:
                raise _change_error(url, etag, stat.etag)
    except BaseException:
        os.close(fd)
        raise
    return fd, status


def _change_error(url: str, old: str | None, new: str | None) -> ChangedError:
    words = f"version (size-mtime-inode-ctime) {old} before, {new} now"
    return ChangedError(f"the file was changed while it was in use: {words}.", shard=url, hint="Read it again from the beginning.")


class _FileStream(Stream):
    def __init__(self, file: FileIO, stat: Stat) -> None:
        self.stat = stat
        self.offset = 0
        self._file = file
        if hasattr(os, "posix_fadvise"):
            with suppress(OSError):  # a pipe
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)

    def seek(self, offset: int) -> None:
        if self.stat.size is None:
            skip(self, offset)
        else:
            self.offset = self._file.seek(offset)

    def readinto(self, buffer: memoryview, /) -> int:
        if self._file.closed:
            raise StoreError("the stream is closed.", shard=self.stat.url)
        with errors_as(_error, self.stat.url, "E_READ"):
            count = self._file.readinto(buffer) or 0
            now = None if self.stat.etag is None else file_version(os.fstat(self._file.fileno()))
        if not same_bytes(now, self.stat.etag):
            raise _change_error(self.stat.url, self.stat.etag, now)
        self.offset += count
        return count

    def close(self) -> None:
        self._file.close()


def _open_through(path: str) -> int | None:
    """A descriptor for what is not a regular file (a pipe, a device, /dev/stdout): nothing to rename there."""
    if path in ("/dev/stdout", "/dev/stderr"):
        return os.dup(1 if path.endswith("out") else 2)
    if match := _OPEN_FILE.fullmatch(path):
        return os.dup(int(match[1] or match[2]))
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if modes.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    return None if modes.S_ISREG(mode) else os.open(path, os.O_WRONLY)


def _create(url: URL, path: str, replace: bool) -> _FileSink:
    """A sink on a locked temporary file beside `path`; those that killed processes left there are removed."""
    folder, name = os.path.split(path)
    begin = f".{os.fsdecode(os.fsencode(name)[:200])}{_TEMPORARY}"  # NAME_MAX is 255 bytes nearly everywhere
    with suppress(OSError):
        for left in _temporaries(folder):
            if left.startswith(begin):
                remove_stale(os.path.join(folder, left))
    fd, temporary = make_temporary(lambda: os.path.join(folder, f"{begin}{os.urandom(6).hex()}"), 0o666)
    return _FileSink(url, path, temporary, fd, replace)


def _temporaries(folder: str) -> list[str]:
    """The temporary files in a folder; in one of very many files those of a moment ago, so that ten thousand outputs list it seldom."""
    global _listed
    known, when, took, names = _listed
    if known == folder and time.monotonic() < when + 50 * took:
        return names
    begin = time.thread_time()
    with os.scandir(folder or ".") as entries:
        all_names = [entry.name for entry in entries]
    names = [name for name in all_names if _TEMPORARY in name]
    if len(all_names) > _MANY:
        _listed = folder, time.monotonic(), time.thread_time() - begin, names
    return names


def _drop(fd: int, temporary: str | None, owner: int) -> None:
    with suppress(OSError):
        if temporary is not None and os.getpid() == owner:  # a forked child leaves its parent's file alone
            os.unlink(temporary)
    with suppress(OSError):
        os.close(fd)


class _FileSink(OneSink):
    def __init__(self, url: URL, path: str, temporary: str | None, fd: int, replace: bool = True) -> None:
        super().__init__(url)
        self._path = path
        self._temporary = temporary
        self._replace = replace
        self._fd = fd
        self._size = 0
        self._finish = weakref.finalize(self, _drop, fd, temporary, os.getpid())

    def write(self, data: Buffer, /) -> None:
        self.writev((data,))

    def writev(self, pieces: Sequence[Buffer], /) -> None:
        self.check_open()
        rest = iter(pieces)
        with errors_as(_error, self.url, "E_WRITE"):
            while some := list(islice(rest, _IOV_MAX)):
                self._write_all(some)

    def send(self, fd: int, offset: int, count: int, /) -> int:
        self.check_open()
        with errors_as(_error, self.url, "E_WRITE"):
            done = send_file(self._fd, fd, offset, count)
        self._size += done
        return done if done == count else done + super().send(fd, offset + done, count - done)

    def _write_all(self, pieces: list[Buffer]) -> None:
        total = sum(map(len, pieces))
        done = os.writev(self._fd, pieces) if hasattr(os, "writev") else os.write(self._fd, b"".join(pieces))
        self._size += total
        for piece in pieces if done < total else ():  # a signal, a pipe, more than 2 GiB at once
            rest, done = memoryview(piece)[done:], max(done - len(piece), 0)
            while rest:
                rest = rest[os.write(self._fd, rest) :]

    def complete(self) -> Stat:
        with errors_as(_error, self.url, "E_WRITE"):
            if self._temporary is None:
                stat = Stat(self.url, self._size, ranges=False)
            else:
                os.fsync(self._fd)
                self._name(self._temporary)
                stat = _stat(self.url, os.fstat(self._fd))
        self._finish.detach()
        os.close(self._fd)
        if self._temporary is not None:
            _sync_folder(os.path.dirname(self._path) or ".")
        return stat

    def _name(self, temporary: str) -> None:
        if not self._replace:
            try:
                os.link(temporary, self._path)
            except OSError as error:  # a file system without links: as sure as looking first can be
                if isinstance(error, FileExistsError) or os.path.lexists(self._path):
                    raise already_there(self.url) from error
            else:
                os.unlink(temporary)
                return
        os.replace(temporary, self._path)

    def discard(self) -> None:
        self._finish()


def _sync_folder(folder: str) -> None:
    with suppress(OSError):  # the rename itself has happened; some file systems cannot sync a folder
        fd = os.open(folder, READ)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
