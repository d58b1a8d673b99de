"""What tests of stores do with a stream: read it to its end, and look for what it leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tarviz.model.types import URL
from tarviz.stores import Store


def drain(store: Store, url: URL, *, size: int = 1 << 16, **options: Any) -> bytes:
    """All bytes of an object from `offset` on, read in pieces of `size` bytes at most."""
    with store.open(url, **options) as stream:
        data, buffer = bytearray(), memoryview(bytearray(size))
        while count := stream.readinto(buffer):
            data += buffer[:count]
        assert len(data) + options.get("offset", 0) == stream.offset
    return bytes(data)


def children() -> list[str]:
    """The ids of the processes that this one started and that are there still; none where the system does not tell."""
    return [child for task in Path("/proc/self/task").glob("*/children") for child in task.read_text("ascii").split()]
