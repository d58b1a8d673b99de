"""The most memory that was resident since a moment; the figure of getrusage comes from the parent process and never falls."""

from __future__ import annotations

import re
import resource
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def begin() -> int:
    """Forget the peak so far, where the system can (Linux: proc(5), clear_refs); the peak from now on, in bytes."""
    if _CLEAR.exists():
        _CLEAR.write_text("5")
    return peak()


def peak() -> int:
    """The most bytes that were resident since `begin`."""
    if not _STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(re.search(r"VmHWM:\s+(\d+)", _STATUS.read_text())[1]) << 10  # type: ignore[index]
