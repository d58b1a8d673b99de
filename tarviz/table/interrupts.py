"""Which questions run, for whose sake, so that they can be ended from another thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from tarviz.model.errors import LimitError, UsageError

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")
QUESTION = "tarviz-question"
_GRACE = 0.3  # seconds that a query has to end by itself
LOOK = 0.05  # seconds after which whoever waits looks whether it is still wanted
_OPEN = 64  # the last questions, which can be interrupted


def stopped() -> UsageError:
    """What is raised in place of an answer that nobody wants any more."""
    return UsageError("the query was stopped.", code="E_STOPPED")


def answered(work: Callable[[], T], interrupt: Callable[[], None], timeout: float | None = None, stop: threading.Event | None = None) -> T:
    """What a query gives. Where this is the main thread, or `stop` may end it, it runs in another one, which can be left: Ctrl-C ends the
    wait at once, and DuckDB ends some queries (a join that is counted) only when they are done. `LimitError` after `timeout` seconds.
    """
    if timeout is not None and not timeout > 0:
        raise UsageError(f"a query cannot take {timeout:g} s at most.", hint="Give it a number of seconds above 0, or none.")
    if threading.current_thread() is not threading.main_thread() and timeout is None and stop is None:
        return work()
    found: list[T] = []
    failed: list[BaseException] = []
    over = threading.Event()

    def ask() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 (it is raised where the answer is waited for)
            failed.append(error)
        finally:
            over.set()

    threading.Thread(target=ask, name=QUESTION, daemon=True).start()
    try:
        until = None if timeout is None else time.monotonic() + timeout
        while not over.wait(LOOK if stop is not None else timeout):
            if stop is not None and stop.is_set():
                raise stopped()
            if until is not None and time.monotonic() >= until:
                raise LimitError(f"the query took longer than {timeout:g} s.", hint="Ask for less, or give it more time.")
    except BaseException:
        interrupt()
        if not over.wait(_GRACE):
            interrupt()  # one that had not begun yet did not hear it
        raise
    if failed:
        raise failed[0]
    return found[0]


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
            raise stopped()

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
