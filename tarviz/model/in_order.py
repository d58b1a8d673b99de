"""Work that threads do ahead of who takes it, in the order in which it was given to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from tarviz.model.errors import TarvizError

T = TypeVar("T")
R = TypeVar("R")


def in_order(parts: Iterator[T], work: Callable[[T], R], pool: ThreadPoolExecutor, ahead: int) -> Generator[R, None, None]:
    """What `work` makes of parts, in order; the threads of `pool` work on the next `ahead` meanwhile.

    Parts are taken here, by who asks. Those that stand before an error come first. What is still waiting when it is left is not done.

    >>> with ThreadPoolExecutor(2) as pool:
    ...     list(in_order(iter(range(5)), lambda number: number**2, pool, ahead=2))
    [0, 1, 4, 9, 16]
    """
    waiting: deque[Future[R]] = deque()
    try:
        try:
            for part in parts:
                waiting.append(pool.submit(work, part))
                del part
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
        except TarvizError:
            yield from _results(waiting)
            raise
        yield from _results(waiting)
    finally:
        for future in waiting:
            future.cancel()


def _results(waiting: deque[Future[R]]) -> Iterator[R]:
    while waiting:
        yield waiting.popleft().result()
