"""Pictures as a chain asks for them: colours of 8 bits, or the file's own numbers (16 bits, fractions, bands, palettes, pages)."""

from __future__ import annotations

import io
import logging
import re
import struct
import tempfile
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import DataError, TarvizError, require
from tarviz.model.types import Buffer
from tarviz.ops.values.pictures import check_size, decode_colours, decoding, load_pixels, open_picture, own_mode, reason

_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_JPEG_2000 = (b"\0\0\0\x0cjP  ", b"\xffO\xffQ")
_JPEG_XL = (b"\xff\n", b"\0\0\0\x0cJXL ")
_NETPBM = (b"P2", b"P3", b"P5", b"P6")
_NETPBM_HEADER = re.compile(rb"P\d" + rb"(?:\s|#[^\n]*\n)*(\d{1,9})(?!\d)" * 3)  # width, height, the largest number
_PDF = b"%PDF-"
_FRACTIONS = (b"v/1\x01", b"PF\n", b"Pf\n", b"PIEH")  # EXR; PFM, colour and grey; Middlebury's FLO
_PDFIUM = threading.Lock()  # which no two threads may be inside: https://pypdfium2.readthedocs.io/en/stable/readme.html
_PAGE_SCALE = 2.0  # pixels a point (1/72 inch) of a PDF
# TIFF 6.0, PhotometricInterpretation: a palette; CMYK, YCbCr and Lab, of which Pillow makes RGB.
_PALETTE, _CONVERTED = 3, (5, 6, 8)
# R, G, B to grey in 1/65536: Pillow's own, ITU-R 601-2 (libImaging/Convert.c, L24).
_GREY = (19595, 38470, 7471)
# EXIF 2.32, Orientation: how many quarters a picture is turned counterclockwise, and whether it is mirrored first.
_TURNS = {2: (0, True), 3: (2, False), 4: (2, True), 5: (1, True), 6: (3, False), 7: (3, True), 8: (1, False)}


def decode_picture(
    data: Buffer,
    *,
    channels: int = 3,
    orient: bool = False,
    least: tuple[int, int] | None = None,
    dtype: str | None = None,
    page: int = 0,
) -> NDArray[Any]:
    """The picture [height, width, channels], in memory of its own.

    `channels` 1, 3 or 4 converts (alpha is dropped, not blended; a palette is looked up; CMYK is converted), and without a `dtype`
    gives uint8, of 16-bit samples the high byte. 0 keeps what the file holds: every band, its dtype, the numbers of a palette.
    With a `dtype` the file's numbers come in it, never scaled. An animation gives its first frame, `page` another page of a TIFF or a PDF.
    `orient=True` turns the picture as its EXIF tag says; TensorFlow and the default do not.
    `least`, (height, width) in pixels: a JPEG is decoded at a half, a quarter or an eighth of its sides, the smallest of
    these that is at least that large (libjpeg's scaled decoding); other pictures, and smaller ones, are not scaled.

    Errors: `E_IMAGE_TOO_LARGE` above 64 Mpx or 256 MB, `E_DECODE` for anything that is not a whole picture or does not fit into `dtype`,
    `E_MISSING_PACKAGE` where a file takes a library of the extra `media`.
    """
    head = bytes(data[:16])
    is_jpeg = head[:2] == b"\xff\xd8"
    plain = channels != 0 and dtype in (None, "uint8")
    ours = head[:4] in _TIFF if page else not is_beyond_pillow(data)
    if ours and (plain or (is_jpeg and jpeg_frame(data) == USUAL_JPEG)):
        try:
            return in_dtype(decode_colours(data, channels, orient=orient, least=least, page=page), dtype)
        except DataError as error:
            raise _beyond_colours(data, error, page) from error.__cause__
    pixels = in_channels(read_raster(data, page=page, colours=channels != 0, orient=orient), channels)
    return _high_byte(pixels) if plain else in_dtype(pixels, dtype)


def _beyond_colours(data: Buffer, error: DataError, page: int) -> DataError:
    """The same error, or where the picture is whole and holds more than colours of 8 bits one that says how to have that."""
    if error.code != "E_DECODE" or error.hint or not bytes(data[:16]).startswith((*_TIFF, *_JPEG_2000, b"\xff\xd8")):
        return error
    try:
        pixels = read_raster(data, page=page)
    except TarvizError:
        return error
    held = f"{pixels.dtype} in {pixels.shape[2]} band{'s' if pixels.shape[2] > 1 else ''}"
    hint = f"channels=0, dtype={pixels.dtype} keeps what it holds."
    return DataError(f"it is a whole picture of {held}, which are no colours of 8 bits.", code="E_DECODE", hint=hint)


def _high_byte(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    if pixels.dtype == np.uint16:
        return (pixels >> 8).astype(np.uint8)
    if pixels.dtype != np.uint8:
        hint = f"dtype={pixels.dtype} keeps them."
        raise DataError(f"it holds {pixels.dtype}, which are no colours of 8 bits.", code="E_DECODE", hint=hint)
    return pixels


def read_raster(data: Buffer, *, page: int = 0, colours: bool = False, orient: bool = False) -> NDArray[Any]:
    """The numbers of a picture [height, width, bands] in the dtype that the file has: bool as uint8, others as they are.

    A palette gives its numbers, one band, or with `colours` what they stand for. CMYK becomes RGB; an animation gives its first
    frame, `page` another page of a TIFF (from 0). `orient` turns the picture as its EXIF tag says.

    TIFF is read by tifffile, 16-bit PNG in colour, JPEG of 12 bits or without loss, JPEG 2000 and JPEG XL by imagecodecs (extra
    `media`), the rest by Pillow.

    Errors: those of `decode_picture`; `E_DECODE` for a page that is not there.
    """
    head = bytes(data[:32])
    if head[:4] in _TIFF:
        return _tiff(data, page, colours, orient)
    if head[:5] == _PDF:
        return _pdf(data, page)
    if page:
        raise DataError(f"it has no page {page}: only a TIFF and a PDF have pages.", code="E_DECODE")
    if head.startswith(_FRACTIONS):
        return _fractions(data)
    if (
        head[:8] == b"\x89PNG\r\n\x1a\n" and head[24:25] == b"\x10" and head[25:26] in (b"\2", b"\4", b"\6")
    ):  # PNG §11.2.2: depth, colour type
        return _orient(_by_imagecodecs("png", data), open_picture(data).getexif().get(274, 1) if orient else 1)
    if head[:2] in _NETPBM:
        return _netpbm(data)
    for codec, magics in (("jpeg2k", _JPEG_2000), ("jpegxl", _JPEG_XL)):
        if head.startswith(magics):
            return _by_imagecodecs(codec, data)
    if head[:2] == b"\xff\xd8" and (frame := jpeg_frame(data)) != USUAL_JPEG:
        return _by_imagecodecs(frame[0], data)
    return _by_pillow(data, 0, colours, orient)


def is_beyond_pillow(data: Buffer) -> bool:
    """Whether a payload is a picture of a kind that Pillow never opens, told by its first bytes: JPEG XL, PDF, EXR, PFM, FLO."""
    return bytes(data[:16]).startswith((*_JPEG_XL, _PDF, *_FRACTIONS))


def page_count(data: Buffer) -> int:
    """How many pages a TIFF or a PDF has; 1 for any other picture. Errors as `read_raster` has them."""
    if bytes(data[:5]) == _PDF:
        with _PDFIUM, closing(_open_pdf(data)) as pages:
            return len(pages)
    if bytes(data[:4]) not in _TIFF:
        return 1
    with require("tifffile", "pages of a TIFF", "media").TiffFile(io.BytesIO(data)) as file:
        return len(file.pages)


def in_channels(pixels: NDArray[Any], channels: int) -> NDArray[Any]:
    """Numbers [h, w, bands] in 1, 3 or 4 channels, 0 leaves them: grey in all three, alpha dropped or full, colours to Pillow's grey."""
    bands = pixels.shape[2]
    if channels in (0, bands):
        return pixels
    if bands == 2 and pixels.dtype.kind == "f":
        raise DataError("it is motion, two bands of fractions.", code="E_DECODE", hint="channels=0 keeps them.")
    if bands > 4:
        raise DataError(f"it has {bands} bands, which are no {channels} channels.", code="E_DECODE", hint="channels=0 keeps them all.")
    colour, alpha = (pixels[:, :, :-1], pixels[:, :, -1:]) if bands in (2, 4) else (pixels, None)
    if channels == 1:
        return colour if colour.shape[2] == 1 else _grey(colour)
    colour = np.repeat(colour, 3, axis=2) if colour.shape[2] == 1 else colour
    if channels == 3:
        return np.ascontiguousarray(colour)
    top = np.iinfo(pixels.dtype).max if pixels.dtype.kind in "iu" else 1
    return np.concatenate((colour, np.full_like(colour[:, :, :1], top) if alpha is None else alpha), axis=2)


def in_dtype(pixels: NDArray[Any], dtype: str | None) -> NDArray[Any]:
    """The same numbers in another dtype, never scaled. `E_DECODE` where one of them does not fit."""
    if dtype is None or pixels.dtype == dtype:
        return pixels
    wanted = np.dtype(dtype)
    if wanted.kind in "iu" and pixels.size:
        if pixels.dtype.kind == "f":
            raise DataError(f"it holds {pixels.dtype}, not whole numbers.", code="E_DECODE", hint=f"Ask for dtype={pixels.dtype}.")
        low, high, limits = int(pixels.min()), int(pixels.max()), np.iinfo(wanted)
        if low < limits.min or high > limits.max:
            hint = f"Ask for dtype={pixels.dtype}, which is what it holds."
            raise DataError(f"it holds numbers from {low} to {high}, which are not {wanted}.", code="E_DECODE", hint=hint)
    with np.errstate(over="ignore"):
        made = pixels.astype(wanted)
    if wanted.kind == "f" and np.isinf(made).any() and not np.isinf(pixels).any():
        message = f"it holds numbers from {pixels.min()} to {pixels.max()}, which are not {wanted}."
        raise DataError(message, code="E_DECODE", hint="A wider dtype holds them.")
    return made


def _by_pillow(data: Buffer, page: int, colours: bool, orient: bool) -> NDArray[Any]:
    image = open_picture(data, page)
    with decoding(f"the {image.format} picture"):
        turned = load_pixels(image, orient)
        numbers = turned.mode in ("I", "F") or turned.mode.startswith("I;16") or (turned.mode == "P" and not colours)
        mode = turned.mode if numbers else own_mode(turned)
        return _plain(np.array(turned if mode == turned.mode else turned.convert(mode)))


def _tiff(data: Buffer, page: int, colours: bool, orient: bool) -> NDArray[Any]:
    tifffile = require("tifffile", "a TIFF's own numbers", "media")
    logging.getLogger("tifffile").addHandler(logging.NullHandler())  # odd tags are no news of a training loop
    with decoding("the TIFF picture", tifffile.TiffFileError), tifffile.TiffFile(io.BytesIO(data)) as file:
        if not -1 < page < len(file.pages):
            raise DataError(f"it has no page {page}: there are {len(file.pages)}.", code="E_DECODE", hint="Pages count from 0.")
        one = file.pages[page]
        height, width, bands = one.imagelength, one.imagewidth, one.samplesperpixel
        check_size(width, height, bands * (one.dtype.itemsize if one.dtype is not None else 1))
        if one.photometric in _CONVERTED and one.bitspersample == 8:
            return _by_pillow(data, page, colours, orient)
        if one.imagedepth > 1:
            raise DataError(f"it is a volume of {one.imagedepth} layers, not a picture.", code="E_DECODE", hint="Read it with Func.")
        pixels = np.array(one.asarray()).reshape((bands, height, width) if one.planarconfig == 2 else (height, width, bands))
        pixels = np.moveaxis(pixels, 0, 2) if one.planarconfig == 2 else pixels
        if colours and one.photometric == _PALETTE and one.colormap is not None:
            pixels = (np.asarray(one.colormap)[:, pixels[:, :, 0]] >> 8).astype(np.uint8).transpose(1, 2, 0)
        turn = one.tags.get(274)
        return _orient(_plain(pixels), turn.value if orient and turn is not None else 1)


def _by_imagecodecs(codec: str, data: Buffer) -> NDArray[Any]:
    imagecodecs = require("imagecodecs", f"a picture of this kind ({codec})", "media")
    with decoding("the picture"):
        pixels = np.asarray(getattr(imagecodecs, f"{codec}_decode")(bytes(data)))
    if pixels.ndim > 3:
        pixels = pixels[0]  # the first of an animation
    check_size(pixels.shape[1], pixels.shape[0], pixels[0, 0].nbytes)
    return _plain(pixels)


def _open_pdf(data: Buffer) -> Any:
    pypdfium2 = require("pypdfium2", "a page of a PDF", "media")
    try:
        return pypdfium2.PdfDocument(bytes(data))
    except pypdfium2.PdfiumError as error:
        if pypdfium2.raw.FPDF_GetLastError() == pypdfium2.raw.FPDF_ERR_PASSWORD:
            raise DataError("the PDF asks for a password.", code="E_NOT_SHOWN") from error
        raise DataError(f"this is not a PDF that can be read: {reason(error)}.", code="E_DECODE") from error


def _pdf(data: Buffer, page: int) -> NDArray[Any]:
    with _PDFIUM, closing(_open_pdf(data)) as pages:
        if page >= len(pages):
            raise DataError(f"it has no page {page}: there are {len(pages)}.", code="E_DECODE", hint="Pages count from 0.")
        width, height = pages[page].get_size()
        check_size(round(width * _PAGE_SCALE), round(height * _PAGE_SCALE), 4)
        return _plain(pages[page].render(scale=_PAGE_SCALE).to_numpy()[:, :, 2::-1])  # it gives blue first


def _fractions(data: Buffer) -> NDArray[Any]:
    """PFM (netpbm's pfm(5): rows from the bottom up, little endian where the scale is negative) and FLO (Middlebury's flowcode)."""
    view = bytes(data[:512])
    if view.startswith(_FRACTIONS[0]):
        return _exr(data)
    if view.startswith(b"PIEH"):
        width, height, bands, at, order = *struct.unpack("<ii", view[4:12].ljust(8, b"\0")), 2, 12, "<"
    else:
        parts = re.match(rb"P[Ff]\s+(\d{1,9})\s+(\d{1,9})\s+(-?[\d.eE+-]+)\s", view)
        if parts is None:
            raise DataError("the header of the picture is damaged.", code="E_DECODE")
        width, height, bands, at = int(parts[1]), int(parts[2]), 3 if view[1:2] == b"F" else 1, parts.end()
        order = "<" if parts[3].startswith(b"-") else ">"
    if not (width > 0 and height > 0) or 4 * width * height * bands > len(data) - at:
        raise DataError(f"the picture is cut short: {width} x {height} x {bands} fractions are said.", code="E_DECODE")
    check_size(width, height, 4 * bands)
    pixels = np.frombuffer(data, f"{order}f4", width * height * bands, at).reshape(height, width, bands)
    return _plain(pixels if view.startswith(b"PIEH") else pixels[::-1])


def _exr(data: Buffer) -> NDArray[Any]:
    """The colours of an EXR, else its first channel (depth: Z, V, Y). OpenEXR reads from a path alone."""
    openexr = require("OpenEXR", "an EXR picture", "media")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "picture.exr")
        path.write_bytes(data)
        with decoding("the EXR picture"):
            with openexr.File(str(path), header_only=True) as opened:
                low, high = opened.header()["dataWindow"]
                check_size(int(high[0]) - int(low[0]) + 1, int(high[1]) - int(low[1]) + 1, 16)
            with openexr.File(str(path)) as opened:
                channels = opened.channels()
                pixels = channels[min(channels, key=lambda name: (name.rpartition(".")[2] not in ("RGBA", "RGB"), name))].pixels
    return _plain(np.asarray(pixels, np.float32))


def _netpbm(data: Buffer) -> NDArray[Any]:
    """PGM and PPM as the numbers that they hold, which Pillow scales to 8 or 16 bits. Source: netpbm's pgm(5), ppm(5)."""
    view = bytes(data[:4096])
    if (header := _NETPBM_HEADER.match(view)) is None:
        raise DataError("the header of the picture is damaged.", code="E_DECODE")
    (width, height, top), at = map(int, header.groups()), header.end()
    bands, dtype = 3 if view[1:2] in b"36" else 1, np.dtype(">u2" if top > 255 else "u1")
    check_size(width, height, bands * dtype.itemsize)
    if view[1:2] in b"23":  # in text
        words = bytes(data[at:]).split()
        if len(words) < width * height * bands or not all(word.isdigit() and int(word) <= top for word in words):
            raise DataError("the picture is cut short, or its numbers are damaged.", code="E_DECODE")
        return _plain(np.array(words[: width * height * bands]).astype(dtype).reshape(height, width, bands))
    need, have = width * height * bands * dtype.itemsize, len(data) - at - 1
    if need > have or not need:
        raise DataError(f"the picture is cut short: {need} bytes of pixels are said, {max(have, 0)} are there.", code="E_DECODE")
    return _plain(np.frombuffer(data, dtype, width * height * bands, at + 1).reshape(height, width, bands))


USUAL_JPEG = ("jpeg", 8)


def jpeg_frame(data: Buffer) -> tuple[str, int]:
    """The codec of imagecodecs that takes a JPEG, and bits of a sample, as the frame's header says (ITU-T T.81, B.2.2; JPEG-LS: T.87)."""
    view, at = memoryview(data), 2
    while at + 5 < len(view) and view[at] == 0xFF:
        kind = view[at + 1]
        if (0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC)) or kind == 0xF7:
            return {0xC3: "ljpeg", 0xF7: "jpegls"}.get(kind, "jpeg"), int(view[at + 4])
        at += 2 + int.from_bytes(view[at + 2 : at + 4], "big") if kind != 0xFF else 1
    return USUAL_JPEG


def _orient(pixels: NDArray[Any], tag: int) -> NDArray[Any]:
    quarters, mirrored = _TURNS.get(tag, (0, False))
    return np.ascontiguousarray(np.rot90(pixels[:, ::-1] if mirrored else pixels, quarters))


def _plain(pixels: NDArray[Any]) -> NDArray[Any]:
    """[h, w, bands] in C order, numbers in this machine's byte order, bool as uint8."""
    dtype = np.dtype(np.uint8) if pixels.dtype == bool else pixels.dtype.newbyteorder("=")
    made = np.ascontiguousarray(pixels, dtype)
    return made[:, :, None] if made.ndim == 2 else made


def _grey(colour: NDArray[Any]) -> NDArray[Any]:
    if colour.dtype.kind == "f":
        return np.asarray((colour @ (np.array(_GREY) / 65536)).astype(colour.dtype))[:, :, None]
    wide = colour.astype(np.int64) @ np.array(_GREY, np.int64)
    return np.asarray(((wide + 0x8000) >> 16).astype(colour.dtype))[:, :, None]
