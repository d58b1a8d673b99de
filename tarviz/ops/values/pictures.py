"""Pictures from bytes: safe formats only, the header checked before a pixel is decoded."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from tarviz.formats import sniff
from tarviz.model.errors import DataError, LimitError
from tarviz.model.types import Buffer

MAX_PIXELS = 64_000_000
MAX_BYTES = 256_000_000
CHANNELS = {0: None, 1: "L", 3: "RGB", 4: "RGBA"}

_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM", "AVIF", "JPEG2000")
# What Pillow's plugins let out on damaged data, next to OSError; found by fuzzing, see tests/ops/test_pictures.py
DAMAGE = (
    *(OSError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError),
    *(EOFError, RuntimeError, AttributeError, struct.error, Warning),
)
Room = Callable[[int, int], NDArray[np.uint8]]
"""(height, width) → memory for that many pixels of four bytes."""

_ORIENTATION = 0x0112
# EXIF 2.32, Orientation: what undoes each turn.
_BACK = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
_BOMBS = (Image.DecompressionBombError, Image.DecompressionBombWarning)


def decode_colours(
    data: Buffer, channels: int, *, orient: bool = False, least: tuple[int, int] | None = None, page: int = 0
) -> NDArray[np.uint8]:
    """The picture as uint8 [height, width, channels], in memory of its own: `raster.decode_picture` without a dtype says how."""
    if (pixels := _fast(data, channels, orient, least)) is None:
        pixels = np.array(_load(data, channels, orient, least, page), np.uint8)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def decodes_fast() -> bool:
    """Whether JPEGs are decoded by simplejpeg (extra `fast`)."""
    return _simplejpeg() is not None


def decode_image(data: Buffer, *, channels: int = 3) -> Image.Image:
    """The picture of `decode_colours` as a PIL image, in mode L, LA, RGB or RGBA."""
    if (pixels := _fast(data, channels, False)) is not None:
        return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    image = _load(data, channels, False)
    return image.copy() if isinstance(image, ImageFile.ImageFile) else image  # without the file behind it


@cache
def _simplejpeg() -> Any:
    """The package of the extra `fast`; None where it is not installed."""
    try:
        import simplejpeg
    except ImportError:
        return None
    return simplejpeg


def _fast(
    data: Buffer, channels: int, orient: bool, least: tuple[int, int] | None = None, room: Room | None = None
) -> NDArray[np.uint8] | None:
    """The pixels of PIL in three quarters of its time; None for what is left to PIL: no JPEG, CMYK (off by one here), what is damaged."""
    package = _simplejpeg()
    if package is None or channels == 4 or orient or bytes(data[:2]) != b"\xff\xd8":
        return None
    try:
        height, width, space, _ = package.decode_jpeg_header(data)
        check_size(width, height, 3)
        if space not in ("YCbCr", "Gray"):
            return None
        wanted = "RGB" if channels == 3 or (channels == 0 and space == "YCbCr") else "GRAY"
        by = reduction(height, width, least)
        tall, wide = (0, 0) if by == 1 else (height // by, width // by)  # the smallest of libjpeg's sizes that is as large
        more = {} if room is None else {"buffer": room(-(-height // by), -(-width // by))}
        pixels: NDArray[np.uint8] = package.decode_jpeg(
            data, "RGBX" if room else wanted, min_height=tall, min_width=wide, min_factor=by, **more
        )
    except LimitError:
        raise
    except (ValueError, RuntimeError, MemoryError):
        return None  # PIL says what is wrong, or forgives it
    return pixels


def reduction(height: int, width: int, least: tuple[int, int] | None) -> int:
    """By how much the sides of a JPEG are divided while it is decoded: 8, 4, 2 or 1.

    >>> reduction(3000, 4000, (224, 224)), reduction(3000, 4000, (800, 800)), reduction(300, 400, (224, 224))
    (8, 2, 1)
    """
    return next(by for by in (8, 4, 2, 1) if by == 1 or (least is not None and height // by >= least[0] and width // by >= least[1]))


def _load(data: Buffer, channels: int, orient: bool, least: tuple[int, int] | None = None, page: int = 0) -> Image.Image:
    image = open_picture(data, page)
    with decoding(f"the {image.format} picture"):
        if image.format == "JPEG" and (channels == 1 or least is not None):
            by = reduction(image.height, image.width, least)
            # Mode L: the luminance as it is stored, as TensorFlow gives it.
            image.draft("L" if channels == 1 else None, (image.width // by, image.height // by))
        return _convert(load_pixels(image, orient), channels)


def load_pixels(image: Image.Image, orient: bool) -> Image.Image:
    """The picture with its pixels as they lie in the file, or turned as its EXIF tag says.

    Pillow turns a TIFF while it loads it, whoever asked.
    """
    tag = image.getexif().get(_ORIENTATION) if orient or image.format == "TIFF" else None
    image.load()
    if tag not in _BACK:
        return image
    turned = tag != image.getexif().get(_ORIENTATION)
    return image if turned == orient else ImageOps.exif_transpose(image) if orient else image.transpose(_BACK[tag])


def open_picture(data: Buffer, page: int = 0) -> Image.Image:
    """The picture (a PIL image) or another page of a TIFF, its header read and its size checked, no pixel decoded yet.

    `E_DECODE` for a page that is not there.
    """
    with decoding("the header of the picture"):
        try:
            image = Image.open(io.BytesIO(data), formats=_FORMATS)
        except _BOMBS as error:
            raise LimitError(f"the picture is too large: {reason(error)}.", code="E_IMAGE_TOO_LARGE") from error
        except UnidentifiedImageError as error:
            raise DataError(f"this is not a picture: {describe(data)}.", code="E_DECODE") from error
        if page:
            try:
                image.seek(page)
            except EOFError as error:
                count = getattr(Image.open(io.BytesIO(data), formats=_FORMATS), "n_frames", 1)  # the other may have miscounted by now
                raise DataError(f"it has no page {page}: there are {count}.", code="E_DECODE", hint="Pages count from 0.") from error
        wide = 4 if image.mode in ("I", "F") else 2 if image.mode.startswith("I;16") else len(image.getbands())
    check_size(image.width, image.height, wide)
    return image


@contextmanager
def decoding(what: str, *more: type[Exception]) -> Iterator[None]:
    """Around a library at work: what it raises at damaged bytes (`DAMAGE`, `more`) is a `DataError` E_DECODE about `what`, and where memory
    does not suffice a `LimitError` E_IMAGE_TOO_LARGE."""
    damage: tuple[type[Exception], ...] = (*DAMAGE, *more)
    try:
        yield
    except DataError:
        raise
    except MemoryError as error:
        raise LimitError(f"{what} does not fit in memory.", code="E_IMAGE_TOO_LARGE") from error
    except damage as error:
        raise DataError(f"{what} is damaged: {reason(error)}.", code="E_DECODE") from error


def check_size(width: int, height: int, bytes_per_pixel: int) -> None:
    """`LimitError` E_IMAGE_TOO_LARGE when a picture of that size would not be decoded."""
    if width * height > MAX_PIXELS or width * height * bytes_per_pixel > MAX_BYTES:
        raise LimitError(
            f"the picture is too large: {width} x {height} pixels; the limit is {MAX_PIXELS // 10**6} Mpx and {MAX_BYTES // 10**6} MB.",
            code="E_IMAGE_TOO_LARGE",
            details={"width": width, "height": height},
        )


def _convert(image: Image.Image, channels: int) -> Image.Image:
    if image.mode == "La":
        image = image.convert("LA")
    if image.mode.startswith("I;16") or (image.mode, image.format) == ("I", "PPM"):  # a PGM of 16 bits
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    elif image.mode in ("I", "F"):
        hint = f"decode(…, dtype={'float32' if image.mode == 'F' else 'int32'}) keeps them."
        raise DataError(f"it holds 32-bit samples (mode {image.mode}), which are no colours of 8 bits.", code="E_DECODE", hint=hint)
    if image.mode == "P" and channels in (1, 3):
        image.info.pop("transparency", None)  # dropped, of which Pillow would warn
    mode = CHANNELS[channels] or own_mode(image)
    return image.convert(mode) if image.mode != mode else image


def own_mode(image: Image.Image) -> str:
    """The mode of 8 bits a band that has all of a picture's colours."""
    if image.mode in ("P", "PA"):
        return "RGBA" if image.mode == "PA" or "transparency" in image.info else "RGB"
    if image.mode in ("L", "LA", "RGB", "RGBA"):
        return image.mode
    return "L" if image.mode == "1" else "RGB"


def decode_in_place(data: Buffer, least: tuple[int, int] | None, room: Room) -> NDArray[np.uint8] | None:
    """The picture of `decode_colours` as uint8 [height, width, 4] in memory that `room` gives, its colours and a byte that means nothing;
    None for what is not decoded fast."""
    return _fast(data, 3, False, least, room)


def describe(data: Buffer) -> str:
    """What the bytes are, where they are not picture."""
    if not len(data):
        return "it is empty"
    head = bytes(data[:512])
    if (found := sniff.kind(head)) is not None:
        return f"it looks like {found}"
    return f"{len(data)} bytes that begin with {bytes(data[:8]).hex(' ')}"


def reason(error: Any) -> str:
    text = str(error).strip().rstrip(".") or type(error).__name__
    return text if len(text) <= 200 else text[:200] + "…"
