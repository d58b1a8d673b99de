"""Files before they have their name: locked for as long as their writer lives, which tells them from what killed processes left."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def make_temporary(name: Callable[[], str], mode: int) -> tuple[int, str]:
    """A new file of a mode under the first path of `name` that nobody takes away again: its descriptor, open and locked, and the path."""
    while True:
        path = name()
        fd = os.open(path, _NEW | _NO_LINK, mode)
        if not _lock(fd, wait=True) or os.fstat(fd).st_nlink:
            return fd, path
        os.close(fd)  # another process took it for a leftover before it was locked


def remove_stale(path: str) -> None:
    """Remove a temporary file whose writer is gone."""
    with suppress(OSError):
        fd = os.open(path, os.O_RDWR | _NO_LINK)
        try:
            if _lock(fd, wait=False):
                os.unlink(path)
        finally:
            os.close(fd)


def _lock(fd: int, *, wait: bool) -> bool:
    with suppress(ImportError, OSError):  # held by its writer; a file system without locks; Windows, where leftovers stay
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    return False
