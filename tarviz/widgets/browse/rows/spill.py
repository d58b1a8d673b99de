"""A temporary file for what a compressed shard was inflated to."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref

_MOST = 16 << 30


class Spill:
    """The inflated bytes of a compressed shard in a temporary file without a name, up to 16 GiB."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="tarviz-")  # noqa: SIM115 (closed by close)
        self._end = 0
        self._finish = weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()

    def put(self, base: int, data: memoryview) -> bool:
        """Keep bytes that begin at `base` of the tar; False when there is no room."""
        with self._lock:
            if self._file.closed or base + len(data) > _MOST:
                return False
            try:
                os.pwrite(self._file.fileno(), data, base)
            except OSError:
                return False
            self._end = max(self._end, base + len(data))
            return True

    def get(self, offset: int, length: int) -> bytes | None:
        with self._lock:
            if self._file.closed or offset + length > self._end:
                return None
            return os.pread(self._file.fileno(), length, offset)

    def close(self) -> None:
        with self._lock:
            self._finish()
