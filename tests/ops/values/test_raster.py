"""Pictures with more than colours of 8 bits: the numbers are those that tifffile, imagecodecs, Pillow and TensorFlow read."""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from tarviz.model.errors import DataError, LimitError
from tarviz.ops.values import pictures
from tarviz.ops.values.raster import decode_picture, in_channels, in_dtype, jpeg_frame, page_count, read_raster
from tests.viewers.payloads import exr_of, pdf_of

RANDOM = np.random.default_rng(3)
MEDIA = "the extra `media`"


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def tiff(array: Any, **options: Any) -> bytes:
    tifffile = pytest.importorskip("tifffile", reason=MEDIA)
    file = io.BytesIO()
    tifffile.imwrite(file, array, **options)
    return file.getvalue()


class TestPng:
    def test_16_bits_of_grey_stay_as_they_are(self) -> None:
        depth = RANDOM.integers(1000, 8942, (30, 40), np.uint16)
        data = saved(Image.fromarray(depth), "PNG")

        np.testing.assert_array_equal(depth, decode_picture(data, dtype="uint16", channels=1)[:, :, 0])
        np.testing.assert_array_equal(depth, decode_picture(data, channels=0)[:, :, 0])
        np.testing.assert_array_equal(depth >> 8, decode_picture(data, channels=1)[:, :, 0])

    @pytest.mark.parametrize("bands", [2, 3, 4])
    def test_16_bits_of_colours_are_those_of_tensorflow(self, bands: int) -> None:
        imagecodecs = pytest.importorskip("imagecodecs", reason=MEDIA)
        tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        data = imagecodecs.png_encode(RANDOM.integers(0, 65536, (9, 7, bands), np.uint16))

        np.testing.assert_array_equal(tf.io.decode_png(data, dtype=tf.uint16).numpy(), decode_picture(data, channels=0))

    def test_a_mask_of_voc_gives_its_class_numbers(self) -> None:
        numbers = RANDOM.choice([0, 2, 4, 255], (20, 20)).astype(np.uint8)
        image = Image.fromarray(numbers, "L")
        image.putpalette([n for n in range(256) for _ in range(3)])
        data = saved(image, "PNG")

        np.testing.assert_array_equal(numbers, decode_picture(data, channels=0)[:, :, 0])
        np.testing.assert_array_equal(numbers.astype(np.int32), decode_picture(data, channels=0, dtype="int32")[:, :, 0])

    def test_8_bits_in_a_wider_dtype_keep_their_numbers(self) -> None:
        numbers = RANDOM.integers(0, 256, (5, 6, 3), np.uint8)
        data = saved(Image.fromarray(numbers), "PNG")

        for dtype in ("uint16", "int32", "float32"):
            found = decode_picture(data, dtype=dtype)
            assert dtype == found.dtype
            np.testing.assert_array_equal(numbers, found)


class TestTiff:
    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "uint32", "int32", "float16", "float32", "float64"])
    @pytest.mark.parametrize(
        ("shape", "options"),
        [
            ((16, 24), {}),
            ((16, 24, 3), {"photometric": "rgb"}),
            ((16, 32, 4), {"photometric": "rgb", "extrasamples": ["unassalpha"], "tile": (16, 16)}),
            ((16, 24, 13), {"photometric": "minisblack", "planarconfig": "contig", "compression": "zlib"}),
            ((13, 16, 24), {"photometric": "minisblack", "planarconfig": "separate"}),
            ((16, 24), {"compression": "lzw", "byteorder": ">"}),
        ],
    )
    def test_numbers_are_those_of_tifffile(self, dtype: str, shape: tuple[int, ...], options: dict[str, Any]) -> None:
        array = (RANDOM.random(shape) * 200).astype(dtype)
        data = tiff(array, **options)
        expected = np.moveaxis(array, 0, 2) if shape[0] == 13 else array.reshape(*shape[:2], -1)

        found = decode_picture(data, channels=0)

        assert dtype == found.dtype
        np.testing.assert_array_equal(expected, found)

    def test_pages_are_turned(self) -> None:
        pages = RANDOM.integers(0, 256, (4, 8, 8), np.uint8)
        data = tiff(pages, photometric="minisblack")

        for number, page in enumerate(pages):
            np.testing.assert_array_equal(page, decode_picture(data, channels=1, page=number)[:, :, 0])
        with pytest.raises(DataError, match="no page 4: there are 4"):
            decode_picture(data, page=4)

    @pytest.mark.parametrize(("mode", "packed"), [("1", "group4"), ("CMYK", None), ("YCbCr", None), ("P", None), ("RGB", "jpeg")])
    def test_a_page_is_read_as_the_first_one_is(self, mode: str, packed: str | None) -> None:
        pytest.importorskip("tifffile", reason=MEDIA)
        pixels = RANDOM.integers(0, 256, (24, 32, {"CMYK": 4, "1": 1, "P": 1}.get(mode, 3)), np.uint8)
        page = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels, "L" if mode in ("1", "P") else mode).convert(mode)
        data = saved(page, "TIFF", save_all=True, append_images=[page], compression=packed)

        for options in ({}, {"channels": 1}, {"channels": 0}, {"channels": 0, "dtype": "int32"}):
            np.testing.assert_array_equal(decode_picture(data, **options), decode_picture(data, page=1, **options))

    def test_a_page_where_white_is_zero_is_read_so(self) -> None:
        pages = np.stack([RANDOM.integers(0, 256, (9, 8), np.uint8)] * 2)
        data = tiff(pages, photometric="miniswhite")

        for page in (0, 1):
            np.testing.assert_array_equal(255 - pages[page], decode_picture(data, channels=1, page=page)[:, :, 0])

    @pytest.mark.parametrize("turn", range(1, 9))
    def test_it_is_turned_where_that_is_asked_for_alone(self, turn: int) -> None:
        pixels = RANDOM.integers(0, 256, (6, 9, 3), np.uint8)
        data = tiff(pixels, photometric="rgb", extratags=[(274, "H", 1, turn)])

        for channels in (0, 3):
            np.testing.assert_array_equal(pixels, decode_picture(data, channels=channels))
            np.testing.assert_array_equal(
                ImageOps.exif_transpose(Image.open(io.BytesIO(data))), decode_picture(data, channels=channels, orient=True)
            )

    @pytest.mark.parametrize(("shape", "dtype"), [((16, 24, 13), "uint16"), ((16, 24), "float64")])
    def test_what_is_no_colour_is_not_called_damaged_and_says_how_it_is_read(self, shape: tuple[int, ...], dtype: str) -> None:
        data = tiff(np.ones(shape, dtype), photometric="minisblack", planarconfig="contig" if len(shape) == 3 else None)

        with pytest.raises(DataError, match="whole picture") as caught:
            decode_picture(data)

        assert f"dtype={dtype}" in str(caught.value.hint)

    def test_a_tiff_that_is_cut_is_an_error(self) -> None:
        data = tiff(RANDOM.integers(0, 65536, (64, 64), np.uint16), compression="zlib")

        for length in (9, 100, len(data) // 2, len(data) - 1):
            with pytest.raises(DataError):
                decode_picture(data[:length], channels=0)

    @pytest.mark.parametrize(("photometric", "bands"), [("cielab", 3), ("ycbcr", 3), ("separated", 4)])
    def test_colours_of_another_kind_are_those_that_pillow_makes_of_them(self, photometric: str, bands: int) -> None:
        data = tiff(RANDOM.integers(0, 256, (9, 7, bands), np.uint8), photometric=photometric)
        expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

        for channels in (0, 3):
            np.testing.assert_array_equal(expected, decode_picture(data, channels=channels))


class TestOthers:
    @pytest.mark.parametrize("bands", [1, 3])
    @pytest.mark.parametrize("top", [255, 1000, 65535])
    def test_netpbm_gives_the_numbers_it_holds(self, bands: int, top: int) -> None:
        numbers = RANDOM.integers(0, top + 1, (5, 4, bands)).astype(">u2" if top > 255 else "u1")
        data = b"P%d\n# by hand\n4 5\n%d\n" % (6 if bands == 3 else 5, top) + numbers.tobytes()

        np.testing.assert_array_equal(numbers, decode_picture(data, channels=0))

    def test_jpeg_of_12_bits(self) -> None:
        imagecodecs = pytest.importorskip("imagecodecs", reason=MEDIA)
        data = imagecodecs.jpeg_encode(RANDOM.integers(0, 4096, (16, 16, 3), np.uint16), bitspersample=12)

        np.testing.assert_array_equal(imagecodecs.jpeg_decode(data), decode_picture(data, dtype="uint16"))
        with pytest.raises(DataError, match="no colours of 8 bits"):
            decode_picture(data)

    @pytest.mark.parametrize("codec", ["jpeg2k", "jpegxl"])
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    def test_jpeg_2000_and_xl(self, codec: str, dtype: Any) -> None:
        imagecodecs = pytest.importorskip("imagecodecs", reason=MEDIA)
        data = getattr(imagecodecs, f"{codec}_encode")(RANDOM.integers(0, 255, (16, 16, 3)).astype(dtype))

        np.testing.assert_array_equal(getattr(imagecodecs, f"{codec}_decode")(data), decode_picture(data, channels=0))

    @pytest.mark.parametrize("turn", range(1, 9))
    def test_the_orientation_of_a_picture_is_that_of_pillow(self, turn: int) -> None:
        exif = Image.Exif()
        exif[0x0112] = turn
        pixels = RANDOM.integers(0, 65536, (6, 9), np.uint16)
        data = saved(Image.fromarray(pixels), "PNG", exif=exif)
        wide = tiff(np.stack([pixels] * 5, axis=2), photometric="minisblack", planarconfig="contig", extratags=[(274, "H", 1, turn)])

        turned = read_raster(data, orient=True)[:, :, 0]

        np.testing.assert_array_equal(turned, read_raster(wide, orient=True)[:, :, 4])

    def test_a_png_of_16_bits_in_colour_is_turned_on_request(self) -> None:
        imagecodecs = pytest.importorskip("imagecodecs", reason=MEDIA)
        pixels = RANDOM.integers(0, 65536, (6, 9, 3), np.uint16)
        exif = Image.Exif()
        exif[0x0112] = 6
        tag = b"eXIf" + exif.tobytes().removeprefix(b"Exif\0\0")
        chunk = (len(tag) - 4).to_bytes(4, "big") + tag + zlib.crc32(tag).to_bytes(4, "big")
        plain = imagecodecs.png_encode(pixels)
        data = plain[:33] + chunk + plain[33:]  # behind the header

        np.testing.assert_array_equal(pixels, read_raster(data))
        np.testing.assert_array_equal(np.rot90(pixels, -1), read_raster(data, orient=True))

    def test_only_a_tiff_has_pages(self) -> None:
        with pytest.raises(DataError, match="only a TIFF and a PDF have pages"):
            decode_picture(saved(Image.new("L", (3, 3)), "PNG"), page=1)


class TestChannels:
    @given(st.sampled_from(["L", "LA", "RGB", "RGBA"]), st.sampled_from([1, 3, 4]), st.integers(0, 99))
    def test_8_bits_are_converted_as_pillow_does(self, mode: str, channels: int, seed: int) -> None:
        bands = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}[mode]
        pixels = np.random.default_rng(seed).integers(0, 256, (4, 5, bands), np.uint8)
        data = saved(Image.fromarray(pixels[:, :, 0] if bands == 1 else pixels, mode), "PNG")

        np.testing.assert_array_equal(decode_picture(data, channels=channels), in_channels(pixels, channels))

    def test_bands_are_no_channels(self) -> None:
        with pytest.raises(DataError, match="13 bands"):
            in_channels(np.zeros((2, 2, 13), np.uint16), 3)


class TestDtype:
    def test_a_number_that_does_not_fit_is_said(self) -> None:
        with pytest.raises(DataError, match="from 0 to 27001"):
            in_dtype(np.array([[[0], [27001]]], np.uint16), "uint8")

    def test_fractions_are_no_whole_numbers(self) -> None:
        with pytest.raises(DataError, match="not whole numbers"):
            in_dtype(np.ones((1, 1, 1), np.float32), "int32")


class TestFractions:
    @pytest.mark.parametrize(("order", "scale"), [("<", "-1.0"), (">", "2.5")])
    def test_a_pfm_is_read_from_the_bottom_up_in_either_order(self, order: str, scale: str) -> None:
        rows = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
        for form, pixels in (("PF", rows), ("Pf", rows[:, :, :1])):
            data = f"{form}\n4 2\n{scale}\n".encode() + pixels[::-1].astype(f"{order}f4").tobytes()

            np.testing.assert_array_equal(pixels, decode_picture(data, channels=0))

    def test_motion_keeps_its_two_bands_and_is_no_colours(self) -> None:
        rows = RANDOM.normal(0, 1, (3, 5, 2)).astype("<f4")
        data = b"PIEH" + np.array([5, 3], "<i4").tobytes() + rows.tobytes()

        np.testing.assert_array_equal(rows, decode_picture(data, channels=0))
        with pytest.raises(DataError, match="motion") as caught:
            decode_picture(data)
        assert caught.value.hint == "channels=0 keeps them."

    @pytest.mark.parametrize("data", [b"PIEH", b"PIEH" + b"\xff" * 8, b"PF\n4 2\n", b"Pf\n0 2\n-1\n", b"Pf\n9 9\n-1\n1234"])
    def test_damage_is_named(self, data: bytes) -> None:
        with pytest.raises(DataError):
            decode_picture(data, channels=0)

    def test_exr_gives_its_colours_else_its_depth(self) -> None:
        exr = pytest.importorskip("OpenEXR", reason="OpenEXR is not installed (extra `media`)")
        rows = RANDOM.normal(0, 1, (6, 5, 3)).astype(np.float32)

        np.testing.assert_array_equal(rows, decode_picture(exr_of(exr, RGB=rows), channels=0))
        np.testing.assert_array_equal(rows[:, :, :1], decode_picture(exr_of(exr, Z=rows[:, :, 0]), channels=0))
        np.testing.assert_array_equal(rows, decode_picture(exr_of(exr, Depth=rows[:, :, 0], **{"view.RGB": rows}), channels=0))
        with pytest.raises(DataError, match="float32"):
            decode_picture(exr_of(exr, RGB=rows))


def test_the_pages_of_a_pdf_are_pictures() -> None:
    pdf = pytest.importorskip("pypdfium2", reason="pypdfium2 is not installed (extra `media`)")
    data = pdf_of(pdf, (72, 36), (36, 72))

    assert [(72, 144, 3), (144, 72, 3)] == [decode_picture(data, page=page).shape for page in (0, 1)]
    with pytest.raises(DataError, match="no page 2"):
        decode_picture(data, page=2)


class TestNetpbm:
    @pytest.mark.parametrize(
        ("data", "expected"),
        [
            (b"P3 # c\n2 #1\n 1\n255\n1 2 3  4 5\n6 7", [[[1, 2, 3], [4, 5, 6]]]),
            (b"P2\n1 2 1000\n1000 0", [[[1000]], [[0]]]),
            (b"P5\n1 2 255 \x07\x08\x09", [[[7]], [[8]]]),
            (b"P6 1 1 256\n\1\2\3\4\5\6", [[[258, 772, 1286]]]),
        ],
    )
    def test_numbers_stand_in_text_or_in_bytes(self, data: bytes, expected: list[Any]) -> None:
        found = decode_picture(data, channels=0)

        assert expected == found.tolist()
        assert ("uint16" if found.max() > 255 else "uint8") == found.dtype

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"P5", "the header of the picture is damaged"),
            (b"P5 1 x", "the header of the picture is damaged"),
            (b"P5 1 1 # only a remark", "the header of the picture is damaged"),
            (b"P5 1 1234567890 255\n", "the header of the picture is damaged"),
            (b"P2 1 2 255\n1", "is cut short, or its numbers are damaged"),
            (b"P2 1 2 9\n9 10", "is cut short, or its numbers are damaged"),
            (b"P2 1 2 9\n9 x", "is cut short, or its numbers are damaged"),
            (b"P5 1 2 255\n\1", "2 bytes of pixels are said, 1 are there"),
            (b"P6 1 1 256\n12345", "6 bytes of pixels are said, 5 are there"),
            (b"P5 0 2 255\n\1", "0 bytes of pixels are said, 1 are there"),
            (b"P5 1 1 255", "1 bytes of pixels are said, 0 are there"),
            (b"P5 9000 9000 255\n", "the picture is too large"),
        ],
    )
    def test_damage_is_named(self, data: bytes, message: str) -> None:
        with pytest.raises(DataError, match=message):
            decode_picture(data, channels=0)


class TestColours:
    def test_a_palette_is_looked_up_where_colours_are_asked_for(self) -> None:
        numbers = RANDOM.integers(0, 256, (4, 6), np.uint8)
        table = RANDOM.integers(0, 65536, (3, 256), np.uint16)
        colours = (table[:, numbers] >> 8).transpose(1, 2, 0)
        data = tiff(numbers, photometric="palette", colormap=table)

        np.testing.assert_array_equal(colours, decode_picture(data, dtype="uint16"))
        np.testing.assert_array_equal(colours, decode_picture(data))
        np.testing.assert_array_equal(numbers[:, :, None], decode_picture(data, channels=0))

    @pytest.mark.parametrize(("options", "bands"), [({}, 3), ({"transparency": bytes([7] * 256)}, 4)])
    def test_so_is_one_of_a_png_with_its_alpha(self, options: dict[str, Any], bands: int) -> None:
        image = Image.fromarray(RANDOM.integers(0, 256, (4, 6, 3), np.uint8)).convert("P")
        data = saved(image, "PNG", **options)
        expected = Image.open(io.BytesIO(data)).convert("RGBA")

        np.testing.assert_array_equal(np.asarray(expected), decode_picture(data, channels=4, dtype="int16"))
        assert bands == read_raster(data, colours=True).shape[2]
        assert 1 == read_raster(data).shape[2]

    def test_other_modes_of_pillow_become_colours_or_grey(self) -> None:
        grey = saved(Image.fromarray(RANDOM.integers(0, 2, (4, 6), np.uint8) * 255).convert("1"), "PNG")
        inks = saved(Image.new("CMYK", (6, 4), (9, 8, 7, 6)), "JPEG")

        assert {0, 255} == {*np.unique(decode_picture(grey, channels=0)).tolist()}
        assert (4, 6, 3) == decode_picture(inks, channels=0).shape

    def test_of_a_page_of_16_bits_the_high_byte_is_kept(self) -> None:
        pages = RANDOM.integers(0, 65536, (2, 4, 6), np.uint16)
        data = tiff(pages, photometric="minisblack")

        np.testing.assert_array_equal(pages[1] >> 8, decode_picture(data, page=1, channels=1)[:, :, 0])
        with pytest.raises(DataError, match="which are no colours of 8 bits") as caught:
            decode_picture(tiff(np.ones((2, 4, 6), np.float32), photometric="minisblack"), page=1)
        assert "decode(…, dtype=float32) keeps them." == caught.value.hint

    def test_a_volume_is_no_picture(self) -> None:
        data = tiff(np.zeros((16, 16, 16), np.uint8), volumetric=True, tile=(16, 16, 16), photometric="minisblack")

        with pytest.raises(DataError, match="it is a volume of 16 layers, not a picture"):
            read_raster(data)

    def test_pages_are_counted(self) -> None:
        assert 3 == page_count(tiff(np.zeros((3, 4, 4), np.uint8), photometric="minisblack"))
        assert 1 == page_count(saved(Image.new("L", (3, 3)), "PNG"))


class TestBands:
    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "int32"])
    def test_grey_is_weighed_and_alpha_is_full_or_dropped(self, dtype: str) -> None:
        pixels = np.array([[[10, 20, 30, 40]]], dtype)
        top = 1 if dtype == "float32" else np.iinfo(dtype).max
        grey = in_channels(pixels, 1)

        assert (dtype, (1, 1, 1)) == (grey.dtype, grey.shape)
        assert abs(float(grey[0, 0, 0]) - (0.299 * 10 + 0.587 * 20 + 0.114 * 30)) < (1e-3 if dtype == "float32" else 0.5)
        assert [10, 20, 30] == in_channels(pixels, 3)[0, 0].tolist()
        assert [10, 20, 30, top] == in_channels(pixels[:, :, :3], 4)[0, 0].tolist()
        if dtype != "float32":
            assert [[10] * 3, [10, 10, 10, 20], [10]] == [in_channels(pixels[:, :, :2], bands)[0, 0].tolist() for bands in (3, 4, 1)]
        assert in_channels(pixels, 0) is pixels is in_channels(pixels, 4)

    def test_numbers_go_into_a_dtype_that_holds_them(self) -> None:
        pixels = np.array([[[-128], [127]]], np.int16)

        assert [-128, 127] == in_dtype(pixels, "int8").ravel().tolist()
        assert in_dtype(pixels, None) is pixels is in_dtype(pixels, "int16")
        assert np.float32 == in_dtype(pixels, "float32").dtype
        for number in (-129, 128):
            with pytest.raises(DataError, match=f"it holds numbers from {number} to {number}, which are not int8"):
                in_dtype(np.array([[[number]]], np.int16), "int8")
        assert (0, 3, 1) == in_dtype(np.zeros((0, 3, 1), np.float32), "uint8").shape
        assert 65504 == in_dtype(np.full((1, 1, 1), 65504, np.uint16), "float16").max()
        assert np.isinf(in_dtype(np.full((1, 1, 1), np.inf), "float32")).all()
        with pytest.raises(DataError, match="it holds numbers from 65535 to 65535, which are not float16"):
            in_dtype(np.full((1, 1, 1), 65535, np.uint16), "float16")


class TestFrames:
    @pytest.mark.parametrize(
        ("data", "expected"),
        [
            (b"\xff\xd8\xff\xc0\0\x11\x08", ("jpeg", 8)),
            (b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xff\xc1\0\x11\x0c\0", ("jpeg", 12)),
            (b"\xff\xd8\xff\xc4\0\x02\xff\xc3\0\x11\x10\0", ("ljpeg", 16)),
            (b"\xff\xd8\xff\xf7\0\x11\x08\0", ("jpegls", 8)),
            (b"\xff\xd8\xff\xcc\0\x02\xff\xcf\0\x11\x09\0", ("jpeg", 9)),
            (b"\xff\xd8\xff\xc8\0\x02\xff\xc0\0\x11\x0c", ("jpeg", 8)),  # it ends there
            (b"\xff\xd8ab", ("jpeg", 8)),
        ],
    )
    def test_the_first_frame_says_how_a_jpeg_is_coded(self, data: bytes, expected: tuple[str, int]) -> None:
        assert expected == jpeg_frame(data)


@pytest.mark.parametrize(("name", "most"), [("MAX_PIXELS", 64), ("MAX_BYTES", 512)])
def test_a_tiff_is_measured_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    data = tiff(np.zeros((8, 8, 2), np.float32), photometric="minisblack", planarconfig="contig")
    monkeypatch.setattr(pictures, name, most)
    assert (8, 8, 2) == read_raster(data).shape
    monkeypatch.setattr(pictures, name, most - 1)

    with pytest.raises(LimitError, match="the picture is too large: 8 x 8 pixels"):
        read_raster(data)
