"""Which questions run, for whose sake, so that they can be ended from another thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tarviz.model.errors import UsageError

if TYPE_CHECKING:
    import duckdb

_OPEN = 64  # the last questions, which can be interrupted


def stopped() -> UsageError:
    """What is raised in place of an answer that nobody wants any more."""
    return UsageError("the query was stopped.", code="E_STOPPED")


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
