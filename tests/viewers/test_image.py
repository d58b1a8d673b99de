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
