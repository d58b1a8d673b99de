"""Payloads of every kind, made here."""

from __future__ import annotations

import io
import struct
import tempfile
import wave
from pathlib import Path

import numpy as np
from PIL import Image


def encoded(kind: str, size: tuple[int, int] = (20, 10), mode: str = "RGB", **options: object) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 255, (size[1], size[0], 4), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(out, kind, **options)
    return out.getvalue()


def saved(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def zipped(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def sound(seconds: float = 0.1, width: int = 2) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(bytes(range(256)) * int(seconds * 8000 * 2 * width / 256))
    return out.getvalue()


def tenbin(*arrays: np.ndarray) -> bytes:
    out = b""
    for array in arrays:
        head = struct.pack("<8s8sq", array.dtype.str[1:].encode(), b"", array.ndim) + struct.pack(f"<{array.ndim}q", *array.shape)
        for chunk in (head, array.tobytes()):
            out += b"~TenBin~" + struct.pack("<q", len(chunk)) + chunk + b"\0" * (-len(chunk) % 64)
    return out


def box(kind: bytes, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload) + 8) + kind + payload


def exr_of(exr, **channels: np.ndarray) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        exr.File(
            {"compression": exr.ZIP_COMPRESSION, "type": exr.scanlineimage},
            {name: np.ascontiguousarray(one) for name, one in channels.items()},
        ).write(f"{folder}/x.exr")
        return Path(folder, "x.exr").read_bytes()


def pdf_of(pdf, *sizes: tuple[float, float]) -> bytes:
    out = io.BytesIO()
    document = pdf.PdfDocument.new()
    for size in sizes:
        document.new_page(*size)
    document.save(out)
    return out.getvalue()


LOCKED_PDF = b"""%%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>endobj
4 0 obj<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>endobj
trailer<</Root 1 0 R/Encrypt 4 0 R/ID[<01><01>]>>
%%%%EOF
""" % (b"11" * 32, b"22" * 32)
