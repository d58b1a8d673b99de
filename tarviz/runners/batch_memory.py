"""Memory of batches: used again when nobody refers to it any more, and offered to the chain for what it makes."""

from __future__ import annotations

import math
import weakref
from collections import deque
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

ALIGNED = 64  # bytes; TensorFlow takes over a NumPy buffer, without a copy, only when it is aligned like this
LEAST = 1 << 20  # bytes; less is what malloc keeps anyhow
_SPARE = 6  # pieces that wait to be used again, …
_IDLE = 256 << 20  # … and bytes of those of one size, unless it is one


def aligned(raw: NDArray[np.uint8], length: int) -> NDArray[np.uint8]:
    """`length` bytes of `raw` (at least `ALIGNED` longer) from a multiple of `ALIGNED` on, as an array of their own.

    Its views refer to it, not to `raw`, as those of an array do that was made of a buffer: when it goes, nobody holds any of it.
    """
    return np.frombuffer(raw[-raw.ctypes.data % ALIGNED :][:length].data, np.uint8)


class BatchMemory:
    """Arrays for the batches of one data set, in all its passes.

    Fresh memory costs a page fault every 4 KiB, which takes as long as a copy of it; so an array's memory comes back when the array and
    all that was made of it (views, tensors, what holds a buffer of it) are gone, in whatever thread. Threads may share one. What waits
    to be used again is 256 MiB at most of one size, or one array; a copy or a pickle of it begins with nothing.

    >>> memory = BatchMemory()
    >>> first = memory.empty((512, 4096), "uint8")
    >>> place = first.ctypes.data
    >>> row = first[3]
    >>> del first  # a row of it is held
    >>> second = memory.empty((512, 4096), "uint8")
    >>> second.ctypes.data == place
    False
    >>> del row
    >>> memory.empty((512, 4096), "uint8").ctypes.data == place
    True
    """

    def __init__(self) -> None:
        self._spare: deque[NDArray[np.uint8]] = deque(maxlen=_SPARE)

    def __reduce__(self) -> tuple[type[BatchMemory], tuple[()]]:
        return BatchMemory, ()

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array of any contents, aligned to 64 bytes."""
        length = math.prod(shape) * np.dtype(dtype).itemsize
        raw = np.empty(length + ALIGNED, np.uint8) if length < LEAST else self._taken(length + ALIGNED)
        memory = aligned(raw, length)
        if length >= LEAST:
            weakref.finalize(memory, _give, weakref.ref(self), raw).atexit = False
        return memory.view(dtype).reshape(shape)

    def _taken(self, size: int) -> NDArray[np.uint8]:
        for _ in range(len(self._spare)):
            try:
                raw = self._spare.popleft()
            except IndexError:  # another thread was quicker
                break
            if len(raw) == size:
                return raw
            self._spare.append(raw)
        return np.empty(size, np.uint8)

    def give(self, raw: NDArray[np.uint8]) -> None:
        """Let memory wait, where not enough of its size does."""
        with suppress(RuntimeError):  # another thread changes what waits: then this does not
            alike = sum(len(other) == len(raw) for other in tuple(self._spare))
            if not alike or (alike + 1) * len(raw) <= _IDLE:
                self._spare.append(raw)


def _give(memory: weakref.ref[BatchMemory], raw: NDArray[np.uint8]) -> None:
    found = memory()
    if found is not None:
        found.give(raw)
