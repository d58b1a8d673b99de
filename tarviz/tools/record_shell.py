"""A record as files in a private folder, and a shell that works on them: what `proc` does to one record.

One shell lives as long as its worker and runs the command for each record, in a folder made for that record: in a subshell,
or, where the command is a simple one that cannot change the shell, without any fork of its own. Names of files are ours
(`sample.jpg`), never the tar's; what the command leaves is read without following links.
"""

from __future__ import annotations

import os
import select
import shutil
import stat as modes
import subprocess
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import NamedTuple

from tarviz.model.errors import DataError, LimitError
from tarviz.model.types import to_bytes, to_text
from tarviz.outputs.process import kill, messages
from tarviz.tools.record_files import Collecting
from tarviz.tools.shell_driver import driver, escape_key, is_simple

_OURS = 1  # the modification time files are given, so that any other says they were written
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_OLD = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Given(NamedTuple):
    """A field for the command: its extension and payload."""

    ext: str
    payload: bytes | memoryview


@dataclass(slots=True)
class Left:
    """A record that was left: what stands after the base name, and each field; a number is the place of one given, untouched."""

    suffix: bytes
    fields: list[tuple[str, bytes | int]]


class Came(NamedTuple):
    """What came of a record: the records left, names of files that are none, and the failure when the command is allowed to fail."""

    left: list[Left]
    others: list[str]
    failure: DataError | None = None


class Worker:
    """A private folder, and a shell with a session of its own. One thread uses it; another may `kill` it."""

    def __init__(self, folder: str, command: str, collecting: Collecting, limit: int, timeout: float | None) -> None:
        self.folder, self.command, self.collecting, self.limit, self.timeout = os.path.abspath(folder), command, collecting, limit, timeout
        self.base = collecting.base
        self._bash = shutil.which("bash")
        self._process: subprocess.Popen[bytes] | None = None
        self._pipes: tuple[int, int] | None = None
        self._simple = is_simple(command)
        self._number = 0
        self._place: str | None = None  # a folder that is empty again
        self.killed = False
        os.mkdir(folder, 0o700)

    def run(self, key: bytes, given: list[Given]) -> Came:
        """What the command makes of a record. `DataError` when it fails, unless failures are kept."""
        place = self._place
        if place is None:
            place = os.path.join(self.folder, str(self._number))
            self._number += 1
            os.mkdir(place, 0o700)
        self._place = None
        try:
            seen = [self._write(place, field) for field in given]
            failure = None
            try:
                if code := self._command(place, key):
                    how = f"was killed by signal {code - 128}" if 128 < code < 160 else f"ended with exit code {code}"
                    raise DataError(f"the command {how}.", code="E_COMMAND", hint="--on-error skip leaves out such records.")
            except DataError as error:
                if not self.collecting.keep_failed or self.killed:
                    raise
                failure = error
            left, others = self._collect(place, given, seen)
            if self.collecting.log is not None:
                self._add_log(left)
            return Came(left, others, failure)
        finally:
            if self._simple and _empty(place):
                self._place = place
            else:  # what the command started may still be at work there
                _remove(place)

    def _add_log(self, left: list[Left]) -> None:
        """Put what the command printed into each record, in place of a field of that name."""
        assert self.collecting.log is not None
        printed = self._content(os.path.join(self.folder, "log")) or b""
        for each in left:
            each.fields = [field for field in each.fields if field[0] != self.collecting.log] + [(self.collecting.log, printed)]

    def _write(self, place: str, field: Given) -> tuple[int, ...]:
        fd = os.open(os.path.join(place, f"{self.base}.{field.ext}"), _NEW, 0o600)
        try:
            view = memoryview(field.payload)
            while len(view):
                view = view[os.write(fd, view) :]
            os.utime(fd, ns=(_OURS, _OURS))
            return _version(os.fstat(fd))
        finally:
            os.close(fd)

    def _command(self, folder: str, key: bytes) -> int:
        if self._bash is None:
            return self._alone(folder, key)
        reader, writer = self._shell()
        try:
            message = to_bytes(os.path.basename(folder)) + b" " + escape_key(key) + b"\n"
            while message:
                message = message[os.write(writer, message) :]
            answer = b""
            while not answer.endswith(b"\n"):
                if self.timeout is not None and not _ready(reader, self.timeout):
                    self._end()
                    raise DataError(f"the command took more than {self.timeout:g} s and was killed.", code="E_TIMEOUT")
                piece = os.read(reader, 100)
                if not piece:
                    self._end()
                    raise DataError("the shell that runs the command was killed.", code="E_COMMAND")
                answer += piece
            return int(answer)
        except BrokenPipeError:
            self._end()
            raise DataError("the shell that runs the command was killed.", code="E_COMMAND") from None

    def _shell(self) -> tuple[int, int]:
        if self._pipes is None:
            inner, writer = os.pipe()
            reader, outer = os.pipe()
            log = self.collecting.log is not None
            argv = [self._bash or "bash", "-c", driver(self.command, inner, outer, log=log), "tarviz", self.folder, self.command]
            try:
                self._process = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=messages(), cwd=self.folder, pass_fds=(inner, outer), start_new_session=True
                )
            finally:
                os.close(inner)
                os.close(outer)
            self._pipes = reader, writer
            if self.killed:
                self._end()
                raise DataError("the work was stopped.", code="E_COMMAND")
        return self._pipes

    def _alone(self, folder: str, key: bytes) -> int:
        """Without bash: a shell for each record."""
        environment = {**os.environb, b"TARVIZ_KEY": key}
        with ExitStack() as stack:
            log = stack.enter_context(open(os.path.join(self.folder, "log"), "wb")) if self.collecting.log is not None else None
            process = subprocess.Popen(
                ["sh", "-c", self.command],
                stdin=subprocess.DEVNULL,
                stdout=log or messages(),
                stderr=log,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        self._process = process
        try:
            code = process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            raise DataError(f"the command took more than {self.timeout:g} s and was killed.", code="E_TIMEOUT") from None
        finally:
            kill(process, 0)
        return code if code >= 0 else 128 - code

    def _collect(self, place: str, given: list[Given], seen: list[tuple[int, ...]]) -> tuple[list[Left], list[str]]:
        found: dict[bytes, list[tuple[str, bytes | int]]] = {}
        others: list[str] = []
        known = {f"{self.base}.{field.ext}": number for number, field in enumerate(given)}
        with os.scandir(place) as entries:
            there = sorted(entries, key=lambda entry: (known.get(entry.name, len(known)), entry.name))
        for entry in there:
            name = entry.name
            where = self.collecting.place(name)
            if where is None:
                others.append(name)
                continue
            if not self.collecting.lets_through(name):
                continue
            number = known.get(name)
            content: bytes | int | None
            if number is not None and _version(entry.stat(follow_symlinks=False)) == seen[number]:
                content = number
            else:
                content = self._content(entry.path)
            if content is None:
                others.append(name)
            else:
                found.setdefault(where[0], []).append((where[1], content))
        return [Left(suffix, found[suffix]) for suffix in sorted(found)], others

    def _content(self, path: str) -> bytes | None:
        """A file's bytes, None when it is not a regular file."""
        try:
            fd = os.open(path, _OLD)
        except OSError:
            return None  # a link, or gone again
        try:
            status = os.fstat(fd)
            if not modes.S_ISREG(status.st_mode):
                return None
            if status.st_size > self.limit:
                name = to_text(os.fsencode(os.path.basename(path)))
                raise LimitError(
                    f"the file {name!r} has {status.st_size} bytes, {self.limit} are allowed.", hint="Raise TARVIZ_MAX_MEMBER_BYTES."
                )
            pieces = []
            while piece := os.read(fd, 1 << 24):
                pieces.append(piece)
            return b"".join(pieces)
        finally:
            os.close(fd)

    def _end(self) -> None:
        """Kill the shell and all it started; the next record gets a new one."""
        if self._process is not None:
            kill(self._process, 0.2)
        if self._pipes is not None:
            for fd in self._pipes:
                os.close(fd)
        self._process = self._pipes = None

    def kill(self) -> None:
        """End what runs, from another thread: `run` then fails."""
        self.killed = True
        process = self._process
        if process is not None:
            kill(process, 0.2)

    def close(self) -> None:
        """End the shell and remove the folder."""
        self._end()
        _remove(self.folder)


def _ready(fd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(seconds * 1000))


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _empty(folder: str) -> bool:
    """Remove the files and links in a folder; False where there is more in it, or rights were taken away."""
    try:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
    except OSError:
        return False
    return True


def _remove(folder: str) -> None:
    """Remove a folder and what is in it; links are removed, not followed."""
    with suppress(OSError):
        if _empty(folder):
            os.rmdir(folder)
            return
    for path, names, _ in os.walk(folder):  # folders in it, or rights taken away
        for name in (each for each in names if not os.path.islink(os.path.join(path, each))):
            with suppress(OSError):
                os.chmod(os.path.join(path, name), 0o700)
    shutil.rmtree(folder, ignore_errors=True)
