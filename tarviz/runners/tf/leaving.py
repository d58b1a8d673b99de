"""The end of a process in which TensorFlow still reads: its threads may not be on their way into Python when Python goes.

While Python ends, a thread that asks for the interpreter is stopped for good. Was it one of TensorFlow's, the call it was to make
never returns, and the iterator that waits for the call, when it is deleted with the module that holds it, waits for ever. So
before that every source says that it has ended, and calls that are under way are waited for.
"""

from __future__ import annotations

import atexit
import functools
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])

_PAUSE = 0.01  # seconds
_CALM = 10  # pauses in a row without a call: then nothing more comes
_LONGEST = 30.0  # seconds: an op that never returns is not waited for longer


class Calls:
    """Calls into Python: how many are under way, whether any were made, and whether the process ends.

    >>> calls = Calls()
    >>> @calls.count
    ... def double(number):
    ...     return 2 * number
    >>> double(4), calls.made, calls.under_way
    (8, 1, 0)
    """

    def __init__(self) -> None:
        self.made = self.under_way = 0
        self.ending = False
        self._lock = threading.Lock()

    def count(self, function: Function) -> Function:
        """The function, its calls counted."""

        @functools.wraps(function)
        def call(*values: object) -> object:
            with self._lock:
                self.made += 1
                self.under_way += 1
            try:
                return function(*values)
            finally:
                with self._lock:
                    self.under_way -= 1

        return cast("Function", call)

    def end(self) -> None:
        """Say that the process ends; return when no call has been made for a while and none is under way, or after 30 s."""
        self.ending = True
        before, calm, begin = self.made, 0, time.monotonic()
        while calm < _CALM and time.monotonic() < begin + _LONGEST:
            time.sleep(_PAUSE)  # lets go of the interpreter, which is what those threads wait for
            calm = calm + 1 if self.made == before and not self.under_way else 0
            before = self.made


CALLS = Calls()


class Leaver:
    """Lets go of what other threads find abandoned, in a thread that holds nothing: an iterator's end waits for its calls into Python.

    Python's collector runs in whatever thread makes an object, one inside an import for example, for which such a call may wait.
    """

    def __init__(self) -> None:
        self._left: SimpleQueue[object] = SimpleQueue()  # its `put` may be called while the collector runs
        threading.Thread(target=self._work, name="tarviz-left", daemon=True).start()

    def take(self, resource: object) -> None:
        """Let go of it, soon."""
        self._left.put(resource)

    def _work(self) -> None:
        while True:
            self._left.get()


leaver = functools.cache(Leaver)


def too_late(error: BaseException) -> bool:
    """Whether an error says that Python ends: its pools take no work from then on, and tell by the text of their error alone."""
    return CALLS.ending or (isinstance(error, RuntimeError) and "interpreter shutdown" in str(error))


@atexit.register
def _leave() -> None:
    if CALLS.made:
        CALLS.end()
