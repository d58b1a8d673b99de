"""Tiles of the grid."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tarviz.widgets.answers.questions import Box
from tarviz.widgets.browse import thumbnails
from tarviz.widgets.panes.overlays import Overlays
from tests.widgets.conftest import png


@pytest.mark.parametrize("scale", [1, 2, 5])
def test_an_object_is_cut_out_with_a_rim_whatever_size_its_annotation_is_of(scale: int):
    """A white square in a black picture; the annotation names its place in a picture smaller by `scale`."""
    pixels = np.zeros((200, 400), np.uint8)
    pixels[100:150, 200:250] = 255
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    x0, y0, x1, y1 = (edge / scale for edge in (200, 100, 250, 150))
    found = thumbnails._cut("png", out.getvalue(), Box("a", None, x0, y0, x1, y1, 400 // scale, 200 // scale), 500)

    assert found.picture is not None
    white = np.argwhere(np.asarray(Image.open(io.BytesIO(found.picture))) > 128)
    tall, wide = Image.open(io.BytesIO(found.picture)).size
    assert [50, 50] == (white.max(0) - white.min(0) + 1).tolist()
    assert 50 < tall == wide < 80
    assert np.abs(white.min(0) + white.max(0) + 1 - wide).max() <= 2  # in the middle


def test_pictures_of_one_record_lie_over_each_other_or_two_by_two():
    colours = [(250, 0, 0), (0, 250, 0), (0, 0, 250), (250, 250, 0)]
    for count, middles in ((2, [(48, 23), (48, 72)]), (4, [(23, 23), (72, 23), (23, 72), (72, 72)])):
        fields = {f"{name}.png": png(colour, (40, 40)) for name, colour in zip("abcd"[:count], colours, strict=False)}

        tile = thumbnails.made_of(thumbnails.TilePlan(tuple(fields)), fields, Overlays(), 96)

        assert tile.picture is not None
        with Image.open(io.BytesIO(tile.picture)) as image:
            assert (96, 96) == image.size
            assert colours[:count] == [tuple(50 * round(value / 50) for value in image.getpixel(at)) for at in middles]
