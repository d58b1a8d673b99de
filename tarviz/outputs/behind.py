"""A thread that works jobs off in order, so that the next one is prepared while the system takes the last (it lets go of the GIL)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

Job = TypeVar("Job")

AHEAD = 1  # jobs that may wait; more are no faster, and their memory is cold, on the other core, when its turn comes
_PATIENCE = 1.0  # seconds that `stop` waits for the job at work
_END = object()


class Behind(Generic[Job]):
    """Jobs done one after the other by `work`, in a thread. A job that fails ends them all: the next call raises its error.

    >>> done = []
    >>> behind = Behind(done.append, name="example")
    >>> behind.put(1), behind.put(2), behind.finish(), done
    (None, None, None, [1, 2])
    """

    def __init__(self, work: Callable[[Job], None], *, name: str) -> None:
        self._work = work
        self._jobs: queue.Queue[Any] = queue.Queue(AHEAD)
        self._error: BaseException | None = None
        self._last: Callable[[], None] | None = None
        self._gone = False
        self._lock = threading.Lock()  # `last` is called by the thread at its end, or by who stops it after that
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def stopping(self) -> bool:
        """Whether what is at work should come to an end: `stop` was called."""
        return self._last is not None

    def put(self, job: Job) -> None:
        """Add a job; waits while as many as may wait do already."""
        self._raise()
        self._jobs.put(job)

    def settle(self) -> None:
        """Wait until every job is done: what they refer to may change again."""
        self._jobs.join()
        self._raise()

    def finish(self) -> None:
        """Wait until every job is done, and end the thread."""
        self.settle()
        self._jobs.put(_END)
        self._thread.join()

    def stop(self, last: Callable[[], None]) -> None:
        """Drop the jobs that wait and call `last` after the one at work: in the thread, where that one takes long.

        What is at work may hang for ever (a pipe that nobody reads), and its file must not be closed under it.
        """
        with self._lock:
            if self._last is not None:
                return
            self._last, gone = last, self._gone
        if gone:
            last()
            return
        with suppress(queue.Full):  # the thread ends at the job that waits
            self._jobs.put_nowait(_END)
        self._thread.join(_PATIENCE)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        over = False
        while not over:
            job = self._jobs.get()
            over = job is _END or self.stopping
            try:
                if not over and self._error is None:
                    self._work(job)
            except BaseException as error:  # noqa: BLE001  (raised where the next job is given)
                self._error = error
            del job
            self._jobs.task_done()
        with self._lock:
            self._gone, last = True, self._last
        if last is not None:
            last()
