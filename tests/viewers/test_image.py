"""Pictures: shown as they are or through PNG, upright, small, and refused by header."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from tarviz import viewers
from tarviz.looks import tones
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta, Panel, image
from tests.viewers.payloads import LOCKED_PDF, encoded, exr_of, pdf_of


class TestImage(ViewerTests):
    viewer = "image"
    good: ClassVar = {
        "jpg": encoded("JPEG"),
        "png": encoded("PNG", mode="RGBA"),
        "gif": encoded("GIF", mode="P"),
        "webp": encoded("WEBP"),
        "bmp": encoded("BMP"),
        "tif": encoded("TIFF"),
        "seg.png": encoded("PNG", mode="1"),
        "la.png": encoded("PNG", mode="LA"),
        "cmyk.jpg": encoded("JPEG", mode="CMYK"),
    }
    bad: ClassVar = {"jpg": b"", "png": b"<html><script>1</script>", "jpeg": encoded("JPEG")[:200]}

    def oracle(self, ext, blob):
        return np.asarray(Image.open(io.BytesIO(blob)))

    def test_facts_say_size_mode_and_format(self):
        assert [("size", "20×10"), ("mode", "RGB"), ("format", "JPEG")] == self.panel("jpg", self.good["jpg"]).facts

    @pytest.mark.parametrize(("kind", "what", "mode"), [("GIF", "frames", "P"), ("TIFF", "pages", "L")])
    def test_frames_and_pages_are_counted(self, kind, what, mode):
        out = io.BytesIO()
        frames = [Image.new("L", (20, 10), shade) for shade in (0, 100, 200)]
        frames[0].save(out, kind, save_all=True, append_images=frames[1:])
        panel = self.panel(kind.lower(), out.getvalue())

        facts = [("size", "20×10"), ("mode", mode), ("format", kind), (what, "3")]
        assert (f"20×10 {mode} {kind}", facts) == (panel.summary, panel.facts)
        assert [("page", 0, 2)] * (kind == "TIFF") == [(one.name, one.value, one.high) for one in panel.controls if one.name == "page"]

    def test_what_a_browser_shows_travels_as_it_is(self):
        image = self.panel("png", self.good["png"]).blocks[0]

        assert self.good["png"] == bytes(image.data)
        assert "image/png" == image.mime

    def test_tiff_becomes_png(self):
        image = self.panel("tif", self.good["tif"]).blocks[0]

        assert bytes(image.data).startswith(b"\x89PNG")

    def test_a_large_picture_has_a_small_tile(self):
        tile = viewers.tile(encoded("JPEG", (500, 375)), Meta("jpg"), 96)

        assert (96, 72) == Image.open(io.BytesIO(tile)).size

    def test_orientation_is_shown_and_tiles_stand_upright(self):
        exif = Image.Exif()
        exif[0x0112] = 6
        blob = encoded("JPEG", (40, 20), exif=exif)

        assert ("EXIF orientation", "6") in self.panel("jpg", blob).facts
        assert (10, 20) == Image.open(io.BytesIO(viewers.tile(blob, Meta("jpg"), 20))).size

    @pytest.mark.parametrize("kind", ["AVIF", "TIFF"])
    def test_what_becomes_a_png_stands_upright_in_the_pane_too(self, kind):
        exif = Image.Exif()
        exif[0x0112] = 6
        blob = encoded(kind, (40, 20), exif=exif)
        block = self.panel(kind.lower(), blob).blocks[0]

        assert (20, 40) == Image.open(io.BytesIO(block.data)).size == (block.width, block.height)
        assert (20, 40) == Image.open(io.BytesIO(viewers.tile(blob, Meta(kind.lower()), 96))).size

    def test_each_page_is_measured_before_it_is_decoded(self, monkeypatch):
        out = io.BytesIO()
        Image.new("L", (8, 8)).save(out, "TIFF", save_all=True, append_images=[Image.new("L", (90, 90))])
        monkeypatch.setattr(image, "MAX_PIXELS", 8000)

        assert viewers.view(out.getvalue(), Meta("tif")).error is None
        assert "E_IMAGE_TOO_LARGE" == viewers.view(out.getvalue(), Meta("tif", options={"page": 1})).error.code

    def test_sixteen_bit_pictures_are_stretched(self):
        out = io.BytesIO()
        Image.fromarray((np.arange(400, dtype=np.uint16) * 100).reshape(20, 20)).save(out, "PNG")
        tile = Image.open(io.BytesIO(viewers.tile(out.getvalue(), Meta("png"), 96)))

        assert (0, 255) == tile.getextrema()

    def test_sixteen_bits_are_the_same_in_pane_and_tile_and_in_png_and_tiff(self):
        values = (np.arange(4096, dtype=np.uint16)).reshape(64, 64)
        panes = {kind: self.panel(ext, saved_as(values, kind)).blocks[0] for ext, kind in (("png", "PNG"), ("tif", "TIFF"))}
        tile = viewers.tile(saved_as(values, "PNG"), Meta("png"), 96)

        assert pixels(panes["PNG"].data).max() == 255
        assert np.array_equal(pixels(panes["PNG"].data), pixels(panes["TIFF"].data))
        assert np.array_equal(pixels(panes["PNG"].data), pixels(tile))

    def test_the_values_travel_beside_the_colours(self):
        values = np.arange(4096, dtype=np.uint16).reshape(64, 64)
        block = self.panel("png", saved_as(values, "PNG")).blocks[0]

        assert ("uint16", 1) == (block.dtype, block.step)
        assert np.array_equal(values.reshape(-1), np.frombuffer(block.values, "<u2"))

    def test_the_window_and_the_palette_are_chosen_by_the_reader(self):
        blob = saved_as(np.arange(4096, dtype=np.uint16).reshape(64, 64), "PNG")
        raw = viewers.view(blob, Meta("png", options={"window": "raw", "palette": "grey"})).blocks[0]
        warm = viewers.view(blob, Meta("png", options={"window": "min–max", "palette": "heat"})).blocks[0]

        assert pixels(raw.data).max() == 16
        assert "0 dark … 4095 bright (min–max, heat)" == warm.label
        assert pixels(warm.data).ndim == 3

    def test_masks_of_class_numbers_have_colours_and_names(self):
        mask = np.repeat(np.arange(4, dtype=np.uint8), 400).reshape(40, 40)
        block = viewers.view(saved_as(mask, "PNG"), Meta("seg.png", options={"classes": ["void", "cat", "dog"]})).blocks[0]

        assert pixels(block.data).max() > 150
        assert (4, ("void", "cat", "dog")) == (len(np.unique(pixels(block.data).reshape(-1, 3), axis=0)), block.names)

    def test_grey_photographs_stay_as_they_are(self):
        grey = encoded("PNG", (64, 64), mode="L")

        assert grey == bytes(self.panel("png", grey).blocks[0].data)

    def test_colours_of_sixteen_bits_have_a_window(self):
        imagecodecs = pytest.importorskip("imagecodecs", reason="imagecodecs is not installed (extra `media`)")
        blob = imagecodecs.png_encode(RED_OF_12_BITS)

        assert "0 dark … 4000 bright (auto, colours)" == self.panel("png", blob).blocks[0].label
        for shown in (self.panel("png", blob).blocks[0].data, viewers.tile(blob, Meta("png"), 96)):
            assert (255, 0, 0) == tuple(pixels(shown)[4, 2])

    def test_bands_of_a_tiff_are_turned(self):
        tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed (extra `media`)")
        out = io.BytesIO()
        tifffile.imwrite(out, np.arange(13, dtype=np.uint16)[:, None, None] * np.ones((13, 24, 24), np.uint16), planarconfig="separate")
        panel = viewers.view(out.getvalue(), Meta("tif", options={"band": 7}))

        assert "24×24, 13 × uint16" == panel.summary
        assert {7} == set(np.frombuffer(panel.blocks[0].values, "<u2").tolist())
        assert viewers.tile(out.getvalue(), Meta("tif"), 96)

    def test_doubles_and_colours_of_a_tiff_are_shown(self):
        tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed (extra `media`)")
        for array in (np.linspace(0, 1, 576).reshape(24, 24), RED_OF_12_BITS):
            out = io.BytesIO()
            tifffile.imwrite(out, array)

            assert self.panel("tif", out.getvalue()).error is None
            assert 255 == pixels(viewers.tile(out.getvalue(), Meta("tif"), 96)).max()

    @pytest.mark.parametrize("damaged", [b"II*\0\1", b"II*\0\xff\xff\xff\xff", b"MM\0*\0\0\0\x08\0\3\1\2"])
    def test_a_tiff_whose_tags_are_cut_short_is_no_picture(self, damaged: bytes):
        assert "E_DECODE" == self.panel("tif", damaged).error.code

    @pytest.mark.parametrize(
        ("dtype", "bands", "summary"),
        [
            ("u2", 1, "24×20 I;16 TIFF"), ("i2", 1, "24×20, 1 × int16"), ("i1", 1, "24×20, 1 × int8"),
            ("f4", 1, "24×20 F TIFF"), ("f8", 1, "24×20, 1 × float64"), ("u1", 3, "24×20 RGB TIFF"), ("u1", 4, "24×20 RGBA TIFF"),
            ("u1", 5, "24×20, 5 × uint8"), ("u2", 3, "24×20, 3 × uint16"), ("u2", 4, "24×20, 4 × uint16"), ("u2", 5, "24×20, 5 × uint16"),
        ],
    )  # fmt: skip
    def test_what_pillow_makes_less_of_is_read_as_it_is(self, dtype: str, bands: int, summary: str):
        tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed (extra `media`)")
        out = io.BytesIO()
        form = {"photometric": "rgb" if bands in (3, 4) else "minisblack", "planarconfig": "contig" if bands > 1 else None}
        tifffile.imwrite(out, np.arange(480 * bands).astype(dtype).reshape(20, 24, bands), **form)

        assert summary == self.panel("tif", out.getvalue()).summary
        assert (3 if bands in (3, 4) else 2) == pixels(viewers.tile(out.getvalue(), Meta("tif"), 96)).ndim

    def test_a_signed_tiff_of_8_bits_shows_its_numbers(self):
        tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed (extra `media`)")
        out = io.BytesIO()
        tifffile.imwrite(out, np.array([[-1, -128], [127, 0]], np.int8))
        drawn, counted = self.panel("tif", out.getvalue()).blocks

        assert [-1, -128, 127, 0] == np.frombuffer(drawn.values, "<i4").tolist()
        assert "values -128…127" == counted.label

    @pytest.mark.parametrize("tile", [None, (16, 16)], ids=["strips", "tiles"])
    def test_a_whole_tiff_that_nothing_here_draws_is_not_called_damaged(self, tile, monkeypatch):
        tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed (extra `media`)")
        out = io.BytesIO()
        tifffile.imwrite(out, np.zeros((32, 32, 13), np.uint16), photometric="minisblack", planarconfig="contig", tile=tile)
        monkeypatch.setitem(sys.modules, "tifffile", None)

        assert "E_NOT_SHOWN: a TIFF that cannot be shown (13 bands of 16 bits)." == self.panel("tif", out.getvalue()).summary
        assert "E_DECODE" == self.panel("tif", out.getvalue()[:-1]).error.code

    def test_a_jpeg_of_more_than_8_bits_is_read_as_it_is(self):
        imagecodecs = pytest.importorskip("imagecodecs", reason="imagecodecs is not installed (extra `media`)")
        blob = imagecodecs.ljpeg_encode(np.arange(480, dtype=np.uint16).reshape(20, 24))

        assert "24×20, 1 × uint16" == self.panel("jpg", blob).summary

    @pytest.mark.parametrize("mode", ["RGB", "RGBA"])
    def test_how_often_values_come_is_told_of_each_colour(self, mode: str):
        out = io.BytesIO()
        Image.new(mode, (3, 2), (1, 2, 3, 4)[: len(mode)]).save(out, "PNG")
        series = self.panel("png", out.getvalue()).blocks[-1].series

        assert [("red", 1), ("green", 2), ("blue", 3)] == [(name, counts.index(6)) for name, counts in series]
        assert {256} == {len(counts) for _, counts in series}

    def test_the_pages_of_a_tiff_turn(self):
        out = io.BytesIO()
        pages = [Image.new("RGB", (20, 10 + at), (at * 100, 0, 0)) for at in range(3)]
        pages[0].save(out, "TIFF", save_all=True, append_images=pages[1:])
        for wanted, page in ((-1, 0), (1, 1), (2, 2), (3, 2)):
            panel = viewers.view(out.getvalue(), Meta("tif", options={"page": wanted}))

            assert ("page", page, 2) == next((one.name, one.value, one.high) for one in panel.controls)
            assert (10 + page, 20, 3) == pixels(panel.blocks[0].data).shape
            assert (100 * page, 0, 0) == tuple(pixels(panel.blocks[0].data)[0, 0])

    def test_pfm_and_flo_are_depth_and_motion(self):
        depth = b"Pf\n16 12\n-1.0\n" + np.linspace(1, 5, 192).astype("<f4").tobytes()
        motion = b"PIEH" + np.array([16, 12], "<i4").tobytes() + np.ones((12, 16, 2), "<f4").tobytes()

        assert "16×12, 1 × float32" == self.panel("pfm", depth).summary
        assert "direction as colour, 1.414 px or more in full strength" == self.panel("flo", motion).blocks[0].label
        for ext, blob in (("pfm", depth), ("flo", motion)):
            assert isinstance(viewers.tile(blob, Meta(ext), 96), bytes)
            assert "E_DECODE" == self.panel(ext, blob[:-8]).error.code

    def test_exr_is_light(self):
        exr = pytest.importorskip("OpenEXR", reason="OpenEXR is not installed (extra `media`)")
        blob = exr_of(exr, RGB=np.linspace(0, 9, 720, dtype=np.float32).reshape(12, 20, 3))
        panel = self.panel("exr", blob)

        assert "20×12, 3 × float32" == panel.summary
        assert "(auto, colours)" in panel.blocks[0].label
        assert self.panel("exr", blob[:200]).error is not None

    def test_the_pages_of_a_pdf_turn(self):
        pdf = pytest.importorskip("pypdfium2", reason="pypdfium2 is not installed (extra `media`)")
        blob = pdf_of(pdf, (72, 36), (36, 72))
        panel = viewers.view(blob, Meta("pdf", options={"page": 1}))

        assert "72×144, 3 × uint8" == panel.summary
        assert ("page", 1, 1) == next((one.name, one.value, one.high) for one in panel.controls)
        assert (48, 96) == Image.open(io.BytesIO(viewers.tile(blob, Meta("pdf"), 96))).size[::-1]
        assert "E_DECODE" == self.panel("pdf", b"%PDF-1.4 cut").error.code

    def test_a_pdf_under_a_password_is_no_damage(self):
        pytest.importorskip("pypdfium2", reason="pypdfium2 is not installed (extra `media`)")

        assert "E_NOT_SHOWN: the PDF asks for a password." == self.panel("pdf", LOCKED_PDF).summary
        assert viewers.refusal(LOCKED_PDF, Meta("pdf")) is None

    def test_what_needs_a_package_says_so_and_is_no_damage(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pypdfium2", None)
        panel = self.panel("pdf", b"%PDF-1.4")

        assert "E_MISSING_PACKAGE" == panel.error.code
        assert "pip install 'tarviz[media]'" in panel.blocks[0].text
        assert viewers.refusal(b"%PDF-1.4", Meta("pdf")) is None


RED_OF_12_BITS = np.repeat(np.repeat([[[4000, 0, 0], [0, 0, 0]]], 16, axis=0), 8, axis=1).astype(np.uint16)


def saved_as(values, kind):
    out = io.BytesIO()
    Image.fromarray(values).save(out, kind)
    return out.getvalue()


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)))


def flat(width: int, height: int, mode: str = "RGB", kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.new(mode, (width, height), (9, 9, 9, 9)[: len(mode)] if len(mode) > 1 else 9).save(out, kind)
    return out.getvalue()


class TestTile:
    @pytest.mark.parametrize(
        ("width", "height", "mode", "kind"),
        [
            (96, 96, "RGB", "PNG"), (97, 96, "RGB", "JPEG"), (2, 4608, "RGB", "JPEG"), (160, 57, "RGB", "PNG"), (160, 58, "RGB", "JPEG"),
            (150, 150, "RGBA", "PNG"), (400, 300, "RGBA", "PNG"), (400, 300, "RGB", "JPEG"), (400, 300, "LA", "PNG"),
        ],
    )  # fmt: skip
    def test_small_and_clear_ones_lose_nothing(self, width, height, mode, kind):
        tile = Image.open(io.BytesIO(viewers.tile(flat(width, height, mode), Meta("png"))))
        scale = min(1, 160 / max(width, height))

        assert kind == tile.format
        assert (max(1, round(width * scale)), round(height * scale)) == tile.size

    def test_class_numbers_have_the_colours_of_the_whole(self):
        mask = np.repeat(np.repeat(np.arange(4, dtype=np.uint8).reshape(2, 2), 100, axis=0), 100, axis=1)
        tile = pixels(viewers.tile(saved_as(mask, "PNG"), Meta("seg.png"), 50))
        colours = tones.id_colours()[:4].tolist()

        assert (50, 50) == tile.shape[:2]
        assert all(
            np.abs(tile[y, x].astype(int) - colours[number]).max() < 12
            for number, (y, x) in enumerate([(9, 9), (9, 40), (40, 9), (40, 40)])
        )


def png_of(width: int, height: int) -> bytes:
    """The header of a PNG of that size, and no pixels."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))]
    chunks += [struct.pack(">I", 0) + name + struct.pack(">I", zlib.crc32(name)) for name in (b"IDAT", b"IEND")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize(
    ("width", "height", "said"),
    [
        (8000, 8000, "E_DECODE"),
        (8000, 8001, "E_IMAGE_TOO_LARGE: 8000×8001, 64 million pixels are more than is decoded (64 million)."),
        (10_000, 10_000, "E_IMAGE_TOO_LARGE: 10000×10000, 100 million pixels are more than is decoded (64 million)."),
        (20_000, 20_000, "E_IMAGE_TOO_LARGE: 400 million pixels are more than is decoded (64 million)."),
    ],
)
def test_a_very_large_picture_is_refused_by_its_header(width, height, said):
    assert viewers.view(png_of(width, height), Meta("png")).summary.startswith(said)
    assert ((0, 0) if "TOO_LARGE" in said else (width, height)) == viewers.picture_size(png_of(width, height), "png")


class TestHistogram:
    def test_every_band_is_counted(self):
        plot = viewers.view(flat(10, 10, "RGBA"), Meta("png")).blocks[1]

        assert ("values 0…255", ["red", "green", "blue"]) == (plot.label, [name for name, _ in plot.series])
        assert all((100.0, 100.0) == (values[9], sum(values)) for _, values in plot.series)
        assert ["grey"] == [name for name, _ in viewers.view(flat(10, 10, "L", "JPEG"), Meta("jpg")).blocks[1].series]
        assert ["red", "green", "blue"] == [name for name, _ in viewers.view(encoded("GIF", mode="P"), Meta("gif")).blocks[1].series]

    @pytest.mark.parametrize(("width", "counted"), [(2000, 4_000_000), (2001, 1_001_000)])
    def test_of_a_large_picture_every_other_pixel(self, width, counted):
        plot = viewers.view(flat(width, 2000, kind="BMP"), Meta("bmp")).blocks[1]

        assert counted == sum(plot.series[0][1])


class TestPlanes:
    def test_bands_motion_and_colours_are_chosen(self):
        array = np.stack([np.full((4, 6), at, np.float32) for at in range(5)], axis=2)
        seen = {}
        for bands in (1, 2, 3, 4, 5):
            panel = Panel("")
            image.planes(array[:, :, :bands], Meta(), panel)
            seen[bands] = [(control.name, control.value, control.high, control.choices[:2]) for control in panel.controls]

        window, palette = ("window", "auto", 0, ("auto", "min–max")), ("palette", "grey", 0, ("grey", "viridis"))
        assert {
            1: [window, palette],
            2: [("as", "motion", 0, ("motion", "bands"))],
            3: [("as", "colours", 0, ("colours", "bands")), window],
            4: [("as", "colours", 0, ("colours", "bands")), window],
            5: [("as", "bands", 0, ("bands", "colours")), ("band", 0, 4, ()), window, palette],
        } == seen

    def test_whole_numbers_of_two_bands_are_no_motion(self):
        panel = Panel("")
        image.planes(np.zeros((4, 6, 2), np.uint8), Meta(options={"band": 9}), panel)

        assert [("band", 1, 1), ("window", "raw", 0), ("palette", "grey", 0)] == [(one.name, one.value, one.high) for one in panel.controls]

    @pytest.mark.parametrize(("width", "step"), [(2048, 1), (2049, 2)])
    def test_a_wide_one_is_seen_every_other_pixel(self, width, step):
        panel = Panel("")
        image.planes(np.zeros((3, width, 3), np.uint8), Meta(), panel)

        assert -(-width // step) == panel.blocks[0].width
        assert "as it is" + (", one pixel in 2" if step > 1 else "") == panel.blocks[0].label

    @pytest.mark.parametrize(
        ("dtype", "sent"),
        [
            ("u1", "uint8"),
            ("?", "uint8"),
            ("u2", "uint16"),
            ("i1", "int32"),
            ("i4", "int32"),
            ("u4", "float32"),
            ("i8", "float32"),
            ("f2", "float32"),
        ],
    )
    def test_values_are_sent_as_a_browser_has_them(self, dtype, sent):
        panel = Panel("")
        image.numbers(np.array([[0, 1], [1, 0]], dtype), Meta(options={"palette": "heat"}), panel)
        block = panel.blocks[0]

        assert (sent, 1) == (block.dtype, block.step)
        assert [0, 1, 1, 0] == np.frombuffer(block.values, sent).tolist()

    @pytest.mark.parametrize(("height", "step"), [(1024, 1), (1025, 2)])
    def test_of_very_many_values_every_so_manyth_is_sent(self, height, step):
        panel = Panel("")
        image.numbers(np.zeros((height, 1024), np.uint16), Meta(), panel)

        assert step == panel.blocks[0].step
        assert 2 * (1024 // step) * -(-height // step) == len(panel.blocks[0].values)
