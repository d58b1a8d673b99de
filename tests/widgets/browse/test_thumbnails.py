"""Tiles of the grid."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tarviz import stores, viewers
from tarviz.widgets.answers.questions import Box
from tarviz.widgets.browse import thumbnails
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.panes.overlays import Overlays
from tests.widgets.browse.test_controller import settle
from tests.widgets.conftest import png, tar


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
    assert [50, 50] == (white.max(0) - white.min(0) + 1).tolist()
    assert ("JPEG", (61, 61)) == ((picture := Image.open(io.BytesIO(found.picture))).format, picture.size)
    assert np.abs(white.min(0) + white.max(0) + 1 - 61).max() <= 2  # in the middle


@pytest.mark.parametrize(("box", "size"), [((0, 0, 10, 20), (13, 23)), ((30, 20, 40, 30), (11, 13)), ((50, 50, 60, 50), (1, 1))])
def test_the_rim_ends_where_the_picture_does_and_what_one_sees_through_stays(box, size):
    out = io.BytesIO()
    Image.new("RGBA", (40, 40), (9, 9, 9, 0)).save(out, "PNG")
    found = thumbnails._cut("png", out.getvalue(), Box("a", None, *box, 0, 0), 500)
    picture = Image.open(io.BytesIO(found.picture))

    assert ("RGBA", size, (0, 0)) == (picture.mode, picture.size, picture.getchannel("A").getextrema())


def test_pictures_of_one_record_lie_over_each_other_or_two_by_two():
    colours = [(250, 0, 0), (0, 250, 0), (0, 0, 250), (250, 250, 0)]
    for count, middles in ((2, [(48, 23), (48, 72)]), (4, [(23, 23), (72, 23), (23, 72), (72, 72)])):
        fields = {f"{name}.png": png(colour, (40, 40)) for name, colour in zip("abcd"[:count], colours, strict=False)}

        tile = thumbnails.make_tile(thumbnails.TilePlan(tuple(fields)), fields, Overlays(), 96)

        assert tile.picture is not None
        with Image.open(io.BytesIO(tile.picture)) as image:
            assert (96, 96) == image.size
            assert colours[:count] == [tuple(50 * round(value / 50) for value in image.getpixel(at)) for at in middles]


@pytest.mark.parametrize(
    ("sizes", "size"),
    [([(40, 10), (40, 5)], (96, 50)), ([(10, 40), (10, 9)], (96, 96)), ([(10, 11), (12, 9)], (96, 52)), ([(8, 4)] * 3, (96, 50))],
)
def test_pictures_side_by_side_have_the_room_of_the_tallest(sizes: list[tuple[int, int]], size: tuple[int, int]):
    fields = {f"{name}.png": png((9, 9, 9), each) for name, each in zip("abc", sizes, strict=False)}
    tile = thumbnails.make_tile(thumbnails.TilePlan(tuple(fields)), fields, Overlays(), 96)

    assert size == Image.open(io.BytesIO(tile.picture)).size


def test_a_record_without_pictures_is_the_words_of_its_first_field():
    fields = {"a.png": b"none", "b.png": b"none either"}
    alone = thumbnails.make_tile(thumbnails.TilePlan(("a.png",)), fields, Overlays(), 96)

    assert ("a.png", b"") == (alone.ext, alone.picture)
    assert alone == thumbnails.make_tile(thumbnails.TilePlan(("a.png", "b.png")), fields, Overlays(), 96)
    assert thumbnails.Tile() == thumbnails.make_tile(thumbnails.TilePlan(()), fields, Overlays(), 96)


class TestKept:
    """Tiles that are kept are not made anew."""

    @pytest.fixture
    def browser(self, tmp_path: Path) -> Iterator[Browser]:
        path = tar(tmp_path / "a.tar", [(f"k{at}", {"png": png((40 * at, 9, 9))}) for at in range(3)])
        with contextlib.closing(settle(Browser(path, cache=False))) as browser:
            yield browser

    @pytest.fixture
    def made(self, browser: Browser, monkeypatch: pytest.MonkeyPatch):
        """The keys of the records whose tiles had to be made when those at some places were asked for."""
        keys: list[str] = []
        real = viewers.tile
        monkeypatch.setattr(viewers, "tile", lambda blob, meta, size: keys.append(meta.key) or real(blob, meta, size))
        rows = [browser.shards.rows.row(at) for at in range(3)]

        def asked(*places: int) -> list[str]:
            keys.clear()
            tiles, _ = browser.shards.tiles.get([rows[at] for at in places], "", 96)
            assert all(tile.picture for tile in tiles)
            return sorted(keys)

        return asked

    def test_the_latest_ones_are(self, made, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(thumbnails, "_MOST_HELD", 700)  # two of them

        assert [["k0"], ["k1"], [], ["k2"], [], ["k1"]] == [made(0), made(1), made(0), made(2), made(0, 2), made(1)]

    def test_one_is_however_large_it_is(self, made, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(thumbnails, "_MOST_HELD", 0)

        assert [["k0"], [], ["k1"], [], ["k0"]] == [made(0), made(0), made(0, 1), made(1), made(0)]

    def test_none_is_when_their_shards_have_changed(self, browser: Browser, made, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(thumbnails, "_MOST_HELD", 700)
        made(0, 1)
        browser.shards.tiles.forget()

        assert [["k0", "k1"], []] == [made(0, 1), made(0, 1)]

    def test_what_could_not_be_read_is_tried_again(self, browser: Browser):
        (shard,) = browser.shards.rows.shards
        row, path = browser.shards.rows.row(1), Path(shard.url)
        path.write_bytes(path.read_bytes())
        first = browser.shards.tiles.get([row], "", 96)[0][0]
        shard.stat = stores.of(shard.url).stat(shard.url)
        second = browser.shards.tiles.get([row], "", 96)[0][0]

        assert (b"", True, "") == (first.picture, first.reason.startswith("E_CHANGED: "), second.reason)
        assert second.picture


def test_a_box_without_a_picture_is_its_name_and_one_of_a_broken_picture_says_so(tmp_path: Path):
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (80, 120, 3), np.uint8)).save(out, "PNG")
    noise = out.getvalue()
    path = tar(
        tmp_path / "a.tar",
        [("a", {"png": png()}), ("b", {"txt": b"x"}), ("c", {"png": b"no picture"}), ("d", {"png": noise[: len(noise) // 2]})],
    )
    with contextlib.closing(settle(Browser(path, cache=False))) as browser:
        rows = [browser.shards.rows.row(at) for at in range(4)]
        tiles = browser.shards.tiles.boxes(rows, [Box("cat", None, 1, 1, 3, 3, 12, 8)] * 4, 96)

    assert [(True, "", ""), (False, "cat", ""), (False, "", "E_DECODE"), (False, "", "E_DECODE")] == [
        (bool(tile.picture), tile.text, tile.reason.partition(":")[0]) for tile in tiles
    ]
