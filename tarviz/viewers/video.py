"""Films: a player; the host fetches the member's bytes in parts. Nothing is decoded here."""

from __future__ import annotations

from tarviz.model.errors import DataError
from tarviz.viewers.panel import Meta, Panel, Video

EXTENSIONS = ("mp4", "m4v", "webm", "mov", "mkv", "avi")
MAGIC = (b"\x1aE\xdf\xa3",)

_MIME = {"mp4": "video/mp4", "m4v": "video/mp4", "mov": "video/mp4", "webm": "video/webm", "mkv": "video/webm", "avi": "video/x-msvideo"}


def claims(head: bytes) -> bool:
    return head[4:8] == b"ftyp"


def view(blob: memoryview, meta: Meta) -> Panel:
    last = meta.ext.rpartition(".")[2]
    head = bytes(blob[:16])
    if head[4:8] == b"ftyp":
        kind = "mp4"
        _check_boxes(blob, meta.ext)
    elif head[:4] == b"\x1aE\xdf\xa3":
        kind = "webm"
    elif last == "avi" and head[:4] == b"RIFF":
        kind = "avi"
    else:
        raise DataError(f".{meta.ext} does not begin like a film.", code="E_DECODE")
    return Panel(f"{kind}, {len(blob):,} bytes", [Video(_MIME[kind])], [("format", kind), ("size", f"{len(blob):,} bytes")])


def _check_boxes(blob: memoryview, ext: str) -> None:
    """The top boxes of an MP4 must lie in the payload (ISO/IEC 14496-12 §4.2)."""
    at = 0
    for _ in range(64):
        if at + 8 > len(blob):
            break
        size = int.from_bytes(blob[at : at + 4], "big")
        if size == 1 and at + 16 <= len(blob):
            size = int.from_bytes(blob[at + 8 : at + 16], "big")
        if size == 0:
            return
        if size < 8 or at + size > len(blob):
            raise DataError(f".{ext} is a broken MP4: a box of {size:,} bytes at byte {at}.", code="E_DECODE")
        at += size


def tile(blob: memoryview, meta: Meta, size: int) -> str:
    return f"▶ {view(blob, meta).summary}"
