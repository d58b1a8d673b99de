"""Which questions run, for whose sake, so that they can be ended from another thread."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar

from tarviz.model.errors import LimitError, UsageError
from tarviz.table.packages import duckdb

T = TypeVar("T")
QUESTION = "tarviz-question"
_GRACE = 0.3  # seconds that a query has to end by itself
_CALM = 8  # looks in a row, at the end of the process, that find nothing running
_LAST = 0.5  # and that what runs has at the end of the process
LOOK = 0.05  # seconds after which whoever waits looks whether it is still wanted
_OPEN = 64  # the last questions, which can be interrupted
_running: dict[object, Callable[[], None]] = {}  # what ends each of the questions that run
_askers: weakref.WeakSet[threading.Thread] = weakref.WeakSet()  # threads that have asked, but for the main one
_ending = threading.Event()


def stop_error() -> UsageError:
    """What is raised in place of an answer that nobody wants any more."""
    return UsageError("the query was stopped.", code="E_STOPPED")


@atexit.register
def _leave() -> None:
    """A thread that comes out of DuckDB when Python has ended takes the process down with it: end what runs, and ask nothing more."""
    _ending.set()
    for interrupt in list(_running.values()):
        interrupt()
    calm, until = 0, time.monotonic() + _LAST
    while calm < _CALM and time.monotonic() < until and any(thread.is_alive() for thread in _askers):
        time.sleep(0.01)
        calm = 0 if _running else calm + 1


def run_known(work: Callable[[], T], interrupt: Callable[[], None] = lambda: None) -> T:
    """What calls DuckDB, known to `_leave` meanwhile."""
    if (thread := threading.current_thread()) is not threading.main_thread():
        if _ending.is_set() and thread.name != QUESTION:
            raise stop_error()
        _askers.add(thread)
    _running[question := object()] = interrupt
    try:
        return work()
    finally:
        del _running[question]


def answer(work: Callable[[], T], interrupt: Callable[[], None], timeout: float | None = None, stop: threading.Event | None = None) -> T:
    """What a query gives. Where this is the main thread, or `stop` may end it, it runs in another one, which can be left: Ctrl-C ends the
    wait at once, and DuckDB ends some queries (a join that is counted) only when they are done. `LimitError` after `timeout` seconds.
    """
    if timeout is not None and not timeout > 0:
        raise UsageError(f"a query cannot take {timeout:g} s at most.", hint="Give it a number of seconds above 0, or none.")
    if threading.current_thread() is not threading.main_thread() and timeout is None and stop is None:
        return run_known(work, interrupt)
    asked: Future[T] = Future()

    def ask() -> None:
        try:
            asked.set_result(run_known(work, interrupt))
        except BaseException as error:  # noqa: BLE001 (it is raised where the answer is waited for)
            asked.set_exception(error)

    threading.Thread(target=ask, name=QUESTION, daemon=True).start()
    try:
        until = None if timeout is None else time.monotonic() + timeout
        while not wait((asked,), LOOK if stop is not None else timeout).done:
            if stop is not None and stop.is_set():
                raise stop_error()
            if until is not None and time.monotonic() >= until:
                raise LimitError(f"the query took longer than {timeout:g} s.", hint="Ask for less, or give it more time.")
    except BaseException:
        interrupt()
        if not wait((asked,), _GRACE).done:
            interrupt()  # one that had not begun yet did not hear it
        raise
    return asked.result()


class Interrupts:
    """The questions of one table."""

    def __init__(self) -> None:
        self._asking = threading.local()
        self._cursors: deque[tuple[duckdb.DuckDBPyConnection, threading.Event | None]] = deque(maxlen=_OPEN)

    @property
    def stop(self) -> threading.Event | None:
        """What ends the questions of this thread."""
        return getattr(self._asking, "stop", None)

    @contextmanager
    def until(self, stop: threading.Event) -> Iterator[None]:
        """What this thread asks meanwhile is for the sake of `stop`."""
        before, self._asking.stop = self.stop, stop
        try:
            yield
        finally:
            self._asking.stop = before

    def look(self) -> None:
        """Raise `stopped()` where this thread's question was ended: for what takes long beside a query."""
        if self.stop is not None and self.stop.is_set():
            raise stop_error()

    def cursor(self, base: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        """A connection of its own for one question, which `interrupt` can reach."""
        cursor = base.cursor()
        self._cursors.append((cursor, self.stop))
        return cursor

    def interrupt(self, stop: threading.Event | None = None) -> None:
        """End the queries that run, or only those for the sake of `stop`."""
        for cursor, own in list(self._cursors):
            if stop is None or stop is own:
                cursor.interrupt()
