"""How outputs are packed: gzip, zlib, zstd, bzip2, xz."""

from __future__ import annotations

import bz2
import lzma
from types import ModuleType
from typing import Literal, Protocol, TypeAlias

from tarviz.model.errors import require
from tarviz.model.types import Buffer
from tarviz.model.urls import without_query

_deflate: ModuleType
try:
    from isal import isal_zlib as _deflate

    _LEVEL = 2  # isal has 0 to 3; 2 packs about as well as zlib's 3, ten times as fast
except ImportError:  # no wheel for this machine
    import zlib as _deflate

    _LEVEL = 3

Packing: TypeAlias = Literal["gzip", "zlib", "zstd", "bzip2", "xz"]

_SUFFIXES: dict[Packing, tuple[str, ...]] = {
    "gzip": (".gz", ".tgz"),
    "zstd": (".zst", ".tzst"),
    "bzip2": (".bz2", ".tbz2"),
    "xz": (".xz", ".txz"),
}


class Packer(Protocol):
    """Packs what it is given, piece by piece."""

    def compress(self, data: Buffer, /) -> bytes: ...

    def flush(self) -> bytes:
        """What is left; nothing may follow."""
        ...


def packing(url: str) -> Packing | None:
    """What the name of an output asks for.

    >>> packing("a.tgz"), packing("a.tar.zst"), packing("a.tar")
    ('gzip', 'zstd', None)
    """
    name = without_query(url)[0].lower()
    return next((how for how, suffixes in _SUFFIXES.items() if name.endswith(suffixes)), None)


def packer(how: Packing) -> Packer:
    """A packer of that kind. `MissingPackageError` where it needs one that is not installed."""
    made: Packer
    if how == "zstd":
        made = require("zstandard", "Writing .zst", "fast").ZstdCompressor(level=3).compressobj()
    elif how == "bzip2":
        made = bz2.BZ2Compressor()
    elif how == "xz":
        made = lzma.LZMACompressor(lzma.FORMAT_XZ, preset=1)
    else:  # 31 and 15: a gzip or a zlib header and trailer around the deflate stream (zlib.h)
        made = _deflate.compressobj(_LEVEL, _deflate.DEFLATED, 31 if how == "gzip" else 15)
    return made
