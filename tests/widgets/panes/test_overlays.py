"""What lies over a picture: out of which fields, masks as colours, shapes, and all of it drawn into a tile."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.looks import runs, tones
from tarviz.looks.shapes import Shape
from tarviz.model.errors import UsageError
from tarviz.widgets.panes.overlays import Mask, Overlay, Overlays, paint
from tests.widgets.conftest import png


def encoded(array: np.ndarray, mode: str | None = None) -> bytes:
    out = io.BytesIO()
    picture = Image.fromarray(array)
    (picture if mode is None else picture.convert(mode)).save(out, "PNG")
    return out.getvalue()


def mask_of(value: Any, *, side: int = 0, **more: Any) -> Mask | None:
    """The mask of a field `seg.png`, beside other fields."""
    found = Overlays().over({"seg.png": value, **more}, "jpg", 40, 20, side).masks
    return found[0] if found else None


def pixels(mask: Mask | None) -> np.ndarray:
    assert mask is not None
    return np.asarray(Image.open(io.BytesIO(mask.picture)))


def halves(left: int, right: int, dtype: Any = np.uint8) -> np.ndarray:
    """20 by 40 numbers: the left half, the right half."""
    return np.repeat(np.array([[left] * 20 + [right] * 20], dtype), 20, axis=0)


class TestFields:
    SIZES = {"jpg": 9, "json": 1 << 20, "txt": (1 << 20) + 1, "cls": 1, "seg.png": 5}

    def test_masks_and_what_is_written_of_no_more_than_a_mebibyte_are_looked_into(self):
        assert ["seg.png", "json"] == Overlays().fields(self.SIZES, "jpg")
        assert [] == Overlays().fields(self.SIZES, "seg.png")
        assert [] == Overlays("none").fields(self.SIZES, "jpg")
        assert ["json"] == Overlays("json.boxes").fields(self.SIZES, "jpg")
        assert ["json"] == Overlays("json.boxes:xyxy").fields(self.SIZES, "seg.png")

    def test_a_field_without_any_boxes_is_looked_into_64_times(self):
        overlays = Overlays()
        for _ in range(64):
            assert "json" in overlays.fields(self.SIZES, "jpg")
            overlays.over({"json": b"{}"}, "jpg", 4, 4)

        assert "json" not in overlays.fields(self.SIZES, "jpg")

    def test_one_box_is_enough_for_64_more(self):
        overlays = Overlays()
        for blob in [b"{}"] * 63 + [json.dumps({"boxes": [[0, 0, 2, 2]]}).encode()] + [b"{}"] * 64:
            overlays.over({"json": blob}, "jpg", 4, 4)

        assert "json" in overlays.fields(self.SIZES, "jpg")

    def test_a_form_that_is_none_is_refused(self):
        with pytest.raises(UsageError, match="Boxes have no form 'abc'"):
            Overlays("json.boxes:abc")


class TestMasks:
    def test_numbers_have_their_colours_and_a_legend_and_nothing_is_clear(self):
        for value in (encoded(halves(0, 3)), halves(0, 3), halves(0, 3)[..., None], halves(0, 3, np.int64)):
            mask = mask_of(value, json=b'{"names": {"0": "sky", "3": "sea"}}')

            assert mask is not None
            assert ("seg.png", ((3, "sea", tones.id_colour(3)),)) == (mask.ext, mask.legend)
            assert (20, 40, 4) == pixels(mask).shape
            assert [0, 255] == pixels(mask)[0, [0, 39], 3].tolist()
            assert tones.id_colours()[3].tolist() == pixels(mask)[0, 39, :3].tolist()

    def test_several_numbers_need_no_names(self):
        mask = mask_of(halves(7, 2))

        assert mask is not None
        assert ((2, "2", tones.id_colour(2)), (7, "7", tones.id_colour(7))) == mask.legend
        assert [255, 255] == pixels(mask)[0, [0, 39], 3].tolist()

    @pytest.mark.parametrize(
        ("names", "name"),
        [
            ({"classes": ["nothing", "sea"]}, "sea"),
            ({"names": {"1": "sea", "x": "no number"}, "labels": ["nothing", "water"]}, "water"),
            ({"id2label": {"2": "sea"}}, "1"),
            ({"names": [1, 2]}, None),
            ({"other": ["a", "b"]}, None),
            (["nothing", "sea"], None),
        ],
    )
    def test_names_are_those_of_a_json_beside_it(self, names: Any, name: str | None):
        for beside in ({"json": json.dumps(names).encode()}, {"json": names}):
            mask = mask_of(halves(0, 1), **{"txt": b"{", **beside})

            assert mask is not None
            assert (((1, name, tones.id_colour(1)),) if name else ()) == mask.legend

    def test_a_json_that_is_broken_names_nothing(self):
        assert mask_of(halves(0, 1), json=b"{").legend == ()  # type: ignore[union-attr]

    def test_the_first_json_that_has_names_names_them(self):
        fields = {
            "txt": b"a",
            "bad.json": b"{",
            "list.json": b"[1]",
            "a.json": b'{"names": ["sky", "sea"]}',
            "b.json": b'{"names": ["x", "y"]}',
        }
        mask = mask_of(halves(0, 1), **fields)

        assert mask is not None
        assert ((1, "sea", tones.id_colour(1)),) == mask.legend

    @pytest.mark.parametrize("value", [halves(0, 1) == 1, halves(0, 9), encoded(halves(0, 255))])
    def test_yes_or_no_has_one_colour(self, value: Any):
        mask = mask_of(value)

        assert mask is not None
        assert () == mask.legend
        assert [[*tones.id_colours()[1], 0], [*tones.id_colours()[1], 255]] == pixels(mask)[0, [0, 39]].tolist()

    def test_numbers_that_are_no_classes_are_as_strong_as_they_are_large(self):
        ramp = np.arange(800, dtype=np.int32).reshape(20, 40)

        assert (ramp.astype(np.float32) / 799 * 255).astype(np.uint8).tolist() == pixels(mask_of(ramp))[..., 3].tolist()

    def test_colours_stay_and_black_is_clear(self):
        colours = np.zeros((20, 40, 3), np.uint8)
        colours[:, 20:] = (9, 0, 200)
        for value in (encoded(colours), colours):
            assert [[0, 0, 0, 0], [9, 0, 200, 255]] == pixels(mask_of(value))[0, [0, 39]].tolist()

    def test_a_palette_of_few_is_numbers_and_one_of_many_is_colours(self):
        for number, legend in ((63, ((63, "63", tones.id_colour(63)),)), (64, ())):
            picture = Image.fromarray(halves(0, number), "L").convert("P")
            picture.putdata(halves(0, number).reshape(-1).tolist())
            out = io.BytesIO()
            picture.save(out, "PNG")
            mask = mask_of(out.getvalue(), json=b'{"names": {"1": "a"}}')

            assert mask is not None
            assert legend == mask.legend

    def test_it_is_made_no_larger_than_is_asked_for_and_its_numbers_stay(self):
        for side, shape in ((0, (20, 40)), (40, (20, 40)), (10, (5, 10)), (1, (1, 1))):
            assert shape == pixels(mask_of(halves(2, 5), side=side)).shape[:2]

    def test_its_longer_side_is_what_is_asked_for(self):
        assert [(20, 10), (30, 15), (40, 20)] == [pixels(mask_of(halves(0, 1), side=side)).shape[1::-1] for side in (20, 30, 40)]

    def test_what_is_no_picture_and_the_picture_itself_are_no_masks(self):
        assert mask_of(b"no picture") is None
        assert () == Overlays().over({"png": png()}, "png", 12, 8).masks


class TestShapes:
    def test_the_first_field_with_any_is_taken(self):
        boxes = [json.dumps({"boxes": [[1, 1, 3, 3 + at]], "labels": ["a"]}).encode() for at in range(2)]
        over = Overlays().over({"txt": b"words", "a.json": boxes[0], "b.json": boxes[1]}, "jpg", 40, 20)

        assert ([(1, 1, 2, 2)], ("a.json",)) == ([shape.numbers for shape in over.shapes], over.fields)
        assert (40, 20) == (over.width, over.height)
        assert over
        assert not Overlays().over({}, "jpg", 40, 20)

    def test_where_they_are_said_to_be(self):
        tree = {"x": {"there": [[5, 6, 25, 26]]}, "text": json.dumps({"boxes": [[1, 1, 3, 3]]})}
        blob = json.dumps(tree).encode()

        assert [(5, 6, 20, 20)] == [s.numbers for s in Overlays("json.x.there:xyxy").over({"json": blob}, "jpg", 40, 40).shapes]
        assert [(5, 6, 25, 26)] == [s.numbers for s in Overlays("json.x.there:xywh").over({"json": blob}, "jpg", 40, 40).shapes]
        assert [(1, 1, 2, 2)] == [s.numbers for s in Overlays("json.text").over({"json": blob}, "jpg", 40, 40).shapes]
        assert [(8, 5, 16, 10)] == [s.numbers for s in Overlays("b.txt").over({"b.txt": b"0 .4 .5 .4 .5"}, "jpg", 40, 20).shapes]
        assert () == Overlays("json.nothing").over({"json": blob}, "jpg", 40, 40).shapes

    def test_masks_of_run_lengths_are_thinned_to_the_side_of_a_tile(self):
        whole = np.zeros((64, 128), np.uint8)
        whole[:, 64:] = 1
        item = {"bbox": [64, 0, 64, 64], "segmentation": runs.encode(whole, {"size": [], "counts": ""})}
        blob = json.dumps([item]).encode()

        for side, size in ((0, [64, 128]), (128, [64, 128]), (32, [16, 32])):
            (mask,) = [shape for shape in Overlays().over({"json": blob}, "jpg", 128, 64, side).shapes if shape.kind == "mask"]
            assert size == list(mask.numbers[:2])

    def test_messages_name_buffers_behind_those_that_are_there(self):
        shapes = (Shape("box", (1.0, 2.0, 3.0, 4.0), "n" * 99, 0.5),)
        over = Overlay(9, 8, shapes, (Mask("m.png", b"x", ((1, "a", "#000000"),)), Mask("n.png", b"y")))
        buffers: list[Any] = [b"first"]

        assert {
            "width": 9,
            "height": 8,
            "shapes": [["box", [1.0, 2.0, 3.0, 4.0], "n" * 80, 0.5]],
            "masks": [{"ext": "m.png", "buffer": 1, "legend": [[1, "a", "#000000"]]}, {"ext": "n.png", "buffer": 2, "legend": []}],
        } == over.message(buffers)
        assert [b"first", b"x", b"y"] == buffers


class TestColours:
    def test_names_are_dealt_out_in_turn_and_numbers_have_those_of_masks(self):
        overlays = Overlays()

        assert [tones.id_colour(1), tones.id_colour(2), tones.id_colour(1), tones.id_colour(8)] == [
            overlays.colour(name) for name in ("cat", "dog", "cat", "7")
        ]
        assert tones.id_colour(4) == overlays.colour("²")  # no number of a class
        for at in range(500):
            overlays.colour(f"c{at}")
        assert 400 == len(overlays.colours)
        assert "#ffb000" == overlays.colour("one more")


class TestPainted:
    """Drawn into a tile half as large as the picture: JPEG keeps colours to some levels in areas."""

    BASE = png((90, 90, 90), (80, 60))

    def drawn(self, shapes: tuple[Shape, ...] = (), masks: tuple[Mask, ...] = ()) -> np.ndarray:
        found = paint(self.BASE, Overlay(160, 120, shapes, masks), Overlays())
        return np.asarray(Image.open(io.BytesIO(found)).convert("RGB")).astype(int)

    def changed(self, shapes: tuple[Shape, ...] = (), masks: tuple[Mask, ...] = ()) -> tuple[int, int, int, int]:
        """The box of all that is another colour than before, in pixels of the tile."""
        own = np.abs(self.drawn(shapes, masks) - 90).max(axis=2) > 50
        rows, columns = np.flatnonzero(own.any(axis=1)), np.flatnonzero(own.any(axis=0))
        return int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])

    def near(self, box: tuple[int, int, int, int], found: tuple[int, int, int, int]) -> None:
        assert max(abs(one - other) for one, other in zip(box, found, strict=True)) <= 2, found

    def test_nothing_over_it_leaves_it_as_it_is(self):
        assert self.BASE is paint(self.BASE, None, Overlays())
        assert self.BASE is paint(self.BASE, Overlay(160, 120), Overlays())

    def test_shapes_lie_where_they_are(self):
        self.near((10, 15, 50, 45), self.changed((Shape("box", (20.0, 30.0, 80.0, 60.0), "a"),)))
        inside = self.drawn((Shape("box", (20.0, 30.0, 80.0, 60.0), "a"),))[25:35, 20:40]
        assert np.abs(inside - 90).max() < 20
        box = np.abs(self.drawn((Shape("box", (20.0, 30.0, 80.0, 60.0), "a"),))[30] - 90).max(axis=1) > 100
        assert [10, 11, 49, 50] == np.flatnonzero(box).tolist()  # its sides are two pixels wide
        self.near((10, 15, 50, 45), self.changed((Shape("polygon", (20.0, 30.0, 100.0, 30.0, 100.0, 90.0, 20.0, 90.0), "a"),)))
        self.near((28, 18, 52, 42), self.changed((Shape("points", (60.0, 40.0, 2.0, 100.0, 80.0, 2.0), "a"),)))

    def test_masks_let_the_picture_through(self):
        own = np.zeros((60, 80, 4), np.uint8)
        own[20:40, 40:] = (255, 0, 0, 255)
        found = self.drawn(masks=(Mask("m.png", encoded(own)),))

        self.near((40, 20, 79, 39), self.changed(masks=(Mask("m.png", encoded(own)),)))
        assert np.abs(found[30, 60] - (172, 45, 45)).max() < 12  # half of each
        counts = runs.encode(own[..., 3] // 255, {"size": [], "counts": []})["counts"]
        self.near((40, 20, 79, 39), self.changed((Shape("mask", (60, 80, *counts), ""),)))
