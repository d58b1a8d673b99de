"""Pictures from bytes: safe formats only, the size checked before a pixel is decoded, and the pixels that PIL has."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.model.errors import DataError, LimitError
from tarviz.ops.values import pictures
from tarviz.ops.values.pictures import (
    MAX_BYTES,
    MAX_PIXELS,
    check_size,
    decode_colours,
    decode_image,
    decode_in_place,
    decoding,
    open_picture,
    reason,
    reduction,
)
from tarviz.ops.values.raster import decode_picture
from tarviz.viewers import panel
from tests import memory

COLOURS = np.random.default_rng(1).integers(0, 256, (30, 40, 3), np.uint8)


def saved(image: Image.Image, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def png_header(width: int, height: int) -> bytes:
    """The first bytes of a PNG of that size, and not a pixel."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head)) + struct.pack(">I", 100) + b"IDAT"


class TestFormats:
    @pytest.mark.parametrize("format", ["PNG", "BMP", "TIFF", "PPM", "GIF", "WEBP"])
    def test_pixels_are_those_that_pil_has(self, format: str) -> None:
        data = saved(Image.fromarray(COLOURS), format, **({"lossless": True} if format == "WEBP" else {}))
        expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

        np.testing.assert_array_equal(expected, decode_picture(data))

    @pytest.mark.parametrize("format", ["ICO", "TGA", "EPS", "PCX", "SGI"])
    def test_others_are_not_opened(self, format: str) -> None:
        with pytest.raises(DataError, match="this is not a picture"):
            decode_picture(saved(Image.fromarray(COLOURS), format))

    @pytest.mark.parametrize(
        ("data", "words"),
        [(b"", "it is empty"), (b"\x1f\x8b" + bytes(20), "it looks like"), (b"what", "4 bytes that begin with 77 68 61 74")],
    )
    def test_what_the_bytes_are_is_said(self, data: bytes, words: str) -> None:
        with pytest.raises(DataError, match=words):
            decode_picture(data)


class TestChannels:
    @pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
    @pytest.mark.parametrize("channels", [1, 3, 4])
    def test_as_many_as_asked_for(self, mode: str, channels: int) -> None:
        image = (
            Image.fromarray(COLOURS).convert("L").convert(mode)
            if mode != "I;16"
            else Image.fromarray(COLOURS[:, :, 0].astype(np.uint16) << 8)
        )
        data = saved(image, "TIFF")

        assert (30, 40, channels) == decode_picture(data, channels=channels).shape

    @pytest.mark.parametrize(("mode", "channels"), [("1", 1), ("L", 1), ("LA", 2), ("P", 1), ("RGB", 3), ("RGBA", 4), ("CMYK", 3)])
    def test_0_keeps_what_there_is(self, mode: str, channels: int) -> None:
        pytest.importorskip("tifffile", reason="the extra `media`")
        assert channels == decode_picture(saved(Image.fromarray(COLOURS).convert(mode), "TIFF"), channels=0).shape[2]

    def test_alpha_is_dropped_and_not_blended(self) -> None:
        image = np.zeros((2, 2, 4), np.uint8)
        image[:, :, 0] = 200

        assert [200, 0, 0] == decode_picture(saved(Image.fromarray(image), "PNG"))[0, 0].tolist()

    def test_a_palette_gives_its_numbers_or_its_colours(self) -> None:
        image = Image.fromarray(COLOURS).convert("P")
        for transparency in (0, bytes(range(256))):
            data = saved(image, "PNG", transparency=transparency)

            np.testing.assert_array_equal(np.asarray(image), decode_picture(data, channels=0)[:, :, 0])
            np.testing.assert_array_equal(np.asarray(image.convert("RGB")), decode_picture(data))
            np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(data)).convert("RGBA")), decode_picture(data, channels=4))

    def test_16_bits_keep_the_high_byte(self) -> None:
        data = saved(Image.fromarray(np.array([[0x1234, 0xFEDC]], np.uint16)), "PNG")

        assert [[0x12], [0xFE]] == decode_picture(data, channels=1)[0].tolist()

    def test_the_grey_of_a_jpeg_is_its_luminance(self) -> None:
        data = saved(Image.fromarray(COLOURS), "JPEG", quality=95)
        image = Image.open(io.BytesIO(data))
        image.draft("L", image.size)

        np.testing.assert_array_equal(np.asarray(image), decode_picture(data, channels=1)[:, :, 0])

    def test_so_it_is_without_the_fast_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = saved(Image.fromarray(COLOURS), "JPEG", quality=95)
        expected = [decode_picture(data, channels=channels) for channels in (1, 3)]
        monkeypatch.setattr(pictures, "_simplejpeg", lambda: None)

        for channels, pixels in zip((1, 3), expected, strict=True):
            np.testing.assert_array_equal(pixels, decode_picture(data, channels=channels))

    def test_an_image_of_pil_holds_the_same_pixels(self) -> None:
        for format in ("PNG", "JPEG"):
            data = saved(Image.fromarray(COLOURS), format)
            np.testing.assert_array_equal(decode_picture(data), np.asarray(decode_image(data)))


class TestFastJpegs:
    """Those that simplejpeg decodes, beside Pillow."""

    EXIF = Image.Exif()
    EXIF[0x0112] = 6

    @pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
    @pytest.mark.parametrize("channels", [0, 1, 3, 4])
    def test_the_pixels_are_those_of_pillow(self, mode: str, channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("simplejpeg", reason="simplejpeg is in the extra `fast`")
        data = saved(Image.fromarray(COLOURS).convert(mode), "JPEG", exif=self.EXIF)
        asked = [{"orient": orient, "least": least} for orient in (False, True) for least in (None, (7, 9))]
        found = [decode_colours(data, channels, **options) for options in asked]
        monkeypatch.setattr(pictures, "_simplejpeg", lambda: None)

        for options, pixels in zip(asked, found, strict=True):
            np.testing.assert_array_equal(decode_colours(data, channels, **options), pixels)

    def test_colours_and_greys_as_they_lie_are_its_part(self, monkeypatch: pytest.MonkeyPatch) -> None:
        simplejpeg = pytest.importorskip("simplejpeg", reason="simplejpeg is in the extra `fast`")
        decoded: list[str] = []
        decode = simplejpeg.decode_jpeg
        monkeypatch.setattr(simplejpeg, "decode_jpeg", lambda data, space, **more: (decoded.append(space), decode(data, space, **more))[1])
        seen = {}
        for mode, form in (("L", "JPEG"), ("RGB", "JPEG"), ("CMYK", "JPEG"), ("RGB", "PNG")):
            data = saved(Image.fromarray(COLOURS).convert(mode), form)
            for channels in (0, 1, 3, 4):
                decoded.clear()
                decode_colours(data, channels)
                seen[mode, form, channels] = list(decoded)
                decode_colours(data, channels, orient=True)
                assert seen[mode, form, channels] == decoded  # what is turned is not

        assert {
            ("L", "JPEG", 0): ["GRAY"],
            ("L", "JPEG", 1): ["GRAY"],
            ("L", "JPEG", 3): ["RGB"],
            ("RGB", "JPEG", 0): ["RGB"],
            ("RGB", "JPEG", 1): ["GRAY"],
            ("RGB", "JPEG", 3): ["RGB"],
        } == {case: spaces for case, spaces in seen.items() if spaces}

    @pytest.mark.parametrize(("least", "sides"), [(None, (30, 40)), ((15, 20), (15, 20)), ((7, 10), (8, 10))])
    def test_it_may_decode_into_memory_that_is_there(self, least: tuple[int, int] | None, sides: tuple[int, int]) -> None:
        pytest.importorskip("simplejpeg", reason="simplejpeg is in the extra `fast`")
        given: list[Any] = []

        def room(height: int, width: int) -> Any:
            given.append(np.zeros((height * width * 4), np.uint8))
            return given[-1]

        data = saved(Image.fromarray(COLOURS), "JPEG")
        pixels = decode_in_place(data, least, room)

        assert pixels is not None
        assert (*sides, 4) == pixels.shape
        assert np.shares_memory(pixels, given[0])
        np.testing.assert_array_equal(decode_colours(data, 3, least=least), pixels[:, :, :3])
        assert decode_in_place(saved(Image.fromarray(COLOURS), "PNG"), None, room) is None
        assert decode_in_place(data[:100], None, room) is None

    def test_one_that_is_too_large_is_left_to_nobody(self) -> None:
        data = bytearray(saved(Image.fromarray(COLOURS), "JPEG"))
        at = data.index(b"\xff\xc0") + 5
        data[at : at + 4] = struct.pack(">HH", 60_000, 60_000)

        with pytest.raises(LimitError, match="60000 x 60000 pixels"):
            decode_colours(bytes(data), 3)


class TestDecoding:
    @pytest.mark.parametrize(
        ("raised", "code", "said"),
        [
            (ValueError("bad. "), "E_DECODE", "the page is damaged: bad."),
            (KeyError(), "E_DECODE", "the page is damaged: KeyError."),
            (MemoryError(), "E_IMAGE_TOO_LARGE", "the page does not fit in memory."),
            (DataError("own.", code="E_NOT_SHOWN"), "E_NOT_SHOWN", "own."),
            (LimitError("own."), "E_LIMIT", "own."),
            (ImportError("none"), "E_DECODE", "the page is damaged: none."),
        ],
    )
    def test_what_a_library_raises_is_said_in_one_way(self, raised: Exception, code: str, said: str) -> None:
        with pytest.raises(DataError) as caught, decoding("the page", ImportError):
            raise raised

        assert (code, said) == (caught.value.code, caught.value.message)

    def test_other_errors_go_on(self) -> None:
        with pytest.raises(ImportError), decoding("the page"):
            raise ImportError("none")


class TestExif:
    def test_a_picture_is_turned_only_where_it_is_asked_for(self) -> None:
        exif = Image.Exif()
        exif[0x0112] = 6
        data = saved(Image.fromarray(COLOURS), "JPEG", exif=exif)

        assert [(30, 40, 3), (40, 30, 3)] == [decode_picture(data, orient=orient).shape for orient in (False, True)]
        assert (30, 40, 3) == decode_picture(data).shape == decode_picture(data, dtype="uint8").shape


class TestLeast:
    @pytest.mark.parametrize(
        ("least", "shape"), [(None, (300, 400, 3)), ((224, 224), (300, 400, 3)), ((150, 200), (150, 200, 3)), ((30, 30), (37, 50, 3))]
    )
    def test_a_jpeg_is_as_small_as_it_may_be(self, least: tuple[int, int] | None, shape: tuple[int, ...]) -> None:
        data = saved(Image.fromarray(COLOURS).resize((400, 300)), "JPEG")
        found = decode_picture(data, least=least).shape

        assert all(abs(a - b) <= 1 for a, b in zip(shape, found, strict=True))
        assert least is None or (found[0] >= least[0] and found[1] >= least[1])

    def test_others_are_not_scaled(self) -> None:
        assert (30, 40, 3) == decode_picture(saved(Image.fromarray(COLOURS), "PNG"), least=(2, 2)).shape
        assert 1 == reduction(30, 40, (20, 21))

    def test_it_is_the_largest_division_that_leaves_enough(self) -> None:
        sides = [(448, 448), (447, 448), (448, 447), (896, 900), (1792, 1792), (1791, 4000), (223, 223)]

        assert [2, 1, 1, 4, 8, 4, 1] == [reduction(*side, (224, 224)) for side in sides]


class TestSizes:
    @pytest.mark.parametrize(("width", "height", "depth"), [(8000, 8001, 3), (8000, 8000, 5), (65536, 65536, 1)])
    def test_too_many_pixels_or_bytes_are_refused(self, width: int, height: int, depth: int) -> None:
        check_size(8000, 8000, 4)
        assert (64_000_000, 64_000_000, 256_000_000) == (MAX_PIXELS, panel.MAX_PIXELS, MAX_BYTES)
        with pytest.raises(LimitError, match="E_IMAGE_TOO_LARGE"):
            check_size(width, height, depth)

    def test_before_any_memory_is_taken_for_them(self) -> None:
        before = memory.begin()
        with pytest.raises(LimitError, match="E_IMAGE_TOO_LARGE"):
            open_picture(png_header(30_000, 30_000))

        assert memory.peak() - before < 32 << 20


class TestModes:
    """What Pillow calls the pixels of a file."""

    @pytest.mark.parametrize(
        ("mode", "form", "options", "expected"),
        [
            ("1", "PNG", {}, "L"),
            ("L", "PNG", {}, "L"),
            ("LA", "PNG", {}, "LA"),
            ("RGB", "PNG", {}, "RGB"),
            ("RGBA", "PNG", {}, "RGBA"),
            ("P", "PNG", {}, "RGB"),
            ("P", "PNG", {"transparency": 0}, "RGBA"),
            ("PA", "TIFF", {}, "RGBA"),
            ("CMYK", "JPEG", {}, "RGB"),
            ("L", "JPEG", {}, "L"),
            ("RGB", "JPEG", {}, "RGB"),
        ],
    )
    def test_0_channels_are_those_of_the_file(self, mode: str, form: str, options: dict[str, Any], expected: str) -> None:
        image = Image.fromarray(COLOURS)
        image = image.convert("P").convert("PA") if mode == "PA" else image.convert(mode)

        found = decode_image(saved(image, form, **options), channels=0)

        assert (expected, (40, 30)) == (found.mode, found.size)
        assert type(found) is Image.Image  # with no file behind it

    def test_alpha_that_colours_are_multiplied_with_is_dropped_like_any_other(self) -> None:
        tifffile = pytest.importorskip("tifffile", reason="the extra `media`")
        file = io.BytesIO()
        tifffile.imwrite(file, COLOURS[:, :, :2] | 1, photometric="minisblack", planarconfig="contig", extrasamples=["assocalpha"])

        assert "La" == Image.open(io.BytesIO(file.getvalue())).mode
        assert [1, 3] == [decode_picture(file.getvalue(), channels=channels).shape[2] for channels in (1, 3)]

    @pytest.mark.parametrize(("dtype", "hint"), [(np.float32, "float32"), (np.int32, "int32")])
    def test_32_bits_are_no_colours(self, dtype: Any, hint: str) -> None:
        with pytest.raises(DataError, match="it holds 32-bit samples") as caught:
            decode_image(saved(Image.fromarray(COLOURS[:, :, 0].astype(dtype)), "TIFF"))
        assert f"decode(…, dtype={hint}) keeps them." == caught.value.hint

    def test_16_bits_of_a_pgm_keep_the_high_byte_too(self) -> None:
        data = b"P5 2 1 65535\n" + np.array([0x1234, 0xFEDC], ">u2").tobytes()

        assert [[[0x12] * 3, [0xFE] * 3]] == decode_picture(data).tolist()
        assert [0x12, 0xFE] == np.asarray(decode_image(data, channels=1)).ravel().tolist()

    @pytest.mark.parametrize("size", [200, 201])
    def test_long_words_about_damage_are_cut(self, size: int) -> None:
        assert "x" * 200 + ("…" if size > 200 else "") == reason(ValueError("x" * size + ". "))
        assert "KeyError" == reason(KeyError())
