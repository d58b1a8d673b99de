"""Pictures: JPEG, PNG, WebP, GIF, BMP as they are, TIFF and others through PIL to PNG. Size is checked by header."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING

from tarviz.model.errors import DataError, LimitError
from tarviz.viewers.panel import MAX_PIXELS, Image, Meta, Note, Panel, Plot

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

EXTENSIONS = (
    "jpg",
    "jpeg",
    "jpe",
    "jfif",
    "png",
    "webp",
    "gif",
    "bmp",
    "tif",
    "tiff",
    "ppm",
    "pgm",
    "pbm",
    "pnm",
    "ico",
    "jp2",
    "tga",
    "avif",
)
MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"BM", b"II*\0", b"MM\0*", b"P6\n", b"P5\n")

_SHOWN_AS_IS = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif", "BMP": "image/bmp"}
_FIRST = ("JPEG", "PNG", "GIF", "BMP", "PPM")  # what PIL knows before it loads its 40 other plugins
_THEN = ("WEBP", "TIFF", "ICO", "JPEG2000", "TGA", "AVIF")
_ORIENTATION = 0x0112


def claims(head: bytes) -> bool:
    return head[:4] == b"RIFF" and head[8:12] == b"WEBP"


def open_picture(blob: memoryview, ext: str) -> Picture:
    """The picture's header, read and checked; pixels are not decoded yet.

    `LimitError` (E_IMAGE_TOO_LARGE) above 64 million pixels, `DataError` (E_DECODE) where it is no picture.
    """
    from PIL import Image as Pil

    if not len(blob):
        raise DataError(f".{ext} is empty, 0 bytes.", code="E_DECODE")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # our own limit below is the stricter one
        try:
            picture = _identify(blob)
        except Pil.DecompressionBombError as error:
            found = re.search(r"\d+", str(error))
            raise _too_large(int(found[0]) if found else 0, "") from error
        except (OSError, SyntaxError, ValueError, EOFError) as error:
            head = bytes(blob[:64]).lstrip().lower()
            what = "it is HTML" if head.startswith((b"<html", b"<!doctype", b"<script")) else "no picture format PIL knows, or cut short"
            raise DataError(f".{ext} is no picture: {what}.", code="E_DECODE") from error
    if picture.width * picture.height > MAX_PIXELS:
        raise _too_large(picture.width * picture.height, f"{picture.width}×{picture.height}, ")
    return picture


def _too_large(pixels: int, size: str) -> LimitError:
    text = f"{size}{pixels / 1e6:,.0f} million pixels are more than is decoded ({MAX_PIXELS // 1_000_000} million)."
    return LimitError(text, code="E_IMAGE_TOO_LARGE")


def _identify(blob: memoryview) -> Picture:
    from PIL import Image as Pil
    from PIL import UnidentifiedImageError

    try:
        return Pil.open(io.BytesIO(blob), formats=_FIRST)
    except UnidentifiedImageError:
        Pil.init()
        return Pil.open(io.BytesIO(blob), formats=[name for name in _THEN if name in Pil.OPEN])


def _load(picture: Picture, ext: str) -> None:
    try:
        picture.load()
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataError(f".{ext} is damaged: {error}.", code="E_DECODE") from error


def view(blob: memoryview, meta: Meta) -> Panel:
    picture = open_picture(blob, meta.ext)
    kind, mode, width, height = picture.format or "?", picture.mode, picture.width, picture.height
    facts = [("size", f"{width}×{height}"), ("mode", mode), ("format", kind)]
    frames = getattr(picture, "n_frames", 1)
    if frames > 1:
        facts.append(("frames", str(frames)))
    turn = picture.getexif().get(_ORIENTATION, 1)
    if turn != 1:
        facts.append(("EXIF orientation", str(turn)))
    _load(picture, meta.ext)
    mime = _SHOWN_AS_IS.get(kind, "")
    shown = Image(blob, mime, width, height) if mime else Image(encode(picture, "PNG"), "image/png", width, height)
    return Panel(f"{width}×{height} {mode} {kind}", [shown, _histogram(picture)], facts)


def _histogram(picture: Picture) -> Plot | Note:
    if picture.width * picture.height > 4_000_000:
        factor = int((picture.width * picture.height / 1_000_000) ** 0.5)
        picture = picture.reduce(factor) if picture.mode not in ("P", "1") else picture
    if picture.mode in ("P", "CMYK", "YCbCr", "LAB", "HSV", "PA"):
        picture = picture.convert("RGB")
    if picture.mode not in ("L", "LA", "RGB", "RGBA"):
        return Note(f"No histogram for mode {picture.mode}.")
    names = {"L": "grey", "R": "red", "G": "green", "B": "blue"}
    counts = picture.histogram()
    bands = [band for band in picture.getbands() if band in names]
    series = tuple((names[band], tuple(float(n) for n in counts[at * 256 : at * 256 + 256])) for at, band in enumerate(bands))
    return Plot("bars", series, "values 0…255")


def encode(picture: Picture, kind: str, quality: int = 80) -> bytes:
    """The picture as PNG, JPEG or WebP; modes a browser cannot show are converted."""
    if picture.mode in ("I;16", "I", "F", "I;16B"):
        picture = _stretched(picture)
    elif picture.mode not in ("L", "RGB", "RGBA"):
        picture = picture.convert("RGBA" if "transparency" in picture.info or picture.mode in ("LA", "PA", "La", "RGBa") else "RGB")
    out = io.BytesIO()
    if kind == "PNG":
        picture.save(out, "PNG", compress_level=1)
    else:
        picture.save(out, kind, quality=quality)
    return out.getvalue()


def _stretched(picture: Picture) -> Picture:
    import numpy as np
    from PIL import Image as Pil

    pixels = np.asarray(picture).astype("float64")
    low, high = float(np.nanmin(pixels)), float(np.nanmax(pixels))
    return Pil.fromarray(((pixels - low) * (255 / (high - low) if high > low else 0)).clip(0, 255).astype("uint8"))


def tile(blob: memoryview, meta: Meta, size: int) -> bytes:
    """A picture of at most `size` pixels a side, upright; JPEG is decoded at the smallest scale that suffices."""
    from PIL import ImageOps

    picture = open_picture(blob, meta.ext)
    small = picture.width <= size and picture.height <= size
    if not small:
        picture.draft("RGB", (size, size))
    _load(picture, meta.ext)
    if picture.getexif().get(_ORIENTATION, 1) != 1:
        picture = ImageOps.exif_transpose(picture)
    if picture.mode in ("P", "PA", "1"):
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    elif picture.mode not in ("L", "LA", "RGB", "RGBA", "I;16", "I", "F", "I;16B"):
        picture = picture.convert("RGB")
    if not small:
        if picture.mode in ("I;16", "I", "F", "I;16B"):
            picture = _stretched(picture)
        picture.thumbnail((size, size), reducing_gap=2.0)
    clear = picture.mode in ("RGBA", "LA")
    return encode(picture, "PNG" if clear or (small and picture.width * picture.height <= 96 * 96) else "JPEG")
