"""Pictures: JPEG, PNG, WebP, GIF, BMP as they are, TIFF and others through PIL to PNG. Size is checked by header."""

from __future__ import annotations

import io
import math
import re
import struct
import warnings
from typing import TYPE_CHECKING, Any

from tarviz.looks import tones
from tarviz.model.errors import DataError, LimitError
from tarviz.viewers.panel import MAX_PIXELS, Control, Image, Meta, Note, Panel, Plot

if TYPE_CHECKING:
    from numpy.typing import NDArray
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
_LOSSY = ("JPEG", "WEBP", "GIF")  # whose grey is never exact numbers
_NUMBERS = ("I;16", "I;16B", "I;16L", "I", "F")
_DTYPES = {"u1": "uint8", "u2": "uint16", "i4": "int32", "f4": "float32"}
_MAX_VALUES = 1 << 20
_ORIENTATION = 0x0112


def claims(head: bytes) -> bool:
    return head[:4] == b"RIFF" and head[8:12] == b"WEBP"


def open_picture(blob: memoryview, ext: str) -> Picture:
    """The picture's header, read and checked; pixels are not decoded yet.

    `LimitError` (E_IMAGE_TOO_LARGE) above 64 million pixels, `DataError` where it is not a picture (E_DECODE), and where it is one of a
    form that PIL does not draw (E_NOT_SHOWN).
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
            if form := _whole_tiff(blob):
                raise DataError(f"a TIFF that cannot be shown ({form}).", code="E_NOT_SHOWN") from error
            head = bytes(blob[:64]).lstrip().lower()
            what = "it is HTML" if head.startswith((b"<html", b"<!doctype", b"<script")) else "no picture format PIL knows, or cut short"
            raise DataError(f".{ext} is not a picture: {what}.", code="E_DECODE") from error
    if picture.width * picture.height > MAX_PIXELS:
        raise _too_large(picture.width * picture.height, f"{picture.width}×{picture.height}, ")
    return picture


def _whole_tiff(blob: memoryview) -> str:
    """What the first picture of a TIFF is, where all its strips or tiles are there: "13 bands of 16 bits"; "" for anything else.

    Tags: TIFF 6.0, section 8, and 273/279 (strips), 324/325 (tiles).
    """
    from PIL import TiffImagePlugin

    try:
        tags = TiffImagePlugin.ImageFileDirectory_v2(bytes(blob[:8]))
        file = io.BytesIO(blob)
        file.seek(tags.next)
        tags.load(file)
        places = tags.get(273) or tags.get(324) or ()
        sizes = tags.get(279) or tags.get(325) or ()
        whole = bool(places) and all(at + size <= len(blob) for at, size in zip(places, sizes, strict=True))
        bits = tags.get(258, (1,))
        return f"{tags.get(277, 1)} bands of {bits[0]} bits" if whole and tags[256] and tags[257] else ""
    except (OSError, SyntaxError, ValueError, EOFError, KeyError, TypeError, struct.error):
        return ""


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
    panel = Panel(f"{width}×{height} {mode} {kind}", facts=facts)
    mime = _SHOWN_AS_IS.get(kind, "")
    if mode in _NUMBERS or (mode == "L" and kind not in _LOSSY):
        numbers(_array(picture), meta, panel, as_it_is=Image(blob, mime, width, height) if mime and mode == "L" else None)
        return panel
    shown = Image(blob, mime, width, height) if mime else Image(encode(picture, "PNG"), "image/png", width, height)
    panel.blocks.extend([shown, _histogram(picture)])
    return panel


def numbers(array: NDArray[Any], meta: Meta, panel: Panel, *, usual: str = "grey", as_it_is: Image | None = None) -> None:
    """Into `panel`: an array [h, w] as colours, with its values, the choice of window and palette, and how often values come."""
    from PIL import Image as Pil

    shown, tone = tones.shade(array, meta.options.get("window", ""), meta.options.get("palette", ""), usual=usual)
    panel.controls.append(Control("window", "window", tone.window, choices=tones.WINDOWS))
    panel.controls.append(Control("palette", "colours", tone.palette, choices=tones.PALETTES))
    step = max(1, math.ceil(math.sqrt(array.size / _MAX_VALUES)))
    dtype = _dtype(array)
    height, width = array.shape
    if as_it_is is not None and (tone.window, tone.palette) == ("raw", "grey"):
        panel.blocks.append(as_it_is)
    else:
        names = tuple(str(name) for name in meta.options.get("classes") or ()) if tone.palette == "ids" else ()
        values = array[::step, ::step].astype(f"<{dtype}").tobytes()
        data = encode(Pil.fromarray(shown), "PNG")
        panel.blocks.append(Image(data, "image/png", width, height, str(tone), values, _DTYPES[dtype], step, names))
    counts, low, high = tones.histogram(array)
    panel.blocks.append(Plot("bars", (("grey", tuple(counts)),), f"values {low:.5g}…{high:.5g}"))


def _dtype(array: NDArray[Any]) -> str:
    """The kind of numbers a browser is sent these as."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind in "bu" and size <= 2:
        return "u1" if size == 1 else "u2"
    return "i4" if kind in "ui" and size <= 4 and (kind == "i" or size < 4) else "f4"


def _array(picture: Picture) -> NDArray[Any]:
    import numpy as np

    array = np.asarray(picture)
    return array.astype(array.dtype.newbyteorder("=")) if array.dtype.byteorder == ">" else array


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
    if picture.mode in _NUMBERS:
        picture = _shaded(picture)
    elif picture.mode not in ("L", "RGB", "RGBA"):
        picture = picture.convert("RGBA" if "transparency" in picture.info or picture.mode in ("LA", "PA", "La", "RGBa") else "RGB")
    out = io.BytesIO()
    if kind == "PNG":
        picture.save(out, "PNG", compress_level=1)
    else:
        picture.save(out, kind, quality=quality)
    return out.getvalue()


def _shaded(picture: Picture) -> Picture:
    from PIL import Image as Pil

    return Pil.fromarray(tones.shade(_array(picture))[0])


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
    elif picture.mode in _NUMBERS or (picture.mode == "L" and picture.format not in _LOSSY and tones.is_ids(_array(picture))):
        picture = _shaded(picture)  # before it is made small, so that it has the colours of the whole
    elif picture.mode not in ("L", "LA", "RGB", "RGBA"):
        picture = picture.convert("RGB")
    if not small:
        picture.thumbnail((size, size), reducing_gap=2.0)
    clear = picture.mode in ("RGBA", "LA")
    return encode(picture, "PNG" if clear or (small and picture.width * picture.height <= 96 * 96) else "JPEG")
