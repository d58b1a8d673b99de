"""Pictures of many forms: bits, palettes, bands, tiles, byte orders, pages, turns; by Pillow, tifffile, imagecodecs and imageio."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import imagecodecs
import numpy as np
import tifffile
from PIL import Image, ImageOps

from tests.odd.case import REFUSED, Odd, planes, saved

RANDOM = np.random.default_rng(28)
PHOTO = np.stack((*np.meshgrid(np.linspace(0, 255, 37), np.linspace(0, 255, 29)), np.full((29, 37), 90.0)), 2).astype(np.uint8)
OWN = "channels=0"


def numbers(dtype: str, *shape: int) -> Any:
    return (RANDOM.random(shape) * 250).astype(dtype)


def opened(data: bytes, mode: str | None = None) -> Any:
    with Image.open(io.BytesIO(data)) as image:
        return planes(np.array(image if mode is None else image.convert(mode)))


TIFF_FORMS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "grey": ((16, 24), {}),
    "rgb": ((16, 24, 3), {"photometric": "rgb"}),
    "rgba tiles": ((32, 48, 4), {"photometric": "rgb", "extrasamples": ["unassalpha"], "tile": (16, 16)}),
    "13 bands": ((16, 24, 13), {"photometric": "minisblack", "planarconfig": "contig", "compression": "zlib"}),
    "13 planes": ((13, 16, 24), {"photometric": "minisblack", "planarconfig": "separate"}),
    "big endian lzw": ((16, 24), {"compression": "lzw", "byteorder": ">"}),
}
TIFF_KINDS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32", "float64", "uint64", "int64"]
TIFF_WAYS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    **{f"packed by {name}": ("uint16", (33, 31), {"compression": name}) for name in ("packbits", "lzma", "zstd", "deflate")},
    **{f"lossless {name}": ("uint8", (32, 32, 3), {"photometric": "rgb", "compression": name}) for name in ("png", "jpegxl", "lerc")},
    "jpeg 2000": ("uint16", (32, 32), {"compression": "jpeg2000", "compressionargs": {"level": 0}}),
    "lzw, differences": ("uint16", (20, 30, 3), {"photometric": "rgb", "compression": "lzw", "predictor": True}),
    "zlib, differences of fractions": ("float32", (20, 30), {"compression": "zlib", "predictor": True}),
    "bits": ("bool", (20, 30), {}),
    "bits in fax": ("bool", (20, 30), {"compression": "packbits"}),
    "white is zero": ("uint8", (20, 30), {"photometric": "miniswhite"}),
    "big": ("uint16", (20, 30), {"bigtiff": True}),
    "big, big endian, tiles": ("float32", (40, 50), {"bigtiff": True, "byteorder": ">", "tile": (16, 32)}),
    "a row a strip": ("uint16", (20, 30), {"rowsperstrip": 1}),
    "planes in tiles": ("uint8", (3, 32, 32), {"photometric": "rgb", "planarconfig": "separate", "tile": (16, 16)}),
    "two bands of alpha": ("uint8", (20, 30, 2), {"photometric": "minisblack", "planarconfig": "contig", "extrasamples": ["assocalpha"]}),
    "five bands with near infrared": ("uint16", (20, 30, 5), {"photometric": "rgb", "extrasamples": ["unspecified"] * 2}),
    "tags of its own": ("uint16", (20, 30), {"extratags": [(65000, "s", 0, "own", True), (33550, "d", 3, (1.0, 1.0, 0.0), True)]}),
    "resolution and software": ("uint8", (20, 30), {"resolution": (300, 300), "software": "odd", "description": "odd"}),
    "one pixel": ("uint16", (1, 1), {}),
    "one row": ("float32", (1, 300), {}),
    "complex numbers": ("complex64", (8, 9), {}),
}


def tiffs() -> Iterator[Odd]:
    def case(name: str, data: bytes, options: str = OWN, page: int = 0) -> Odd:
        with tifffile.TiffFile(io.BytesIO(data)) as file:
            found = file.pages[page]
            value = np.moveaxis(found.asarray(), 0, 2) if found.planarconfig == 2 and found.samplesperpixel > 1 else found.asarray()
        return Odd(f"tiff {name}", "tif", data, planes(value), options)

    for at, dtype in enumerate(TIFF_KINDS):
        for name in list(TIFF_FORMS)[at % 2 :: 2] if at else TIFF_FORMS:
            shape, options = TIFF_FORMS[name]
            yield case(f"{name} {dtype}", saved(tifffile.imwrite, numbers(dtype, *shape), **options))
    for name, (dtype, shape, options) in TIFF_WAYS.items():
        array = numbers("uint8", *shape) > 99 if dtype == "bool" else numbers(dtype, *shape)
        yield case(name, saved(tifffile.imwrite, array, **options))
    pages = saved(tifffile.imwrite, numbers("uint16", 4, 9, 8), photometric="minisblack")
    yield from (case(f"page {page} of four", pages, f"{OWN}, page={page}", page) for page in (0, 3))
    yield case("of ImageJ", saved(tifffile.imwrite, numbers("uint16", 3, 9, 8), imagej=True))
    yield case("of OME", saved(tifffile.imwrite, numbers("uint16", 3, 9, 8), ome=True, photometric="minisblack"))
    small = Image.fromarray(PHOTO)
    for name in ("group3", "group4", "tiff_ccitt"):
        data = saved(small.convert("1").save, "TIFF", compression=name)
        yield Odd(f"tiff fax {name}", "tif", data, planes(np.array(small.convert("1").convert("L"))), "channels=1")
    for name in ("jpeg", "tiff_lzw", "tiff_adobe_deflate"):
        data = saved(small.save, "TIFF", compression=name)
        yield Odd(f"tiff colours {name}", "tif", data, opened(data), "", 1 if name == "jpeg" else 0)
    palette = saved(small.quantize(9).save, "TIFF")
    yield Odd("tiff palette, numbers", "tif", palette, opened(palette), OWN)
    yield Odd("tiff palette, colours", "tif", palette, opened(palette, "RGB"))
    for mode in ("CMYK", "LAB", "LA", "RGBA", "L", "YCbCr"):
        data = saved(small.convert("RGB").convert(mode).save, "TIFF") if mode != "LAB" else saved(_lab(small).save, "TIFF")
        yield Odd(f"tiff mode {mode}", "tif", data, _colours(data))
    for bits in (2, 4, 10, 12, 14):
        data = _packed_tiff(bits)
        yield case(f"{bits} bits", data)
    yield Odd(
        "tiff volume",
        "tif",
        saved(
            tifffile.imwrite, numbers("uint8", 4, 16, 16)[None, :, :, :, None], volumetric=True, photometric="minisblack", tile=(4, 16, 16)
        ),
        REFUSED,
        OWN,
    )


def _lab(image: Image.Image) -> Image.Image:
    from PIL import ImageCms

    lab = ImageCms.buildTransform(ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), "RGB", "LAB")
    return ImageCms.applyTransform(image, lab)


def _colours(data: bytes) -> Any:
    with Image.open(io.BytesIO(data)) as image:
        return planes(np.array(image.convert("RGB")))


def _packed_tiff(bits: int) -> bytes:
    """A TIFF of samples packed into fewer bits than a byte has, or more: TIFF 6.0, BitsPerSample."""
    array = RANDOM.integers(0, 1 << bits, (10, 24), np.uint16)
    packed = imagecodecs.packints_encode(array.astype(np.uint8 if bits <= 8 else np.uint16), bits)
    tags = {256: 24, 257: 10, 258: bits, 259: 1, 262: 1, 273: 8, 277: 1, 278: 10, 279: len(packed)}
    body = b"".join(
        np.array([tag, 4 if tag in (273, 279) else 3], "<u2").tobytes() + np.array([1, value], "<u4").tobytes()
        for tag, value in tags.items()
    )
    at = 8 + len(packed) + len(packed) % 2
    return (
        b"II*\0" + np.array([at], "<u4").tobytes() + packed.ljust(at - 8, b"\0") + np.array([len(tags)], "<u2").tobytes() + body + bytes(4)
    )


def pngs() -> Iterator[Odd]:
    photo = Image.fromarray(PHOTO)
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA"):
        made = photo.quantize(256) if mode == "P" else photo.convert(mode)
        data = saved(made.save, "PNG")
        own = opened(data, "L") if mode == "1" else opened(data)
        yield Odd(f"png {mode} as it is", "png", data, own, OWN)
        yield Odd(f"png {mode} as colours", "png", data, opened(data, "RGB"))
        yield Odd(f"png {mode} with alpha", "png", data, opened(data, "RGBA"), "channels=4")
    for bits in (1, 2, 4):
        data = saved(photo.quantize(1 << bits).save, "PNG", bits=bits)
        yield Odd(f"png palette of {bits} bits, numbers", "png", data, opened(data), OWN)
        yield Odd(f"png palette of {bits} bits, colours", "png", data, opened(data, "RGB"))
    clear = saved(photo.quantize(7).save, "PNG", transparency=3)
    yield Odd("png palette with a clear colour", "png", clear, opened(clear, "RGBA"), "channels=4")
    for bands in (1, 2, 3, 4):
        wide = RANDOM.integers(0, 65536, (9, 11, bands), np.uint16)
        data = imagecodecs.png_encode(wide)
        read = planes(imagecodecs.png_decode(data))
        yield Odd(f"png of 16 bits in {bands} bands", "png", data, read, OWN)
        yield Odd(f"png of 16 bits in {bands} bands as float32", "png", data, read.astype(np.float32), f"{OWN}, dtype=float32")
        colours = read[:, :, : bands - (bands in (2, 4))]
        yield Odd(
            f"png of 16 bits in {bands} bands, the high byte",
            "png",
            data,
            ((np.repeat(colours, 3, 2) if bands < 3 else colours) >> 8).astype(np.uint8),
        )
    for turn in range(2, 9):
        exif = Image.Exif()
        exif[0x0112] = turn
        data = saved(photo.save, "PNG", exif=exif)
        turned = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        yield Odd(f"png turned by tag {turn}", "png", data, np.array(turned), "orient=True")
    for name, pixels in (("one pixel", PHOTO[:1, :1]), ("one column", PHOTO[:, :1]), ("wide", np.tile(PHOTO, (1, 9, 1)))):
        yield Odd(f"png {name}", "png", saved(Image.fromarray(pixels).save, "PNG"), pixels)
    frames = [Image.fromarray(PHOTO), Image.fromarray(255 - PHOTO)]
    yield Odd("png animation, first frame", "png", saved(frames[0].save, "PNG", save_all=True, append_images=frames[1:]), PHOTO)
    yield Odd("png by imageio", "png", _imageio(PHOTO, "png"), PHOTO)


def _imageio(pixels: Any, form: str, **options: Any) -> bytes:
    from imageio import v3

    return bytes(v3.imwrite("<bytes>", pixels, extension=f".{form}", **options))


def jpegs() -> Iterator[Odd]:
    photo = Image.fromarray(PHOTO)
    ways: dict[str, dict[str, Any]] = {
        **{f"quality {quality}": {"quality": quality} for quality in (1, 30, 75, 100)},
        **{f"halves {name}": {"subsampling": name} for name in ("4:4:4", "4:2:2", "4:2:0", "4:1:1")},
        "progressive": {"progressive": True},
        "optimised": {"optimize": True},
        "restarts": {"restart_marker_rows": 1},
        "in rgb": {"keep_rgb": True},
        "comment and profile": {"comment": b"odd", "icc_profile": b"\0" * 200},
    }
    for name, options in ways.items():
        data = saved(photo.save, "JPEG", **options)
        yield Odd(f"jpeg {name}", "jpg", data, opened(data, "RGB"), "", 1)
    for mode in ("L", "CMYK"):
        data = saved(photo.convert(mode).save, "JPEG")
        yield Odd(f"jpeg {mode}", "jpg", data, opened(data, "RGB"), "", 1)
        yield Odd(f"jpeg {mode} in grey", "jpg", data, opened(data) if mode == "L" else opened(data, "L"), "channels=1", 1)
    for size in ((1, 1), (7, 5), (17, 16), (8, 33)):
        data = saved(photo.resize(size).save, "JPEG")
        yield Odd(f"jpeg of {size}", "jpg", data, opened(data), "", 1)
    for turn in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = turn
        data = saved(photo.save, "JPEG", exif=exif)
        yield Odd(
            f"jpeg turned by tag {turn}", "jpg", data, np.array(ImageOps.exif_transpose(Image.open(io.BytesIO(data)))), "orient=True", 1
        )
    deep = imagecodecs.jpeg_encode(RANDOM.integers(0, 4096, (16, 17, 3), np.uint16), bitspersample=12)
    yield Odd("jpeg of 12 bits", "jpg", deep, imagecodecs.jpeg_decode(deep), "channels=0, dtype=uint16", 1)
    grey = imagecodecs.jpeg_encode(RANDOM.integers(0, 4096, (16, 17), np.uint16), bitspersample=12)
    yield Odd("jpeg of 12 bits in grey", "jpg", grey, planes(imagecodecs.jpeg_decode(grey)), "channels=0, dtype=uint16", 1)
    whole = imagecodecs.ljpeg_encode(RANDOM.integers(0, 65536, (16, 18), np.uint16), bitspersample=16)
    yield Odd("jpeg without loss", "jpg", whole, planes(imagecodecs.ljpeg_decode(whole)), OWN)
    ls = imagecodecs.jpegls_encode(PHOTO[:, :, 0].copy())
    yield Odd("jpeg-ls", "jpg", ls, planes(imagecodecs.jpegls_decode(ls)), OWN)
    yield Odd("jpeg by imageio", "jpeg", data := _imageio(PHOTO, "jpeg", quality=90), opened(data), "", 1)


def plain() -> Iterator[Odd]:
    photo = Image.fromarray(PHOTO)
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        data = saved((photo.quantize(200) if mode == "P" else photo.convert(mode)).save, "BMP")
        yield Odd(f"bmp {mode}", "bmp", data, opened(data, "RGB"))
    yield Odd("bmp palette, numbers", "bmp", data := saved(photo.quantize(200).save, "BMP"), opened(data), OWN)
    for name, image in (("colours", photo.quantize(256)), ("grey", photo.convert("L")), ("two", photo.convert("1"))):
        data = saved(image.save, "GIF")
        yield Odd(f"gif {name}", "gif", data, opened(data, "RGB"))
    frames = [photo.quantize(9), photo.transpose(Image.Transpose.ROTATE_180).quantize(9)]
    yield Odd(
        "gif animation, first frame",
        "gif",
        data := saved(frames[0].save, "GIF", save_all=True, append_images=frames[1:]),
        opened(data, "RGB"),
    )
    for top in (1, 100, 255, 1000, 65535):
        for bands, magic in ((1, 5), (3, 6)):
            pixels = RANDOM.integers(0, top + 1, (5, 4, bands)).astype(">u2" if top > 255 else "u1")
            data = b"P%d\n# odd\n4 5\n%d\n" % (magic, top) + pixels.tobytes()
            yield Odd(f"netpbm of {bands} up to {top}", "pnm", data, planes(pixels), OWN)
    for magic, top, bands in ((2, 99, 1), (3, 255, 3), (2, 900, 1)):
        pixels = RANDOM.integers(0, top + 1, (5, 4, bands)).astype("u2" if top > 255 else "u1")
        text = b"P%d\n4 5\n%d\n" % (magic, top) + " ".join(map(str, pixels.ravel().tolist())).encode() + b"\n"
        yield Odd(f"netpbm in text, P{magic} up to {top}", "pnm", text, pixels, OWN)
    bits = RANDOM.integers(0, 2, (5, 16), np.uint8)
    yield Odd("netpbm bits", "pbm", data := b"P4\n16 5\n" + np.packbits(bits, axis=1).tobytes(), opened(data, "L"), "channels=1")
    yield Odd(
        "netpbm bits in text",
        "pbm",
        data := b"P1\n16 5\n" + b" ".join(b"%d" % bit for bit in bits.ravel()),
        opened(data, "L"),
        "channels=1",
    )
    for name, image in (("targa", photo), ("ico", photo.resize((32, 32))), ("pcx", photo), ("sgi", photo), ("dds", photo)):
        form = {"targa": "TGA"}.get(name, name.upper())
        data = saved(image.save, form)
        yield Odd(name, {"targa": "tga"}.get(name, name), data, REFUSED)
    yield Odd("qoi", "qoi", imagecodecs.qoi_encode(PHOTO), REFUSED)
    yield Odd("jpeg xr", "jxr", imagecodecs.jpegxr_encode(PHOTO), REFUSED)


def modern() -> Iterator[Odd]:
    photo = Image.fromarray(PHOTO)
    for name, options in (("lossless", {"lossless": True}), ("lossy", {"quality": 60}), ("best", {"quality": 100, "method": 6})):
        for mode in ("RGB", "RGBA"):
            image = photo.copy().convert(mode)
            if mode == "RGBA":
                image.putalpha(Image.fromarray(PHOTO[:, :, 0]))
            data = saved(image.save, "WEBP", **options)
            yield Odd(
                f"webp {name} {mode}",
                "webp",
                data,
                opened(data, mode),
                "" if mode == "RGB" else "channels=4",
                0 if name == "lossless" else 1,
            )
    frames = [photo, photo.transpose(Image.Transpose.ROTATE_180)]
    yield Odd(
        "webp animation, first frame",
        "webp",
        data := saved(photo.save, "WEBP", save_all=True, append_images=frames[1:], lossless=True),
        opened(data, "RGB"),
    )
    for name, options in (
        ("4:2:0", {}),
        ("4:4:4", {"subsampling": "4:4:4"}),
        ("grey", {"subsampling": "4:0:0"}),
        ("narrow", {"range": "limited"}),
    ):
        data = saved(photo.save, "AVIF", quality=80, **options)
        yield Odd(f"avif {name}", "avif", data, opened(data, "RGB"), "", 1)
    yield Odd("avif with alpha", "avif", data := saved(photo.convert("RGBA").save, "AVIF"), opened(data, "RGBA"), "channels=4", 1)
    for codec, ext in (("jpeg2k", "jp2"), ("jpegxl", "jxl")):
        for dtype in ("uint8", "uint16"):
            for bands in (1, 3, 4):
                array = numbers(dtype, 17, 16, bands)[:, :, 0 if bands == 1 else slice(None)]
                data = getattr(imagecodecs, f"{codec}_encode")(array, **({"level": 0} if codec == "jpeg2k" else {"lossless": True}))
                yield Odd(f"{codec} {dtype} in {bands}", ext, data, planes(getattr(imagecodecs, f"{codec}_decode")(data)), OWN)
        data = getattr(imagecodecs, f"{codec}_encode")(PHOTO, 60 if codec == "jpeg2k" else 80)
        yield Odd(f"{codec} lossy", ext, data, getattr(imagecodecs, f"{codec}_decode")(data), OWN, 1)
    stream = imagecodecs.jpeg2k_encode(PHOTO, codecformat="j2k")
    yield Odd("jpeg2k stream alone", "j2k", stream, imagecodecs.jpeg2k_decode(stream), OWN)
    data = saved(photo.save, "JPEG2000", tile_size=(16, 16), irreversible=False)
    yield Odd("jpeg2k in tiles", "jp2", data, imagecodecs.jpeg2k_decode(data), OWN)
    signed = imagecodecs.jpeg2k_encode(numbers("int16", 9, 8) - 100, level=0)
    yield Odd("jpeg2k below zero", "jp2", signed, planes(imagecodecs.jpeg2k_decode(signed)), OWN)
    real = imagecodecs.jpegxl_encode(numbers("float32", 9, 8, 3) / 250, lossless=True)
    yield Odd("jpegxl of fractions", "jxl", real, imagecodecs.jpegxl_decode(real), OWN)


def drawn() -> Iterator[Odd]:
    import OpenEXR

    from tests.viewers.payloads import LOCKED_PDF, exr_of, pdf_of

    rgb = RANDOM.normal(0, 1, (9, 12, 3)).astype(np.float32)
    yield Odd("exr colours", "exr", exr_of(OpenEXR, RGB=rgb), rgb, OWN)
    half = rgb.astype(np.float16)
    yield Odd("exr of half floats", "exr", exr_of(OpenEXR, RGB=half), half.astype(np.float32), OWN)
    yield Odd("exr depth", "exr", exr_of(OpenEXR, Z=rgb[:, :, 0]), rgb[:, :, :1], OWN)
    for form, order, scale in (("PF", "<", "-1.0"), ("Pf", "<", "-1"), ("PF", ">", "1.0"), ("Pf", ">", "2.5")):
        pixels = rgb if form == "PF" else rgb[:, :, :1]
        yield Odd(f"{form} {order}", "pfm", f"{form}\n12 9\n{scale}\n".encode() + pixels[::-1].astype(f"{order}f4").tobytes(), pixels, OWN)
    yield Odd("flow", "flo", b"PIEH" + np.array([12, 9], "<i4").tobytes() + rgb[:, :, :2].tobytes(), rgb[:, :, :2], OWN)
    import pypdfium2

    pages = pdf_of(pypdfium2, (72, 36), (36, 72))
    with pypdfium2.PdfDocument(pages) as document:
        shown = [document[page].render(scale=2, rev_byteorder=True).to_numpy()[:, :, :3].copy() for page in (0, 1)]
    yield Odd("pdf", "pdf", pages, shown[0])
    yield Odd("pdf, second page", "pdf", pages, shown[1], "page=1")
    yield Odd("pdf under a password", "pdf", LOCKED_PDF, REFUSED)
