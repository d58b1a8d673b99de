"""Pages of fresh memory: what one costs, and how rounds are spared the dear ones.

A virtual machine's host takes back memory that is free, and a page that it has to give again takes about ten times as long as one that it
still has. Linux keeps what a core has freed for that core. So whoever writes large outputs in one thread, and frees them in it, gets the
same pages over and over; whoever writes from another thread gets dear ones now and then, in some runs and not in others.
"""

from __future__ import annotations

import mmap
import os
import statistics
import sys
import time

import numpy as np

_TOUCHED = 640 << 20  # bytes for each core; more than any side writes
_PART = 0.1  # of the memory that is free, at most


def fresh_page(pages: int = 16_384) -> float:
    """Microseconds until a page of memory that was not used before is there."""
    taken = []
    for _ in range(3):
        with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
            begin = time.perf_counter()
            for at in range(0, len(memory), mmap.PAGESIZE):
                memory[at] = 1
            taken.append(time.perf_counter() - begin)
    return statistics.median(taken) / pages * 1e6


def touch_free_memory() -> int:
    """Write to free memory from each core and free it there, so that either side of a round finds pages that the host has given.

    Returns the bytes touched; 0 where threads cannot be put on a core. Takes about 0.1 s for each core.
    """
    if sys.platform != "linux":
        return 0
    free = os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE
    size = min(_TOUCHED, int(free * _PART)) // mmap.PAGESIZE * mmap.PAGESIZE
    cores = os.sched_getaffinity(0)
    try:
        for core in cores:
            os.sched_setaffinity(0, {core})
            memory = mmap.mmap(-1, size)
            np.frombuffer(memory, np.uint8)[:: mmap.PAGESIZE] = 1
            memory.close()
    finally:
        os.sched_setaffinity(0, cores)
    return size * len(cores)
