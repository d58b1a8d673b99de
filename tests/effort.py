"""How much work something takes, counted and not timed: the same on every machine, busy or not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Calls:
    """Calls of Python and C functions in this thread."""

    count = 0

    def note(self, _: Any, event: str, __: Any) -> None:
        self.count += event in ("call", "c_call")


@contextmanager
def counted() -> Iterator[Calls]:
    """Count the calls made inside of `with`. A loop without a call counts nothing: the limit on a test's time ends those."""
    calls, before = Calls(), sys.getprofile()
    sys.setprofile(calls.note)
    try:
        yield calls
    finally:
        sys.setprofile(before)
