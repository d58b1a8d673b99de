"""Payloads that lie in a file still: read when somebody asks for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from tarviz.read.spans import HeldTar


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
