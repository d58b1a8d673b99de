"""Pictures: JPEG, PNG, WebP, GIF, BMP as they are, others through PIL or the readers of chains to PNG. Size is checked by header."""

from __future__ import annotations

import io
import math
import re
import struct
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tarviz.looks import tones
from tarviz.model.errors import DataError, LimitError, MissingPackageError
from tarviz.ops.values.payloads import PICTURES, kind_of
from tarviz.viewers.panel import MAX_PIXELS, Control, Image, Meta, Note, Panel, Plot

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image as Picture

EXTENSIONS = (*PICTURES, "ico", "tga", "exr", "pfm", "flo", "pdf")
MAGIC = (b"P6\n", b"P5\n")

_SHOWN_AS_IS = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif", "BMP": "image/bmp"}
_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "PPM", "WEBP", "TIFF", "ICO", "JPEG2000", "TGA", "AVIF")  # from the sixth on PIL loads all 45
_LOSSY = ("JPEG", "WEBP", "GIF")  # whose grey is never exact numbers
_NUMBERS = ("I;16", "I;16B", "I;16L", "I", "F")
_DTYPES = {"u1": "uint8", "u2": "uint16", "i4": "int32", "f4": "float32"}
_MAX_VALUES = 1 << 20
_MAX_SIDE = 2048
_ORIENTATION = 0x0112
# TIFF 6.0, section 8: sides, bits, bands and what kind of number; where strips and tiles are, and how long
_TAGS = (256, 257, 258, 277, 339, 273, 279, 324, 325)


def claims(head: bytes) -> bool:
    return kind_of("", head) == "picture"


def open_picture(blob: memoryview, ext: str) -> Picture:
    """The picture's header, read and checked; pixels are not decoded yet.

    What holds more than colours of 8 bits (16-bit colours, bands, EXR, PDF) is decoded, and comes as the colours that it is shown in.

    `LimitError` (E_IMAGE_TOO_LARGE) above 64 million pixels, `DataError` where it is not a picture (E_DECODE), and where it is one of a
    form that nothing here draws (E_NOT_SHOWN); `MissingPackageError`.
    """
    from PIL import Image as Pil

    if not len(blob):
        raise DataError(f".{ext} is empty, 0 bytes.", code="E_DECODE")
    if (array := wider(blob)) is not None:
        return Pil.fromarray(_colours(array))
    with warnings.catch_warnings(action="ignore"):  # our own limit below is the stricter one
        try:
            picture = Pil.open(io.BytesIO(blob), formats=_FORMATS)
        except Pil.DecompressionBombError as error:
            found = re.search(r"\d+", str(error))
            raise _too_large(int(found[0]) if found else 0, "") from error
        except (OSError, SyntaxError, ValueError, EOFError, KeyError) as error:  # the last of a Pillow without AVIF
            if form := _whole_tiff(blob):
                raise DataError(f"a TIFF that cannot be shown ({form}).", code="E_NOT_SHOWN") from error
            head = bytes(blob[:64]).lstrip().lower()
            what = "it is HTML" if head.startswith((b"<html", b"<!doctype", b"<script")) else "no picture format PIL knows, or cut short"
            raise DataError(f".{ext} is not a picture: {what}.", code="E_DECODE") from error
    _check_size(picture)
    return picture


def wider(blob: memoryview, page: int = 0) -> NDArray[Any] | None:
    """The numbers [h, w, bands] of a picture that holds more than PIL gives of it; None for all others.

    A TIFF or PNG of such a form is None as well where it cannot be read, or what reads it is not installed: PIL may still draw it.
    """
    from tarviz.ops.values.raster import USUAL_JPEG, is_beyond_pillow, jpeg_frame, read_raster

    own = is_beyond_pillow(blob) or (bytes(blob[:2]) == b"\xff\xd8" and jpeg_frame(blob) != USUAL_JPEG)
    tags = {} if own else _tiff_tags(blob)
    deep_png = bytes(blob[:8]) == b"\x89PNG\r\n\x1a\n" and bytes(blob[24:26]) in (b"\x10\2", b"\x10\6")
    bits, bands = max(tags.get(258, (1,))), tags.get(277, 1)
    deep_tiff = (bits > 8 and bands > 1) or bits == 64 or bands > 4 or max(tags.get(339, (1,))) == 2
    if not (own or deep_png or deep_tiff or bytes(blob[:4]) in (b"II+\0", b"MM\0+")):  # BigTIFF
        return None
    try:
        return read_raster(blob, page=page)
    except (DataError, MissingPackageError):
        if own:
            raise
        return None


def _tiff_tags(blob: memoryview) -> Mapping[int, Any]:
    """Those of `_TAGS` that the first picture of a TIFF has; none for anything else."""
    if bytes(blob[:4]) not in (b"II*\0", b"MM\0*"):
        return {}
    from PIL import TiffImagePlugin

    try:
        with warnings.catch_warnings(action="ignore"):  # of tags that are cut short
            tags = TiffImagePlugin.ImageFileDirectory_v2(bytes(blob[:8]))
            file = io.BytesIO(blob)
            file.seek(tags.next)
            tags.load(file)
            return {number: tags[number] for number in _TAGS if number in tags}
    except (OSError, SyntaxError, ValueError, EOFError, KeyError, TypeError, struct.error):
        return {}


def _whole_tiff(blob: memoryview) -> str:
    """What the first picture of a TIFF is, where all its strips or tiles are there: "13 bands of 16 bits"; "" for anything else."""
    tags = _tiff_tags(blob)
    places, sizes = tags.get(273) or tags.get(324) or (), tags.get(279) or tags.get(325) or ()
    whole = bool(places) and len(places) == len(sizes) and all(at + size <= len(blob) for at, size in zip(places, sizes, strict=True))
    return f"{tags.get(277, 1)} bands of {tags.get(258, (1,))[0]} bits" if whole and tags.get(256) and tags.get(257) else ""


def _check_size(picture: Picture) -> None:
    if picture.width * picture.height > MAX_PIXELS:
        raise _too_large(picture.width * picture.height, f"{picture.width}×{picture.height}, ")


def _too_large(pixels: int, size: str) -> LimitError:
    text = f"{size}{pixels / 1e6:,.0f} million pixels are more than is decoded ({MAX_PIXELS // 1_000_000} million)."
    return LimitError(text, code="E_IMAGE_TOO_LARGE")


def _load(picture: Picture, ext: str) -> Picture:
    """The picture with its pixels, upright, its alpha not multiplied into them."""
    from tarviz.ops.values.pictures import load_pixels

    try:
        upright = load_pixels(picture, orient=True)
        return upright.convert(f"{upright.mode[:-1]}A") if upright.mode in ("La", "RGBa") else upright
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataError(f".{ext} is damaged: {error}.", code="E_DECODE") from error


def view(blob: memoryview, meta: Meta) -> Panel:
    from tarviz.ops.values.raster import page_count

    page = max(int(meta.options.get("page", 0)), 0)
    if (array := wider(blob, page)) is not None:
        height, width, bands = array.shape
        panel = Panel(f"{width}×{height}, {bands} × {array.dtype}", facts=[("size", f"{width}×{height}"), ("dtype", str(array.dtype))])
        _turn_pages(panel, page, page_count(blob))
        planes(array, meta, panel)
        return panel
    picture = open_picture(blob, meta.ext)
    frames = getattr(picture, "n_frames", 1)
    if page and picture.format == "TIFF":
        picture.seek(min(page, frames - 1))
        _check_size(picture)
    kind, mode, width, height = picture.format or "?", picture.mode, picture.width, picture.height
    facts = [("size", f"{width}×{height}"), ("mode", mode), ("format", kind)]
    if frames > 1:
        facts.append(("pages" if kind == "TIFF" else "frames", str(frames)))
    turn = picture.getexif().get(_ORIENTATION, 1)
    if turn != 1:
        facts.append(("EXIF orientation", str(turn)))
    picture = _load(picture, meta.ext)
    panel = Panel(f"{width}×{height} {mode} {kind}", facts=facts)
    _turn_pages(panel, page, frames if kind == "TIFF" else 1)
    mime = _SHOWN_AS_IS.get(kind, "")
    if mode in _NUMBERS or (mode == "L" and kind not in _LOSSY):
        numbers(_array(picture), meta, panel, as_it_is=Image(blob, mime, width, height) if mime and mode == "L" else None)
        return panel
    shown = Image(blob, mime, width, height) if mime else Image(encode(picture, "PNG"), "image/png", *picture.size)
    panel.blocks.extend([shown, _histogram(picture)])
    return panel


def _turn_pages(panel: Panel, page: int, count: int) -> None:
    if count > 1:
        panel.controls.append(Control("page", "page", min(page, count - 1), high=count - 1))


def _colours(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Numbers [h, w, bands] as the colours in which `planes` shows them first."""
    bands = array.shape[2]
    if bands == 2 and array.dtype.kind == "f":
        return tones.flow_colours(array)[0]
    return tones.colour(array)[0] if bands in (3, 4) else tones.shade(array[:, :, 0])[0]


def planes(array: NDArray[Any], meta: Meta, panel: Panel, *, usual: str = "grey", windows: Sequence[str] = ()) -> None:
    """Into `panel`: numbers [h, w, bands] as what they are: three or four bands as colours, two of fractions as motion, others one at a
    time; with their window, and the choice of seeing any band alone."""
    bands = array.shape[2]
    if bands == 1:
        numbers(array[:, :, 0], meta, panel, usual=usual, windows=windows)
        return
    ways = ("colours", "bands") if bands in (3, 4) else ("motion", "bands") if bands == 2 and array.dtype.kind == "f" else ("bands",)
    ways = ("bands", "colours") if bands > 4 else ways
    way = wish if (wish := str(meta.options.get("as"))) in ways else ways[0]
    if len(ways) > 1:
        panel.controls.append(Control("as", "shown as", way, choices=ways))
    if way == "bands":
        at = min(max(int(meta.options.get("band", 0)), 0), bands - 1)
        panel.controls.append(Control("band", "band", at, high=bands - 1))
        numbers(np.ascontiguousarray(array[:, :, at]), meta, panel, usual=usual, windows=windows)
        return
    step = max(1, math.ceil(max(array.shape[:2]) / _MAX_SIDE))
    array = array[::step, ::step]
    if way == "motion":
        shown, longest = tones.flow_colours(array)
        label = f"direction as colour, {longest:.4g} px or more in full strength"
    else:
        shown, tone = tones.colour(array[:, :, :3] if bands > 4 else array, meta.options.get("window", ""))
        label = str(tone) if array.dtype != np.uint8 else "as it is"
        if array.dtype != np.uint8:
            panel.controls.append(Control("window", "window", tone.window, choices=tones.WINDOWS))
    label += f", one pixel in {step}" if step > 1 else ""
    panel.blocks.extend([drawing(shown, label), _values_histogram(array)])


def numbers(
    array: NDArray[Any], meta: Meta, panel: Panel, *, usual: str = "grey", windows: Sequence[str] = (), as_it_is: Image | None = None
) -> None:
    """Into `panel`: an array [h, w] as colours, with its values, the choice of window and palette, and how often values come.

    `windows` of its own are offered before those of every picture; the first is taken unless another is asked for.
    """
    shown, tone = tones.shade(array, meta.options.get("window", next(iter(windows), "")), meta.options.get("palette", ""), usual=usual)
    panel.controls.append(Control("window", "window", tone.window, choices=(*windows, *tones.WINDOWS)))
    panel.controls.append(Control("palette", "colours", tone.palette, choices=tones.PALETTES))
    step = max(1, math.ceil(math.sqrt(array.size / _MAX_VALUES)))
    dtype = _dtype(array)
    if as_it_is is not None and (tone.window, tone.palette) == ("raw", "grey"):
        panel.blocks.append(as_it_is)
    else:
        names = tuple(str(name) for name in meta.options.get("classes") or ()) if tone.palette == "ids" else ()
        values = array[::step, ::step].astype(f"<{dtype}").tobytes()
        panel.blocks.append(replace(drawing(shown, str(tone)), values=values, dtype=_DTYPES[dtype], step=step, names=names))
    panel.blocks.append(_values_histogram(array))


def drawing(pixels: NDArray[np.uint8], label: str) -> Image:
    """Colours [h, w] or [h, w, 3 or 4] as a picture to be shown."""
    return Image(encode(pixels, "PNG"), "image/png", pixels.shape[1], pixels.shape[0], label)


def _values_histogram(array: NDArray[Any]) -> Plot:
    counts, low, high = tones.histogram(array)
    return Plot("bars", (("grey", tuple(counts)),), f"values {low:.5g}…{high:.5g}")


def _dtype(array: NDArray[Any]) -> str:
    """The kind of numbers a browser is sent these as."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind in "bu" and size < 4:
        return f"u{size}"
    return "i4" if kind == "i" and size < 8 else "f4"


def _array(picture: Picture) -> NDArray[Any]:
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
    counts = np.reshape(picture.histogram(), (-1, 256)).astype(float)
    series = zip(picture.getbands(), map(tuple, counts.tolist()), strict=True)
    return Plot("bars", tuple((names[band], row) for band, row in series if band in names), "values 0…255")


def encode(picture: Picture | NDArray[np.uint8], kind: str, quality: int = 80) -> bytes:
    """The picture, or its pixels, as PNG, JPEG or WebP; modes a browser cannot show are converted."""
    if isinstance(picture, np.ndarray):
        from PIL import Image as Pil

        picture = Pil.fromarray(picture)
    elif picture.mode in _NUMBERS:
        picture = _shade(picture)
    elif picture.mode not in ("L", "RGB", "RGBA"):
        picture = picture.convert("RGBA" if "transparency" in picture.info or picture.mode in ("LA", "PA", "La", "RGBa") else "RGB")
    out = io.BytesIO()
    if kind == "PNG":
        picture.save(out, "PNG", compress_level=1)
    else:
        picture.save(out, kind, quality=quality)
    return out.getvalue()


def _shade(picture: Picture) -> Picture:
    from PIL import Image as Pil

    return Pil.fromarray(tones.shade(_array(picture))[0])


def tile(blob: memoryview, meta: Meta, size: int) -> bytes:
    """A picture of at most `size` pixels a side, upright; JPEG is decoded at the smallest scale that suffices."""
    picture = open_picture(blob, meta.ext)
    small = picture.width <= size and picture.height <= size
    if not small:
        picture.draft("RGB", (size, size))
    picture = _load(picture, meta.ext)
    if picture.mode in ("P", "PA", "1"):
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    elif picture.mode in _NUMBERS or (picture.mode == "L" and picture.format not in _LOSSY and tones.is_ids(_array(picture))):
        picture = _shade(picture)  # before it is made small, so that it has the colours of the whole
    elif picture.mode not in ("L", "LA", "RGB", "RGBA"):
        picture = picture.convert("RGB")
    if not small:
        picture.thumbnail((size, size), reducing_gap=2.0)
    clear = picture.mode in ("RGBA", "LA")
    return encode(picture, "PNG" if clear or (small and picture.width * picture.height <= 96 * 96) else "JPEG")
