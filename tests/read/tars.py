"""Tars put together block by block, as no tool would write them on purpose."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence

END = bytes(1024)


def raw(name: str | bytes, size: int | bytes = 0, kind: bytes = b"0", *, magic: bytes = b"ustar\x0000", link: bytes = b"") -> bytes:
    """One header block, its checksum right."""
    name = name.encode() if isinstance(name, str) else name
    size = size if isinstance(size, bytes) else b"%011o\0" % size
    head = bytearray(512)
    for at, text in ((0, name[:100]), (100, b"0000644\0"), (124, size), (136, b"00000000000\0"), (156, kind)):
        head[at : at + len(text)] = text
    for at, text in ((157, link), (257, magic), (148, b" " * 8)):
        head[at : at + len(text)] = text
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def member(name: str | bytes, data: bytes = b"", kind: bytes = b"0", **more: bytes) -> bytes:
    """Header, payload and padding."""
    return raw(name, len(data), kind, **more) + data + bytes(-len(data) % 512)


def pax(*records: tuple[bytes, bytes], kind: bytes = b"x") -> bytes:
    """A PAX header of these keywords and values."""
    body = b""
    for keyword, value in records:
        length = len(keyword) + len(value) + 3
        while len(b"%d" % length) + len(keyword) + len(value) + 3 != length:
            length = len(b"%d" % length) + len(keyword) + len(value) + 3
        body += b"%d %s=%s\n" % (length, keyword, value)
    return member("PaxHeaders/x", body, kind)


def packed(members: Sequence[tuple[str, bytes]], *, format: int = tarfile.PAX_FORMAT) -> bytes:
    """Members as Python's `tarfile` writes them."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()
