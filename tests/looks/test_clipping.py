"""Polygons cut at a frame: what is left lies inside, is no larger, and is all of it where it was inside before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.looks.clipping import area, clip, hull

near = st.floats(-50, 150, allow_nan=False)
polygons = st.lists(st.tuples(near, near), min_size=3, max_size=9)


class TestClipped:
    @given(polygons)
    def test_what_is_left_lies_in_the_frame(self, corners):
        assert all(0 <= x <= 100 and 0 <= y <= 60 for x, y in clip(corners, 100, 60))

    @given(polygons)
    def test_a_box_round_it_is_no_larger(self, corners):
        left = clip(corners, 100, 60)
        if not left:
            return
        x0, y0, x1, y1 = hull(left, 100, 60)

        assert x0 >= min(x for x, _ in corners) - 1e-6 or x0 == 0
        assert area([(x0, y0), (x1, y0), (x1, y1), (x0, y1)]) <= 6000 + 1e-6

    @given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 60)), min_size=3, max_size=9))
    def test_what_was_inside_stays_as_it_is(self, corners):
        assert corners == clip(corners, 100, 60)

    @given(st.floats(-90, 90), st.floats(-90, 90), st.floats(1, 80), st.floats(1, 80))
    def test_of_a_box_the_common_part_is_left(self, x, y, w, h):
        left = clip([(x, y), (x + w, y), (x + w, y + h), (x, y + h)], 100, 60)
        across, down = min(x + w, 100) - max(x, 0), min(y + h, 60) - max(y, 0)

        assert max(across, 0) * max(down, 0) == pytest.approx(area(left), abs=1e-6)

    def test_nothing_is_left_of_what_lies_outside(self):
        assert [] == clip([(200, 1), (300, 1), (300, 9)], 100, 60)


def test_an_area_is_that_of_any_polygon_either_way_round():
    corners = [(0, 0), (4, 0), (4, 3), (1, 5)]

    assert 14.5 == area(corners) == area(corners[::-1])
    assert 0 == area(corners[:2]) == area([])


def test_a_diamond_around_the_frame_leaves_its_corners():
    left = clip([(2, -2), (6, 2), (2, 6), (-2, 2)], 4, 4)

    assert {(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0)} == set(left)
    assert 16 == area(left)


def test_a_hull_is_kept_in_the_frame():
    assert (0.0, 0.0, 3.0, 3.0) == hull([(-1, 1), (0, -1), (4, 9)], 3, 3)
    assert (1.0, 2.0, 2.0, 2.5) == hull([(1, 2), (2, 2.5)], 3, 3)
