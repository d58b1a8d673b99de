"""An output that is a command: `|gzip > x.tgz` is a line for bash that gets the tar, whole, on its standard input.

The tarproc tools had such outputs; they are commands only inside of `allowed`, elsewhere names of files as others are.
"""

from __future__ import annotations

import contextlib
import contextvars
import shutil
import signal
import tempfile
from collections.abc import Iterator
from typing import IO

from tarviz.model.errors import StoreError
from tarviz.model.types import URL, Buffer
from tarviz.outputs.process import run
from tarviz.stores import Stat
from tarviz.stores.base import OneSink

_allowed: contextvars.ContextVar[bool] = contextvars.ContextVar("tarviz_piped_outputs", default=False)


@contextlib.contextmanager
def allow() -> Iterator[None]:
    """Outputs that begin with a bar are commands inside."""
    token = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(token)


def is_command(url: str) -> bool:
    """Whether an output is a command."""
    return url.startswith("|") and _allowed.get()


class CommandSink(OneSink):
    """Keeps the bytes in an unnamed file until they are whole, then runs the command; it never sees half of them.

    `StoreError` E_COMMAND when the command does not end with 0.
    """

    def __init__(self, url: URL) -> None:
        super().__init__(url)
        self._file: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (until commit or abort)
        self._size = 0

    def write(self, data: Buffer, /) -> None:
        self.check_open()
        view = memoryview(data).cast("B")
        self._size += len(view)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            hint = "Set TMPDIR to a folder with room for the tar."
            what = f"the tar cannot be kept until it is whole: {error.strerror}."
            raise StoreError(what, shard=self.url, code="E_WRITE", hint=hint) from error

    def complete(self) -> Stat:
        with self._file as file:
            file.seek(0)
            code = run([shutil.which("bash") or "sh", "-c", self.url[1:]], stdin=file, stdout=None)
        if code:
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            raise StoreError(f"the command ended {how}.", shard=self.url, code="E_COMMAND")
        return Stat(self.url, self._size, ranges=False)

    def discard(self) -> None:
        self._file.close()
