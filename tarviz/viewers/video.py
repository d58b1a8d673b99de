"""Films: a player, whose bytes the host fetches in parts, and frames to find one's place by where PyAV is installed (extra `media`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tarviz.looks import sound
from tarviz.model.errors import DataError
from tarviz.viewers.panel import Frames, Meta, Panel, Video

EXTENSIONS = ("mp4", "m4v", "webm", "mov", "mkv", "avi")
MAGIC = (b"\x1aE\xdf\xa3",)
_STRIP = 6  # frames shown of a film

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
    panel = Panel(f"{kind}, {len(blob):,} bytes", [Video(_MIME[kind])], [("format", kind), ("size", f"{len(blob):,} bytes")])
    found = sound.film(blob, _STRIP, 160)
    if found is None or not found.frames:
        return panel
    panel.blocks.append(Frames(_jpeg(np.concatenate(found.frames, axis=1)), "image/jpeg", tuple(found.times)))
    panel.facts.extend([("size of a frame", f"{found.width}×{found.height}"), ("duration", f"{found.seconds:.2f} s")])
    panel.facts.extend([("frames a second", f"{found.rate:.4g}"), ("codec", found.codec)])
    return replace(panel, summary=f"{found.seconds:.2f} s, {found.width}×{found.height}, {found.codec}")


def _jpeg(pixels: NDArray[np.uint8]) -> bytes:
    from PIL import Image as Pil

    from tarviz.viewers.image import encode

    return encode(Pil.fromarray(pixels), "JPEG", 82)


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


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    found = sound.film(blob, 1, size)
    return _jpeg(found.frames[0]) if found and found.frames else f"▶ {view(blob, meta).summary}"
