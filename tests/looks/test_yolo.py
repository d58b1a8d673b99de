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


@pytest.mark.parametrize(
    "text",
    [
        "0 0.5 0.5 0.2 1.5",
        "0 0.5 0.5 0.2 1.6",  # three of four are like shares
        "0 0.5 0.5 -1.5 -1.5",
        "0 0.5 0.5 0.2 0.4 99",  # a score is none
        "0 0.5 0.5 0.2 0.4 0.1 0.1 2 0.3 0.3 2",
        "99999 0.5 0.5 0.2 0.4",
    ],
)
def test_a_file_is_one_where_most_numbers_are_like_shares(text):
    assert 1 == len(yolo.lines(text)) == len(yolo.lines(text, mostly=0))


@pytest.mark.parametrize("text", ["0 0.5 0.5 1.6 1.6", "0 0.5 0.5 1.51 1.51", "0 0.1 0.1 0.5 0.1 9 9 9 9", "0 0.5 0.5 0.2 0.4 9 9 0 9 9 0"])
def test_one_whose_numbers_are_not_is_read_where_that_is_asked_for(text):
    assert (0, 1) == (len(yolo.lines(text)), len(yolo.lines(text, mostly=0)))


@pytest.mark.parametrize("text", ["100000 0.5 0.5 0.2 0.4", "0 0.5 0.5 0.2"])
def test_what_is_no_class_or_too_short_is_none(text):
    assert [] == yolo.lines(text, mostly=0)


@pytest.mark.parametrize(("place", "outside"), [("1.01", 0), ("1.011", 1), ("-0.01", 0), ("-0.011", 1)])
def test_a_little_beyond_the_edge_is_the_edge(place, outside):
    (box, outline) = yolo.lines(f"0 0.5 {place} 0.2 0.4 5\n1 0.1 0.1 {place} 0.1 0.5 0.5")

    assert [outside, outside] == [box.outside, outline.outside]
    assert [4, 6] == [len(box.shares), len(outline.shares)]
    (pose,) = yolo.lines("0 0.5 0.5 0.2 0.4 0.45 0.4 2 0.55 0.6 1 0 0 7")
    assert (10, 0) == (len(pose.shares), pose.outside)


def test_a_count_of_numbers_that_fits_no_form_is_said_to_be_none():
    kinds = {count: yolo.lines("0" + " 0.3" * count)[0].kind for count in range(4, 15)}

    assert {
        4: "box",
        5: "box",
        6: "outline",
        7: "pose",
        8: "outline",
        9: "",
        10: "outline",
        11: "",
        12: "outline",
        13: "pose",
        14: "outline",
    } == kinds
