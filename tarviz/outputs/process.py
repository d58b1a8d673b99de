"""Commands that outputs and tools run: in a session of their own, killed with all they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import IO

from tarviz.model.errors import UsageError, safe


def run(argv: Sequence[str], *, stdin: int | IO[bytes] = subprocess.DEVNULL, stdout: int | None, env: dict[str, str] | None = None) -> int:
    """Run a command to its end: its exit code, negative for a signal. An interrupt kills it and what it started.

    `UsageError` when there is none of that name.
    """
    process: Future[subprocess.Popen[bytes]] = Future()

    def start() -> None:
        if process.set_running_or_notify_cancel():
            try:
                process.set_result(subprocess.Popen(argv, stdin=stdin, stdout=stdout, env=env, start_new_session=True))
            except BaseException as error:  # noqa: BLE001 (it is raised where the command is waited for)
                process.set_exception(error)

    try:
        threading.Thread(target=start).start()  # an interrupt in here would leave a command that nobody knows
        return process.result().wait()
    except OSError as error:
        raise UsageError(f"{safe(argv[0])!r} cannot be run: {error.strerror}.", code="E_COMMAND") from error
    except BaseException:
        if not process.cancel() and process.exception() is None:
            kill(process.result())
        raise


def messages() -> int:
    """The descriptor that takes what commands print: standard error, or nowhere when there is none."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return subprocess.DEVNULL


def kill(process: subprocess.Popen[bytes], patience: float = 0.5) -> None:
    """End a command and everything in its session: politely, then not."""
    for how, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, None)):  # what it started may have ignored the first
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the work as an interrupt does: commands are killed, folders removed, nothing half-written stays."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
