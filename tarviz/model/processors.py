"""How many processors there are for this process."""

from __future__ import annotations

import os


def processors() -> int:
    """Processors that this process may use: those it is bound to where the system tells, else all there are.

    >>> processors() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
