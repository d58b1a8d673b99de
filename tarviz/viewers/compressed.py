"""A compressed field (`json.gz`, `txt.zst`, `bz2`, `xz`): unpacked once, within limits, then shown as what is inside."""

from __future__ import annotations

import io
from dataclasses import replace

from tarviz.formats import compression
from tarviz.model.errors import DataError, LimitError
from tarviz.viewers import registry
from tarviz.viewers.panel import Meta, Note, Panel

EXTENSIONS = ("gz", "zst", "bz2", "xz")
MAGIC = tuple(compression.MAGIC)

_STEP = 1 << 18
_MEMORY = 256 << 20  # bytes that xz may work with; what it asks for, a payload says


def unpack(blob: memoryview, meta: Meta) -> tuple[bytes, str]:
    """The content and the name of the compression, found by magic bytes. `LimitError` as soon as a limit is passed."""
    if (name := compression.kind(bytes(blob[:6]))) is None:
        raise DataError(f".{meta.ext} is not compressed by gzip, bzip2, xz or zstd.", code="E_DECODE")
    source = compression.Inflater(io.BytesIO(blob), name, memory=_MEMORY)
    content, piece = bytearray(), memoryview(bytearray(_STEP))
    try:
        while count := source.readinto(piece):
            content += piece[:count]
            meta.check_unpacked(len(content))
    except LimitError:
        raise
    except DataError as error:
        raise DataError(f".{meta.ext} is damaged: {error.message}", code="E_DECODE") from error
    return bytes(content), name


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
