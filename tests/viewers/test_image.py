"""Pictures: shown as they are or through PNG, upright, small, and refused by header."""

from __future__ import annotations

import io
from typing import ClassVar

import numpy as np
from PIL import Image

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta
from tests.viewers.payloads import encoded


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

    def test_facts_say_size_mode_and_format(self):
        assert [("size", "20×10"), ("mode", "RGB"), ("format", "JPEG")] == self.panel("jpg", self.good["jpg"]).facts[:3]

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


def saved_as(values, kind):
    out = io.BytesIO()
    Image.fromarray(values).save(out, kind)
    return out.getvalue()


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)))
