"""Films: a player, whose bytes the host fetches in parts, and frames to find one's place by where PyAV is installed (extra `media`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import DataError, MissingPackageError
from tarviz.ops.values.films import FILMS, Cut, FilmFacts, decode_film, film_facts
from tarviz.ops.values.payloads import kind_of
from tarviz.viewers.image import encode
from tarviz.viewers.panel import Frames, Meta, Panel, Video

EXTENSIONS = tuple(ending for ending in FILMS if ending != "ts")  # which is TypeScript, too
_STRIP = 6  # frames shown of a film
_FIRST = 0.05  # seconds: the first frames of a film that does not say how long it is

_MIME = {"mp4": "video/mp4", "m4v": "video/mp4", "mov": "video/mp4", "webm": "video/webm", "mkv": "video/webm", "avi": "video/x-msvideo"}


def claims(head: bytes) -> bool:
    return kind_of("", head) == "film"


def view(blob: memoryview, meta: Meta) -> Panel:
    last = meta.ext.rpartition(".")[2]
    head = bytes(blob[:16])
    if head[4:8] == b"ftyp":
        kind = "mp4"
        _check_boxes(blob, meta.ext)
    elif head[:4] == b"\x1aE\xdf\xa3":
        kind = "webm"
    elif last not in _MIME or (last == "avi" and head[:4] == b"RIFF"):
        kind = "avi" if head[8:12] == b"AVI " else last
    else:
        raise DataError(f".{meta.ext} does not begin like a film.", code="E_DECODE")
    panel = Panel(
        f"{kind}, {len(blob):,} bytes", [Video(_MIME[kind])] if kind in _MIME else [], [("format", kind), ("size", f"{len(blob):,} bytes")]
    )
    try:
        facts = film_facts(blob)
        frames = _spread(blob, facts, _STRIP, 160)
    except MissingPackageError:
        return panel
    times = Cut(frames=len(frames)).times(facts.seconds) if facts.seconds else [0.0]
    panel.blocks.append(Frames(encode(np.concatenate(frames, axis=1), "JPEG", 82), "image/jpeg", tuple(round(time, 3) for time in times)))
    seconds = "" if facts.seconds is None else f"{facts.seconds:.2f} s, "
    panel.facts.extend([("size of a frame", f"{facts.width}×{facts.height}"), ("duration", seconds.removesuffix(", ") or "not said")])
    panel.facts.extend([("frames a second", f"{facts.rate:.4g}"), ("codec", facts.codec)])
    return replace(panel, summary=f"{seconds}{facts.width}×{facts.height}, {facts.codec}")


def _spread(blob: memoryview, facts: FilmFacts, count: int, side: int) -> list[NDArray[np.uint8]]:
    """`count` frames spread over a film, none larger than `side`; one where it does not say how long it is."""
    frames = decode_film(blob, Cut(frames=count) if facts.seconds else Cut(seconds=_FIRST), least=(side // 2, side // 2))
    step = -(-max(frames.shape[1:3]) // side)
    return list(frames[:count, ::step, ::step])


def _check_boxes(blob: memoryview, ext: str) -> None:
    """The top boxes of an MP4 must lie in the payload (ISO/IEC 14496-12 §4.2)."""
    at = 0
    for _ in range(64):
        if at + 8 > len(blob):
            return
        size = int.from_bytes(blob[at : at + 4], "big")
        if size == 1 and at + 16 <= len(blob):
            size = int.from_bytes(blob[at + 8 : at + 16], "big")
        if size == 0:
            return
        if size < 8 or at + size > len(blob):
            raise DataError(f".{ext} is a broken MP4: a box of {size:,} bytes at byte {at}.", code="E_DECODE")
        at += size


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    try:
        return encode(_spread(blob, film_facts(blob), 1, size)[0], "JPEG", 82)
    except MissingPackageError:
        return f"▶ {view(blob, meta).summary}"
