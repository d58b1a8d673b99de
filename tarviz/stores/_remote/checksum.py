"""The checksum that a server sends with an object, held against the bytes that came."""

from __future__ import annotations

import base64
import contextlib
import functools
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import google_crc32c

_PIECE = 1 << 16  # bytes copied at a time, so that they stay near the processor: not every hash takes a view
_base64: Callable[[str], bytes] = functools.partial(base64.b64decode, validate=True)


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, data: bytes) -> None:
        self._value = zlib.crc32(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(4, "big")


class Checksum:
    """A checksum that grows with the bytes delivered. MD5 is left out: it would cost more than the transfer."""

    def __init__(self, name: str, expected: bytes, made: Any) -> None:
        self.name = name
        self._expected = expected
        self._made = made

    def update(self, piece: memoryview) -> None:
        for at in range(0, len(piece), _PIECE):
            self._made.update(bytes(piece[at : at + _PIECE]))

    def is_right(self) -> bool:
        return bool(self._made.digest() == self._expected)


def checksum_in(headers: Mapping[str, str]) -> Checksum | None:
    """The cheapest checksum of the whole object in an answer's headers that can be made here.

    Source: cloud.google.com/storage/docs/xml-api/reference-headers (`x-goog-hash`), S3's `x-amz-checksum-…`
    (those of objects in parts, `…-3`, are not of the bytes), AIStore's `ais-checksum-…` (hexadecimal).
    """
    found = dict(part.strip().partition("=")[::2] for part in headers.get("x-goog-hash", "").split(","))
    told = [(name, headers.get(f"x-amz-checksum-{name}") or found.get(name, ""), _base64) for name in ("crc32c", "crc32")]
    for name, text, read in [*told, (headers.get("ais-checksum-type", ""), headers.get("ais-checksum-value", ""), bytes.fromhex)]:
        if name in _KINDS and text and "-" not in text:
            with contextlib.suppress(ValueError, ImportError):  # nothing that bytes could be held against, or not here
                return Checksum(name, read(text), _KINDS[name]())
    return None


def _xxhash() -> Any:
    import xxhash  # comes with the SDK; bytes are as good as the transport without it

    return xxhash.xxh64()


_KINDS: dict[str, Callable[[], Any]] = {"crc32c": google_crc32c.Checksum, "crc32": _Crc32, "xxhash": _xxhash, "xxhash2": _xxhash}
