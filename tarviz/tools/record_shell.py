"""A record as files in a private folder, and a shell that works on them: what `proc` does to one record.

One shell lives as long as its worker and runs the command for each record, in a folder made for that record: in a subshell,
or, where the command is a simple one that cannot change the shell, without any fork of its own. Names of files are ours
(`sample.jpg`), never the tar's; what the command leaves is read without following links.
"""

from __future__ import annotations

import functools
import os
import re
import select
import shutil
import stat as modes
import subprocess
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import NamedTuple

from tarviz.model.errors import DataError, LimitError, UsageError
from tarviz.model.types import to_bytes, to_text
from tarviz.query.patterns import bounded
from tarviz.tools.process import kill, messages

_EXT = re.compile(r"[\w.\-+@=%~#,^]+")
_OURS = 1  # the modification time files are given, so that any other says they were written
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_OLD = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

# A line comes in for each record: its folder and its key, whose bytes are escaped where they mean something; its exit code goes out
# as a line. The command sees neither descriptor.
_DRIVER = r"""
_tarviz_base=$1 _tarviz_command=$2; shift 2
export TARVIZ_KEY
while IFS=' ' read -r _tarviz_folder _tarviz_key <&IN; do
  printf -v TARVIZ_KEY %b "$_tarviz_key"
  RUN
  printf '%d\n' "$?" >&OUT
done
"""
_PLAIN = re.compile(rb"[\w./+-]*")
_SUBSHELL = """( exec IN<&- OUT>&-; cd "$_tarviz_base/$_tarviz_folder" && eval "$_tarviz_command" ) </dev/null LOG"""
_SAME_SHELL = """cd "$_tarviz_base/$_tarviz_folder" && eval "$_tarviz_command" </dev/null LOG IN<&- OUT>&-"""
_LOG = """>"$_tarviz_base/log" 2>&1"""
# One simple command, without anything a shell expands but file names, and none of bash's words that change the shell itself.
_SIMPLE = re.compile(r"[\w./+-]+(?:[ \t]+[\w./+\-=,:@%*?]+)*[ \t]*")
_CHANGING = {
    ".", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command", "compgen", "complete", "compopt", "continue",
    "coproc", "declare", "dirs", "disown", "do", "done", "elif", "else", "enable", "esac", "eval", "exec", "exit", "export", "fc",
    "fg", "fi", "for", "function", "getopts", "hash", "help", "history", "if", "in", "jobs", "let", "local", "logout", "mapfile",
    "popd", "pushd", "read", "readarray", "readonly", "return", "select", "set", "shift", "shopt", "source", "suspend", "then",
    "time", "times", "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
}  # fmt: skip


def is_simple(command: str) -> bool:
    """Whether a command leaves the shell that runs it as it was, and nothing after it."""
    return _SIMPLE.fullmatch(command) is not None and command.split()[0] not in _CHANGING


def driver(command: str, inner: int, outer: int, *, log: bool = False) -> str:
    """The script of a worker's shell, which reads from one descriptor and writes to another; `log` keeps what the command prints."""
    text = _DRIVER.replace("RUN", _SAME_SHELL if is_simple(command) else _SUBSHELL)
    return text.replace(" LOG", f" {_LOG}" if log else "").replace("IN", str(inner)).replace("OUT", str(outer))


class Given(NamedTuple):
    """A field for the command: its extension and payload."""

    ext: str
    payload: bytes | memoryview


@dataclass(slots=True)
class Left:
    """A record that was left: what stands after the base name, and each field; a number is the place of one given, untouched."""

    suffix: bytes
    fields: list[tuple[str, bytes | int]]


@dataclass(frozen=True, slots=True)
class Collecting:
    """Which files become fields, and of which record; see the options of `proc`."""

    base: str = "sample"
    others: bool = False
    separator: str = ""
    include: str | None = None
    exclude: str | None = None
    log: str | None = None
    keep_failed: bool = False

    def __post_init__(self) -> None:
        checked_base(self.base)
        self.wanted("")  # says what is wrong with a pattern before anything is read
        if self.log is not None and not _EXT.fullmatch(self.log):
            raise UsageError(f"{self.log!r} cannot be an extension.", hint="For example log, or cmd.txt.")

    def wanted(self, name: str) -> bool:
        """Whether the patterns let a file through."""
        if self.exclude is not None and _pattern(self.exclude).search(name):
            return False
        return self.include is None or _pattern(self.include).search(name) is not None

    def place(self, name: str) -> tuple[bytes, str] | None:
        """What stands after the key in the name of a file's record, and the extension; None for a file that is not a field.

        >>> Collecting(separator="_").place("sample7.png"), Collecting().place("note.txt"), Collecting(others=True).place("note.txt")
        ((b'_7', 'png'), None, (b'note', 'txt'))
        """
        stem, dot, ext = name.partition(".")
        if not dot or not ext or not ((self.others and stem) or stem.startswith(self.base)):
            return None
        suffix = stem.removeprefix(self.base)
        return to_bytes(self.separator + suffix if suffix else ""), ext


_pattern = functools.lru_cache(8)(bounded)


class Came(NamedTuple):
    """What came of a record: the records left, names of files that are none, and the failure when the command is allowed to fail."""

    left: list[Left]
    others: list[str]
    failure: DataError | None = None


def check_names(key: bytes, exts: list[str], *, any_key: bool) -> None:
    """`DataError` E_UNSAFE_NAME for an extension that should not be a file's name, and for a key that leads out of a folder."""
    for ext in exts:
        if not _EXT.fullmatch(ext) or len(to_bytes(ext)) > 200:
            raise DataError(f"the extension {ext[:80]!r} is not a safe file name.", code="E_UNSAFE_NAME", hint="tarviz cat -f renames it.")
    if b"\0" in key:
        raise DataError("the key holds a NUL, which no environment variable can.", code="E_UNSAFE_NAME", hint="tarviz cat --key renames.")
    parts = re.split(rb"[/\\]", key)
    if not any_key and (b"\\" in key or parts[0] in (b"", b"~") or b".." in parts or re.match(rb"[A-Za-z]:", parts[0])):
        raise DataError(
            "the key would lead out of a folder if the command took TARVIZ_KEY for a path.",
            code="E_UNSAFE_NAME",
            hint="--any-key runs it nevertheless; tarviz cat --key renames.",
        )


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
                self._checked(self._command(place, key))
            except DataError as error:
                if not self.collecting.keep_failed or self.killed:
                    raise
                failure = error
            left, others = self._collect(place, given, seen)
            if self.collecting.log is not None:
                self._add_log(left)
            return Came(left, others, failure)
        finally:
            if self._simple and _emptied(place):
                self._place = place
            else:  # what the command started may still be at work there
                _remove(place)

    @staticmethod
    def _checked(code: int) -> None:
        if code:
            how = f"was killed by signal {code - 128}" if 128 < code < 160 else f"ended with exit code {code}"
            raise DataError(f"the command {how}.", code="E_COMMAND")

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
            message = to_bytes(os.path.basename(folder)) + b" " + _escaped(key) + b"\n"
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
            if not self.collecting.wanted(name):
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


def _escaped(key: bytes) -> bytes:
    """A key as `printf %b` reads it."""
    return key if _PLAIN.fullmatch(key) else b"".join(b"\\0%03o" % byte for byte in key)


def _emptied(folder: str) -> bool:
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
        if _emptied(folder):
            os.rmdir(folder)
            return
    for path, names, _ in os.walk(folder):  # folders in it, or rights taken away
        for name in (each for each in names if not os.path.islink(os.path.join(path, each))):
            with suppress(OSError):
                os.chmod(os.path.join(path, name), 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def checked_base(base: str) -> str:
    """The base name of files, refused where it could not be one."""
    if not re.fullmatch(r"\w[\w\-]*", base):
        raise UsageError(f"{base!r} cannot be the base name of files.", hint="Letters, digits, - and _.")
    return base
