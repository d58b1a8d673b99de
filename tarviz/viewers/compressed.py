"""A compressed field (`json.gz`, `txt.zst`, `bz2`, `xz`): unpacked once, within limits, then shown as what is inside."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tarviz.model.errors import DataError, MissingPackageError
from tarviz.viewers import registry
from tarviz.viewers.panel import Meta, Note, Panel

EXTENSIONS = ("gz", "zst", "bz2", "xz")
MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ\0")

_STEP = 1 << 18


class _Zlib:
    """zlib's object behind the interface of bz2 and lzma: input it did not take yet is kept inside."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes, limit: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, limit)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data


_OPEN: dict[bytes, tuple[str, Callable[[], Any]]] = {
    b"\x1f\x8b": ("gzip", _Zlib),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
    b"\xfd7zXZ\0": ("xz", lambda: lzma.LZMADecompressor(memlimit=256 << 20)),
}


def unpack(blob: memoryview, meta: Meta) -> tuple[bytes, str]:
    """The content and the name of the compression, found by magic bytes. `LimitError` as soon as a limit is passed."""
    head = bytes(blob[:6])
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return _zstd(blob, meta), "zstd"
    for magic, (name, opener) in _OPEN.items():
        if head.startswith(magic):
            try:
                return _stream(blob, meta, opener, magic), name
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                raise DataError(f".{meta.ext} is damaged {name}: {error}.", code="E_DECODE") from error
    raise DataError(f".{meta.ext} is not compressed by gzip, bzip2, xz or zstd.", code="E_DECODE")


def _stream(blob: memoryview, meta: Meta, opener: Callable[[], Any], magic: bytes) -> bytes:
    pieces: list[bytes] = []
    total = 0
    stream = opener()
    data = bytes(blob)
    while True:
        piece = stream.decompress(data, _STEP)
        data = b""
        total += len(piece)
        pieces.append(piece)
        meta.check_unpacked(total, len(blob))
        if stream.eof:
            data = stream.unused_data
            if not data.startswith(magic):
                return b"".join(pieces)
            stream = opener()
        elif not piece and stream.needs_input:
            raise EOFError("it ends too early")


def _zstd(blob: memoryview, meta: Meta) -> bytes:
    try:
        import zstandard
    except ImportError as error:
        raise MissingPackageError.of("zstandard", "Looking into a .zst field", "fast") from error
    pieces: list[bytes] = []
    total = 0
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(blob, read_across_frames=True) as stream:
            while piece := stream.read(_STEP):
                total += len(piece)
                pieces.append(piece)
                meta.check_unpacked(total, len(blob))
    except zstandard.ZstdError as error:
        raise DataError(f".{meta.ext} is damaged zstd: {error}.", code="E_DECODE") from error
    return b"".join(pieces)


def _inside(blob: memoryview, meta: Meta) -> tuple[bytes, Meta, str]:
    data, name = unpack(blob, meta)
    return data, replace(meta, ext=meta.ext.rpartition(".")[0]), name


def view(blob: memoryview, meta: Meta) -> Panel:
    data, inner, name = _inside(blob, meta)
    if registry.choose(inner.ext, data[:4096]) == "compressed":
        return Panel(f"{name}, twice compressed", [Note("The content is compressed once more and is not unpacked further.", "warn")])
    panel = registry.view(data, inner)
    facts = [("compression", f"{name}, {len(blob):,} → {len(data):,} bytes"), *panel.facts]
    return replace(panel, summary=f"{name}: {panel.summary}", facts=facts)


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    data, inner, name = _inside(blob, meta)
    if registry.choose(inner.ext, data[:4096]) == "compressed":
        return f"{name}, twice compressed"
    return registry.tile(data, inner, size)
