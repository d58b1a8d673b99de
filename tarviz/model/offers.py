"""Handing things to another thread, which may have no use for them any more."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_WAIT = 0.05  # seconds after which it is looked whether the item is still wanted


def offer(to: queue.Queue[T], item: T, stopped: Callable[[], bool]) -> bool:
    """Put an item when there is room; False where `stopped()` was true first.

    >>> full: queue.Queue[int] = queue.Queue(1)
    >>> offer(full, 1, lambda: False), offer(full, 2, lambda: full.full())
    (True, False)
    """
    while not stopped():
        try:
            to.put(item, timeout=_WAIT)
        except queue.Full:
            continue
        return True
    return False
