"""Work that threads do ahead of who takes it, in the order in which it was given to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from tarviz.model.errors import TarvizError

T = TypeVar("T")
R = TypeVar("R")


def in_order(parts: Iterator[T], work: Callable[[T], R], threads: int, ahead: int, name: str) -> Generator[R, None, None]:
    """What `work` makes of parts, in order; `threads` threads called `name` work on the next `ahead` meanwhile.

    Parts are taken here, by who asks. Those that stand before an error come first.

    >>> list(in_order(iter(range(5)), lambda number: number**2, threads=2, ahead=2, name="squares"))
    [0, 1, 4, 9, 16]
    """
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads, name) as pool:
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
