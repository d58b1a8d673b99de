"""Payloads that lie in a file still: read when somebody asks for one, or by threads that all shards of the process share."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import overload

import numpy as np
from numpy.typing import NDArray

from tarviz.model.processors import processors
from tarviz.read.spans import HeldTar

LOADING = 2  # chunks of one shard whose payloads are read at a time, or wait to be


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


@functools.cache
def loaders() -> ThreadPoolExecutor:
    """The threads that read payloads, for all shards of the process.

    malloc keeps memory by thread: threads that come and go leave behind what the next ones do not find, and fresh pages take
    longer to be given than to be read into.
    """
    return ThreadPoolExecutor(max(LOADING, processors()), "tarviz-load")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=loaders.cache_clear)  # the threads stay with the parent
