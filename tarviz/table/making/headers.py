"""Pictures, sounds and arrays described by their first bytes: nothing is decoded.

A reader takes the first bytes of a payload and its whole size; it returns what it found, None where the payload is not
what its name says, or the number of bytes it needs to see: more than it was given, no more than there are.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable
from typing import Any, TypeAlias

Found: TypeAlias = tuple[Any, ...] | int | None
FIRST = 1024  # bytes of a payload looked at first
LIMIT = 1 << 20  # a header that needs more is none; twice what is needed is looked at

_SOF = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_MODES = {1: "L", 3: "RGB", 4: "CMYK"}
_PNG_MODES = {0: "L", 2: "RGB", 3: "P", 4: "LA", 6: "RGBA"}


def picture(data: bytes, size: int) -> Found:
    """(width, height, mode) of a picture, mode in PIL's words.

    >>> picture(b"GIF89a\\x20\\x00\\x10\\x00", 10)
    (32, 16, 'P')
    """
    if data[:2] == b"\xff\xd8":
        return _jpeg(data, size)
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return _png(data)
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return (*struct.unpack_from("<HH", data, 6), "P") if len(data) >= 10 else None
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    return _any_picture(data, size)


def _jpeg(data: bytes, size: int) -> Found:
    at, end = 2, len(data)
    while at + 10 <= end:
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker in _SOF:
            height, width, bands = struct.unpack_from(">HHB", data, at + 5)
            return width, height, _JPEG_MODES.get(bands, "?")
        if marker == 0xFF:
            at += 1
        elif marker == 0xDA or marker == 0xD9:
            return None
        else:
            at += 2 + (data[at + 2] << 8 | data[at + 3])
    return at + 10 if at + 10 <= min(size, LIMIT) else None


def _png(data: bytes) -> Found:
    if len(data) < 29 or data[12:16] != b"IHDR":
        return None
    width, height, depth, color = struct.unpack_from(">IIBB", data, 16)
    mode = _PNG_MODES.get(color)
    if color == 0 and depth in (1, 16):
        mode = "1" if depth == 1 else "I;16"
    return (width, height, mode) if mode else None


def _webp(data: bytes) -> Found:
    form = data[12:16]
    if form == b"VP8 " and len(data) >= 30:
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF, "RGB"
    if form == b"VP8L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, "RGBA" if bits >> 28 & 1 else "RGB"
    if form == b"VP8X" and len(data) >= 30:
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
        return width, height, "RGBA" if data[20] & 0x10 else "RGB"
    return None


def _any_picture(data: bytes, size: int) -> Found:
    """What PIL makes of the header: BMP, TIFF, PPM and what else it knows."""
    import io

    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.width, image.height, image.mode
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return min(size, LIMIT) if len(data) < min(size, LIMIT) else None


def sound(data: bytes, size: int) -> Found:
    """(seconds, samples a second) of WAV and FLAC; of a film seconds and frames a second. Others need the package av."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return _wav(data, size)
    if data[:4] == b"fLaC" and len(data) >= 26:
        packed = int.from_bytes(data[18:26], "big")
        rate, samples = packed >> 44, packed & ((1 << 36) - 1)
        if samples or not rate:  # what was written into a pipe does not say how many there are
            return (samples / rate, float(rate)) if rate else None
    if len(data) < size:
        return size
    return _film(data)


def _wav(data: bytes, size: int) -> Found:
    at, rate, speed = 12, 0, 0
    while at + 8 <= len(data):
        name, length = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if name == b"fmt " and at + 24 <= len(data):
            rate, speed = (int.from_bytes(data[at + begin : at + begin + 4], "little") for begin in (12, 16))  # speed: bytes a second
        elif name == b"data":
            length = min(length, size - at - 8)
            return (length / speed, float(rate)) if rate and speed else None
        at += 8 + length + (length & 1)
    return at + 24 if at + 24 <= size else None


def _film(data: bytes) -> Found:
    try:
        import av
    except ImportError:
        return None
    import io

    try:
        with av.open(io.BytesIO(data)) as film:
            seconds = film.duration / av.time_base if film.duration else None
            if film.streams.video:
                rate = film.streams.video[0].average_rate
            else:
                rate = film.streams.audio[0].rate if film.streams.audio else None
            return seconds, None if rate is None else float(rate)
    except (av.FFmpegError, OSError, ValueError):
        return None


def array(data: bytes, size: int) -> Found:
    """(dtype, shape) of a NumPy file."""
    if data[:6] != b"\x93NUMPY" or len(data) < 12:
        return None
    wide = data[6] >= 2
    begin = 12 if wide else 10
    end = begin + int.from_bytes(data[8:begin], "little")
    if end > len(data):
        return end if end <= min(size, LIMIT) else None
    try:
        head = ast.literal_eval(data[begin:end].decode("latin-1").strip())
        shape = [int(each) for each in head["shape"]]
        kind = head["descr"]
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        return None
    return str(kind), shape


READERS: dict[str, Callable[[bytes, int], Found]] = {"picture": picture, "sound": sound, "array": array}
