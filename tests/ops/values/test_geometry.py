"""Geometries: a picture, a mask and points in it go the same way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.looks.carried import Carrier
from tarviz.ops.values.geometry import Cropped, Geometry, Mirrored, Resized, Turned

HEIGHT, WIDTH = 60, 90
SIZE = (HEIGHT, WIDTH)


@st.composite
def geometries(draw) -> Geometry:
    kind = draw(st.sampled_from(["resize", "crop", "flip", "turn"]))
    if kind == "resize":
        return Resized(SIZE, (draw(st.integers(20, 120)), draw(st.integers(20, 120))))
    if kind == "crop":
        top, left = draw(st.integers(0, 40)), draw(st.integers(0, 60))
        return Cropped(SIZE, top, left, (draw(st.integers(10, HEIGHT - top)), draw(st.integers(10, WIDTH - left))))
    if kind == "flip":
        return Mirrored(SIZE, draw(st.sampled_from(["horizontal", "vertical"])))
    return Turned(SIZE, draw(st.sampled_from([0, 90, 180, 270, -90]) | st.floats(-180, 180)))


@st.composite
def boxes(draw) -> tuple[int, int, int, int]:
    x, y = draw(st.integers(0, WIDTH - 12)), draw(st.integers(0, HEIGHT - 12))
    return x, y, draw(st.integers(8, WIDTH - x)), draw(st.integers(8, HEIGHT - y))


def drawn(box) -> np.ndarray:
    x, y, w, h = box
    made = np.zeros((*SIZE, 1), np.uint8)
    made[y : y + h, x : x + w] = 255
    return made


def around(picture) -> tuple[int, int, int, int] | None:
    """Left, top, right and bottom of what is bright."""
    rows, columns = np.nonzero(picture[:, :, 0] > 127)
    return (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1) if len(rows) else None


class TestAgreement:
    @given(geometries(), boxes())
    def test_a_box_lies_where_the_picture_of_it_lies(self, move, box):
        found = around(move.picture(drawn(box)))
        moved = Carrier(move).tree({"boxes": [[box[0], box[1], box[0] + box[2], box[1] + box[3]]], "labels": ["a"]})["boxes"]

        if found is None:  # at most a rim of it is left
            assert not moved or min(moved[0][2] - moved[0][0], moved[0][3] - moved[0][1]) <= 2
        elif isinstance(move, Turned) and move.angle % 90:  # a corner is bright in its pixel only where it fills half of it
            assert moved
            assert all(-0.75 <= (at - bright) * side <= 2.2 for at, bright, side in zip(moved[0], found, (-1, -1, 1, 1), strict=True))
        else:
            np.testing.assert_allclose(found, moved[0], atol=1.001)

    @given(geometries(), boxes())
    def test_a_mask_lies_where_the_picture_of_it_lies(self, move, box):
        picture = move.picture(drawn(box))[:, :, 0]
        mask = move.mask(drawn(box)[:, :, 0].astype(np.int32))

        assert picture.shape == mask.shape
        assert {0, 255} >= set(np.unique(mask).tolist())
        assert not ((mask == 255) & (picture == 0)).any()
        assert not ((mask == 0) & (picture == 255)).any()

    @given(geometries(), st.integers(0, WIDTH - 1), st.integers(0, HEIGHT - 1))
    def test_the_middle_of_a_pixel_goes_where_its_value_goes(self, move, x, y):
        marks = np.arange(1, HEIGHT * WIDTH + 1).reshape(SIZE)
        (place,) = move.points(np.array([[x + 0.5, y + 0.5]]))
        height, width = move.after
        if not (1 < place[0] < width - 1 and 1 < place[1] < height - 1):
            return
        rows, columns = np.nonzero(move.mask(marks) == marks[y, x])

        if len(rows):  # a smaller picture skips pixels
            assert abs(columns + 0.5 - place[0]).min() <= max(1, width / WIDTH)
            assert abs(rows + 0.5 - place[1]).min() <= max(1, height / HEIGHT)


class TestThereAndBack:
    @given(st.sampled_from(["horizontal", "vertical"]), boxes())
    def test_two_flips_change_nothing(self, direction, box):
        move = Mirrored(SIZE, direction)
        carrier = Carrier(move, "xywh")
        before = [{"bbox": [float(n) for n in box], "segmentation": [[1.5, 2.5, 30.25, 2.5, 30.25, 50.0]], "keypoints": [3.0, 4.5, 2]}]

        assert before == carrier.tree(carrier.tree(before))
        np.testing.assert_array_equal(drawn(box), move.picture(move.picture(drawn(box))))

    @given(st.floats(-180, 180), st.lists(st.tuples(st.floats(0, WIDTH), st.floats(0, HEIGHT)), min_size=1))
    def test_a_turn_back_brings_points_back(self, angle, places):
        there = Turned(SIZE, angle).points(np.array(places))

        np.testing.assert_allclose(places, Turned(SIZE, -angle).points(there), atol=1e-6)

    @given(st.integers(10, 300), st.integers(10, 300), boxes())
    def test_a_resize_back_brings_boxes_back(self, height, width, box):
        there = Carrier(Resized(SIZE, (height, width)), "xywh").tree([{"bbox": list(box)}])
        (back,) = Carrier(Resized((height, width), SIZE), "xywh").tree(there)

        np.testing.assert_allclose(box, back["bbox"], atol=1e-3)

    def test_nothing_moves_that_is_still(self):
        places = np.array([[3.0, 4.0]])

        np.testing.assert_array_equal(places, Turned(SIZE, 0).points(places))


class TestMask:
    @pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.uint16, np.int32, np.int64, np.float32])
    def test_values_stay_exact_in_every_dtype(self, dtype):
        mask = np.arange(24).reshape(4, 6).astype(dtype)
        made = Resized((4, 6), (8, 3)).mask(mask)

        assert dtype == made.dtype
        np.testing.assert_array_equal(mask[[0, 0, 1, 1, 2, 2, 3, 3]][:, [1, 3, 5]], made)

    def test_a_turn_leaves_nothing_where_nothing_was(self):
        assert 0 == Turned((9, 9), 45).mask(np.ones((9, 9), np.int32))[0, 0]

    @pytest.mark.parametrize(("degrees", "quarters"), [(0, 0), (90, 3), (180, 2), (270, 1), (-90, 1), (450, 3)])
    def test_a_turn_by_quarters_is_exact(self, degrees: int, quarters: int):
        mask = 1 + np.arange(25).reshape(5, 5)
        move = Turned((5, 5), degrees)

        np.testing.assert_array_equal(np.rot90(mask, quarters), move.mask(mask))
        assert not (move.points(np.array([[1.0, 2.0]])) % 1).any()

    def test_channels_come_along(self):
        assert (2, 2, 3) == Cropped((4, 4), 1, 1, (2, 2)).mask(np.zeros((4, 4, 3))).shape


def test_a_part_of_a_picture_holds_memory_of_its_own():
    """The whole picture is not kept for a small part of it, and what is written into the part does not reach it."""
    image = np.arange(HEIGHT * WIDTH * 3, dtype=np.uint8).reshape(HEIGHT, WIDTH, 3)

    part = Cropped(SIZE, 10, 20, (30, 40)).picture(image)

    assert not np.shares_memory(image, part)
