"""Payloads that lie in a file still: read when somebody asks for one, or by threads that are some records ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import TarvizError
from tarviz.read.spans import HeldTar

T = TypeVar("T")

_THREADS = 2  # that read payloads of one shard; more wait for each other, since strings are made one at a time


class HeldColumn(Sequence[bytes]):
    """The payloads of a field, read anew each time: `begin` and `end` are their places in the tar. Threads may share it."""

    def __init__(self, source: HeldTar, begin: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        self._source = source
        self._places = begin.tolist(), end.tolist()

    def __len__(self) -> int:
        return len(self._places[0])

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> list[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | list[bytes]:
        begin, end = self._places
        if isinstance(at, slice):
            return list(map(self._source.read, begin[at], end[at]))
        return self._source.read(begin[at], end[at])


def loaded(parts: Iterator[T], load: Callable[[T], T]) -> Generator[T, None, None]:
    """What `load` makes of parts, in order; threads work on the next ones meanwhile. Those that stand before an error come first."""
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(_THREADS, "tarviz-read") as pool:
        try:
            try:
                for part in parts:
                    waiting.append(pool.submit(load, part))
                    del part
                    if len(waiting) > _THREADS:
                        yield waiting.popleft().result()
            except TarvizError:
                while waiting:
                    yield waiting.popleft().result()
                raise
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
