"""A thread that works jobs off in order, so that the next one is prepared while the system takes the last (it lets go of the GIL)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Job = TypeVar("Job")

AHEAD = 1  # jobs that may wait; more are no faster, and their memory is cold, on the other core, when its turn comes
_PATIENCE = 1.0  # seconds that `stop` waits for the job at work


class Behind(Generic[Job]):
    """Jobs done one after the other by `work`, in a thread. A job that fails ends them all: the next call raises its error.

    >>> done = []
    >>> behind = Behind(done.append, name="example")
    >>> behind.put(1), behind.put(2), behind.finish(), done
    (None, None, None, [1, 2])
    """

    def __init__(self, work: Callable[[Job], None], *, name: str) -> None:
        self._work = work
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._busy = self._over = self._gone = False
        self._error: BaseException | None = None
        self._last: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def stopping(self) -> bool:
        """Whether what is at work should come to an end: `stop` was called."""
        return self._last is not None

    def put(self, job: Job) -> None:
        """Add a job; waits while as many as may wait do already."""
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or len(self._jobs) < AHEAD)
            self._raise()
            self._jobs.append(job)
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait until every job is done: what they refer to may change again."""
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or not (self._jobs or self._busy))
            self._raise()

    def finish(self) -> None:
        """Wait until every job is done, and end the thread."""
        self.settle()
        self._end()
        self._thread.join()

    def stop(self, last: Callable[[], None]) -> None:
        """Drop the jobs that wait and call `last` after the one at work: in the thread, where that one takes long.

        What is at work may hang for ever (a pipe that nobody reads), and its file must not be closed under it.
        """
        with self._changed:
            if self._last is not None:
                return
            self._last, gone = last, self._gone
        if gone:
            last()
            return
        self._end()
        self._thread.join(_PATIENCE)

    def _end(self) -> None:
        with self._changed:
            self._over = True
            self._jobs.clear()
            self._changed.notify_all()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while self._next():
            pass
        with self._changed:
            self._gone, last = True, self._last
        if last is not None:
            last()

    def _next(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._jobs)
            if self._over:
                return False
            job = self._jobs.popleft()
            self._busy = True
            self._changed.notify_all()
        try:
            self._work(job)
        except BaseException as error:  # noqa: BLE001  (raised where the next job is given)
            self._error = error
        del job
        with self._changed:
            self._busy = False
            if self._error is not None:
                self._jobs.clear()
            self._changed.notify_all()
        return True
