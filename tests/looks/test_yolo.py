"""YOLO's lines: boxes, outlines and poses told apart by their numbers."""

from __future__ import annotations

import pytest

from tarviz.looks import yolo
from tarviz.looks.shapes import Shape, read

POSE = "0 0.5 0.5 0.2 0.4 0.45 0.4 2 0.55 0.6 1 0 0 0"


class TestKinds:
    @pytest.mark.parametrize(
        ("text", "kinds"),
        [
            ("1 0.5 0.5 0.2 0.4", ["box"]),
            ("1 0.5 0.5 0.2 0.4 0.9", ["box"]),
            ("1 0.1 0.1 0.5 0.1 0.5 0.5", ["outline"]),
            (POSE, ["pose"]),
            ("1 0.5 0.5 0.2 0.4 0.1 0.1 0 0.3 0.3 2", ["pose"]),  # even, and every third number says what is seen
            ("1 0.5 0.5 0.2 0.4 0.1 0.1 0.7 0.3 0.3 0.4", ["outline"]),
            (f"{POSE}\n1 0.5 0.5 0.2 0.4", ["pose", "box"]),
            ("1 0.1 0.1 0.5 0.1 0.5 0.5 0.7 0.7 0.9", [""]),
        ],
    )
    def test_a_line_is_told_by_its_numbers(self, text, kinds):
        assert kinds == [line.kind for line in yolo.lines(text)]

    @pytest.mark.parametrize(
        "text", ["", "3 120 44 31 0.1", "a 0.1 0.1 0.1 0.1", "1 5.1 3.5 1.4 0.2", "1 0.5 0.5 0.1 1e400", "0.5 0.5 0.5 0.1 0.1"]
    )
    def test_numbers_that_are_no_shares_are_none(self, text):
        assert [] == yolo.lines(text)


def test_a_pose_is_a_box_and_its_key_points():
    found = read(POSE.encode(), "txt", 100, 50)

    assert [
        Shape("box", (40.0, 15.0, 20.0, 20.0), "0"),
        Shape("points", (45.0, 20.0, 2.0, 55.0, 30.0, 1.0, 0.0, 0.0, 0.0), "0"),
    ] == found


@pytest.mark.parametrize("place", ["-1.6", "7", "1.02"])
def test_a_place_outside_of_the_picture_is_read_as_written_and_counted(place: str):
    (line, other) = yolo.lines(f"0 {place} 0.5 0.2 0.4\n0 1.005 0.5 0.2 0.4 99")

    assert (1, 0) == (line.outside, other.outside)
    assert float(place) == line.numbers[0]


def test_a_long_file_is_read_whole():
    assert 5000 == len(yolo.lines("0 0.5 0.5 0.2 0.4\n" * 5000))
