"""An object in memory as a whole, as far as it is no larger than what it is taken for."""

from __future__ import annotations

from tarviz import stores
from tarviz.model.config import format_size
from tarviz.model.errors import UsageError
from tarviz.model.types import URL

_PIECE = 1 << 20


def contents(url: str, what: str, most: float = float("inf"), *, etag: str | None = None) -> bytearray:
    """All bytes of an object; `UsageError` where `what` has more than `most`, `ChangedError` where it is not that of `etag` any more."""
    data = bytearray()
    buffer = memoryview(bytearray(_PIECE))
    with stores.of(url).open(URL(url), etag=etag) as stream:
        while count := stream.readinto(buffer):
            data += buffer[:count]
            if len(data) > most:
                raise UsageError(f"{what} has more than {format_size(most)}, which is too much.", shard=url)
    return data
