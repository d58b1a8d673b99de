"""Annotations that move with their picture: in their own form, cut at the frame, with their labels."""

from __future__ import annotations

import json
from typing import ClassVar

import numpy as np
import pytest

from tarviz.looks import runs, shapes
from tarviz.looks.carried import Carrier
from tarviz.model.errors import DataError
from tarviz.ops.values.geometry import Cropped, Mirrored, Resized, Turned

BEFORE = (100, 200)  # height, width
FORMS = {
    "coco": {"annotations": [{"bbox": [20, 10, 40, 30], "category": "a"}]},
    "corners": {"boxes": [[20, 10, 60, 40]], "labels": ["a"]},
    "side by side": {"objects": {"bbox": [[20, 10, 40, 30]], "category": ["a"]}},
    "shares": {"boxes": [[0.1, 0.1, 0.3, 0.4]], "labels": ["a"]},
    "names of corners": {"objects": [{"box": {"xmin": 20, "ymin": 10, "xmax": 60, "ymax": 40}, "label": "a"}]},
    "text": {"annotation": {"object": {"name": "a", "bndbox": {"xmin": "20", "ymin": "10", "xmax": "60", "ymax": "40"}}}},
    "middle": {"detections": [{"cx": 40, "cy": 25, "w": 40, "h": 30, "label": "a"}]},
    "middle in a box": {"objects": [{"box": {"cx": 40, "cy": 25, "w": 40, "h": 30}, "label": "a"}]},
    "LabelMe": {"shapes": [{"label": "a", "shape_type": "rectangle", "points": [[20, 10], [60, 40]]}]},
    "rows": [[20, 10, 60, 40, 0.5, 3]],
}  # fmt: skip


def boxes(value, size):
    return [shape.numbers for shape in shapes.find(value, size[1], size[0]) if shape.kind == "box"]


class TestForms:
    @pytest.mark.parametrize("name", FORMS)
    @pytest.mark.parametrize(
        ("move", "expected"),
        [
            (Resized(BEFORE, (50, 400)), (40.0, 5.0, 80.0, 15.0)),
            (Mirrored(BEFORE, "horizontal"), (140.0, 10.0, 40.0, 30.0)),
            (Mirrored(BEFORE, "vertical"), (20.0, 60.0, 40.0, 30.0)),
            (Cropped(BEFORE, 20, 30, (40, 40)), (0.0, 0.0, 30.0, 20.0)),
            (Turned(BEFORE, 180), (140.0, 60.0, 40.0, 30.0)),
        ],
    )
    def test_a_box_is_moved_in_the_form_it_is_written_in(self, name, move, expected):
        moved = Carrier(move).tree(FORMS[name])

        assert [expected] == boxes(moved, move.after)
        assert _kinds(FORMS[name]) == _kinds(moved)

    def test_what_was_given_stays_as_it_is(self):
        before = json.dumps(FORMS["coco"])
        Carrier(Mirrored(BEFORE, "horizontal")).tree(FORMS["coco"])

        assert before == json.dumps(FORMS["coco"])

    def test_yolo_stays_in_shares_with_class_and_score(self):
        text = Carrier(Mirrored(BEFORE, "horizontal")).payload(b"2 0.25 0.5 0.1 0.4 0.9\n1 0 0 0.5 0 0.5 0.5\n", "txt")

        assert b"2 0.75 0.5 0.1 0.4 0.9\n1 1.0 0.0 0.5 0.0 0.5 0.5\n" == text

    def test_a_yolo_box_of_all_that_is_left_stays_a_share(self):
        text = Carrier(Cropped(BEFORE, 40, 80, (10, 10))).payload(b"2 0.5 0.5 1 1\n", "txt")

        assert b"2 0.5 0.5 1.0 1.0\n" == text

    def test_voc_is_written_for_the_new_picture(self):
        xml = b"<annotation><size><width>200</width><height>100</height></size><object><name>a</name><bndbox><xmin>20</xmin><ymin>10</ymin>"
        xml += b"<xmax>60</xmax><ymax>40</ymax></bndbox></object></annotation>"
        moved = Carrier(Resized(BEFORE, (50, 100))).payload(xml, "xml")

        assert [shapes.Shape("box", (10.0, 5.0, 20.0, 15.0), "a")] == shapes.read(moved, "xml", 100, 50)
        assert b"<width>100</width><height>50</height>" in moved

    @pytest.mark.parametrize("labels", [["a", "b", "c"], ["a", "b"]])
    def test_a_box_that_leaves_takes_its_own_label_along(self, labels):
        said = {"boxes": [[300, 10, 320, 20], [1, 2, 4, 6], [5, 5, 9, 9]], "labels": labels}
        moved = Carrier(Mirrored(BEFORE, "horizontal")).tree(said)

        assert (2, labels[1:]) == (len(moved["boxes"]), moved["labels"])

    def test_the_parts_of_an_object_of_voc_are_moved_with_it(self):
        box = "<bndbox><xmin>{}</xmin><ymin>10</ymin><xmax>{}</xmax><ymax>40</ymax></bndbox>"
        parts = "".join(f"<part><name>{name}</name>{box}</part>" for name in "xy")
        xml = f"<object><name>a</name>{parts}{box}</object>"
        moved = Carrier(Mirrored(BEFORE, "horizontal")).payload(xml.format(20, 60, 30, 50, 25, 70).encode(), "xml")

        assert xml.format(140, 180, 150, 170, 130, 175) == moved.decode()

    def test_the_size_that_a_json_says_is_the_new_one(self):
        moved = Carrier(Resized(BEFORE, (50, 60))).tree({"width": 200, "height": 100, **FORMS["coco"]})

        assert (60, 50) == (moved["width"], moved["height"])

    def test_the_form_can_be_said(self):
        moved = Carrier(Mirrored(BEFORE, "horizontal"), "xyxy").tree([{"bbox": [20, 10, 60, 40]}])

        assert [{"bbox": [140.0, 10.0, 180.0, 40.0]}] == moved

    @pytest.mark.parametrize(
        ("form", "row", "expected"),
        [
            ("xywh", [20, 10, 40, 30, 7], [140, 10, 40, 30, 7]),
            ("xyxy", [20, 10, 60, 40, 7], [140, 10, 180, 40, 7]),
            ("cxcywh", [0.2, 0.25, 0.2, 0.3, 0.7], [0.8, 0.25, 0.2, 0.3, 0.7]),
            ("points", [20, 10, 7], [180, 10, 7]),
        ],
    )
    def test_rows_of_an_array_keep_what_stands_behind(self, form, row, expected):
        made = Carrier(Mirrored(BEFORE, "horizontal"), form).rows(np.array([row], np.float32))

        np.testing.assert_allclose([expected], made, rtol=1e-6)
        assert np.float32 == made.dtype

    def test_numbers_are_floats_whatever_is_done(self):
        moved = Carrier(Cropped(BEFORE, 0, 0, BEFORE)).tree(FORMS["coco"])

        assert all(isinstance(n, float) for n in moved["annotations"][0]["bbox"])


class TestVanished:
    OUT: ClassVar = {
        "boxes": [[0, 0, 10, 10], [100, 50, 140, 90], [0, 0, 120, 60]],
        "labels": ["out", "in", "part"],
        "scores": [1, 2, 3],
        "size": [1, 2, 3],
    }
    MOVE = Cropped(BEFORE, 40, 90, (60, 60))

    def test_goes_with_its_label_and_score(self):
        moved = Carrier(self.MOVE).tree(self.OUT)

        assert (["in", "part"], [2, 3]) == (moved["labels"], moved["scores"])
        assert [1, 2, 3] == moved["size"]  # as long by chance, and no list of labels
        assert [(10.0, 10.0, 40.0, 40.0), (0.0, 0.0, 30.0, 20.0)] == boxes(moved, self.MOVE.after)

    def test_visible_asks_for_a_share_of_the_area(self):
        assert ["in"] == Carrier(self.MOVE, visible=0.3).tree(self.OUT)["labels"]
        assert ["in", "part"] == Carrier(self.MOVE, visible=600 / 7200).tree(self.OUT)["labels"]

    def test_none_keeps_all_without_size(self):
        moved = Carrier(self.MOVE, "xyxy", visible=None).tree(self.OUT)

        assert self.OUT["labels"] == moved["labels"]
        assert moved["boxes"][0][0] == moved["boxes"][0][2]

    def test_an_annotation_goes_as_a_whole(self):
        items = [{"bbox": [0, 0, 10, 10], "category_id": 1}, {"bbox": [100, 50, 40, 40], "category_id": 2}]

        assert [2] == [item["category_id"] for item in Carrier(self.MOVE).tree({"annotations": items})["annotations"]]

    def test_lines_of_yolo_go(self):
        assert b"" == Carrier(self.MOVE).payload(b"1 0.01 0.01 0.01 0.01\n", "txt")

    def test_rows_of_an_array_go(self):
        made = Carrier(self.MOVE, "xyxy").rows(np.array([[0, 0, 10, 10, 1], [100, 50, 140, 90, 2]]))

        assert [[10, 10, 50, 50, 2]] == made.tolist()


class TestOutlinesAndPoints:
    def test_an_outline_is_cut_and_its_area_said(self):
        item = {"bbox": [20, 10, 40, 40], "segmentation": [[20, 10, 60, 10, 60, 50, 20, 50]], "area": 1600}
        (moved,) = Carrier(Cropped(BEFORE, 0, 40, (100, 100))).tree([item])

        assert 800 == moved["area"]
        assert {0.0, 20.0} == set(moved["segmentation"][0][::2])

    def test_a_turn_keeps_the_area(self):
        item = {"bbox": [90, 40, 20, 20], "segmentation": [[90, 40, 110, 40, 110, 60, 90, 60]], "area": 400}
        (moved,) = Carrier(Turned(BEFORE, 30)).tree([item])

        assert moved["area"] == pytest.approx(400)

    @pytest.mark.parametrize("outline", [[0, 0, 20, 0, 20, 20], [[0, 0], [20, 0], [20, 20]]])
    def test_an_empty_outline_is_left_out(self, outline):
        moved = Carrier(Cropped(BEFORE, 0, 0, (100, 200))).tree([{"segmentation": [[], outline], "label": "a"}])

        assert [len(outline)] == [len(each) for each in moved[0]["segmentation"]]

    def test_pairs_stay_pairs(self):
        (moved,) = Carrier(Mirrored(BEFORE, "vertical")).tree([{"polygon": [[0, 0], [10, 0], [10, 10]], "label": "a"}])

        assert [[0.0, 100.0], [10.0, 100.0], [10.0, 90.0]] == moved["polygon"]

    def test_key_points_outside_are_not_labelled(self):
        item = {"bbox": [0, 0, 200, 100], "keypoints": [10, 10, 2, 150, 60, 2, 0, 0, 0], "num_keypoints": 2}
        (moved,) = Carrier(Cropped(BEFORE, 50, 100, (50, 100))).tree([item])

        assert ([0, 0, 0, 50, 10, 2, 0, 0, 0], 1) == (moved["keypoints"], moved["num_keypoints"])


class TestMasks:
    MASK = np.zeros(BEFORE, np.uint8)
    MASK[10:40, 20:60] = 1
    FORMS: ClassVar = [[], "", b""]
    MOVES: ClassVar = [
        Resized(BEFORE, (50, 400)), Mirrored(BEFORE, "vertical"), Cropped(BEFORE, 20, 30, (40, 40)), Turned(BEFORE, 30)
    ]  # fmt: skip

    @pytest.mark.parametrize("move", MOVES)
    @pytest.mark.parametrize("form", FORMS)
    def test_a_mask_moves_as_a_decoded_one_and_stays_in_its_form(self, form, move):
        item = {"bbox": [20, 10, 40, 30], "segmentation": runs.encode(self.MASK, {"size": [], "counts": form}), "area": 1200}
        (moved,) = Carrier(move, mask=move.mask).tree([item])
        expected = move.mask(self.MASK)

        np.testing.assert_array_equal(expected, runs.decode(moved["segmentation"]))
        assert (type(form), list(move.after)) == (type(moved["segmentation"]["counts"]), moved["segmentation"]["size"])
        assert int(expected.sum()) == pytest.approx(moved["area"])

    def test_one_that_is_cut_away_goes(self):
        away = Cropped(BEFORE, 60, 100, (40, 40))
        alone = {"segmentation": runs.encode(self.MASK, {"size": [], "counts": ""}), "category_id": 1}

        assert {"annotations": []} == Carrier(away, mask=away.mask).tree({"annotations": [alone]})


class TestPoses:
    LINE = b"0 0.5 0.5 0.2 0.4 0.45 0.4 2 0.55 0.6 1 0 0 0\n"

    def test_key_points_move_with_their_box(self):
        text = Carrier(Mirrored(BEFORE, "horizontal")).payload(self.LINE, "txt")

        assert b"0 0.5 0.5 0.2 0.4 0.55 0.4 2 0.45 0.6 1 0.0 0.0 0\n" == text

    def test_one_outside_is_not_labelled(self):
        text = Carrier(Cropped(BEFORE, 0, 0, (50, 200))).payload(self.LINE, "txt")

        assert b"0 0.5 0.8 0.2 0.4 0.45 0.8 2 0.0 0.0 0 0.0 0.0 0\n" == text


class TestRefused:
    @pytest.mark.parametrize(
        ("blob", "ext", "words"),
        [
            (b"a dog on a beach", "txt", "no lines of YOLO"),
            (b"{", "json", "no JSON"),
            (b'[{"rotated_box": [1, 2, 3, 4, 30]}]', "json", "'rotated_box' looks like annotations"),
            (b'{"boxes": [[1, 2, 4, 6], null], "labels": ["a", "b"]}', "json", "four numbers"),
            (b'[{"bbox": [150, 60, 190, 90]}]', "json", "json:xyxy"),
            (b'[{"bbox": [1, 2, 3, 4], "segmentation": {"counts": [1, 2], "size": [1, 3]}}]', "json", "100 x 200 and 1 x 3"),
            (b'[{"bbox": [1, 2, 3, 4], "segmentation": {"counts": [1, 2], "size": [100, 200]}}]', "json", "do not fill it"),
            (b'[{"bbox": [1, 2, 3, 4], "segmentation": {"counts": "6l0", "size": 9}}]', "json", "cannot be read"),
            (b'{"mask": {"counts": "6l0", "size": [100, 200]}}', "json", "'counts' looks like annotations"),
            (b"1 0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1\n", "txt", "neither a box nor an outline"),
        ],
    )
    def test_what_would_stay_behind_is_an_error(self, blob, ext, words):
        with pytest.raises(DataError) as caught:
            Carrier(move := Mirrored(BEFORE, "horizontal"), mask=move.mask).payload(blob, ext)

        assert words in f"{caught.value} {caught.value.hint}"

    @pytest.mark.parametrize("blob", [b'{"annotations": []}', b'{"caption": "a box"}', b"[]"])
    def test_a_record_without_boxes_is_none(self, blob):
        assert blob == Carrier(Mirrored(BEFORE, "horizontal")).payload(blob, "json")

    def test_an_empty_text_is_none(self):
        assert b"" == Carrier(Mirrored(BEFORE, "horizontal")).payload(b"", "txt")


def _kinds(value):
    """The names of a JSON value, without its numbers."""
    if isinstance(value, dict):
        return {name: _kinds(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_kinds(inner) for inner in value]
    return "number" if isinstance(value, int | float) else "text"


def test_points_lines_and_circles_of_labelme_are_moved():
    drawn = {"point": [[20, 10]], "line": [[20, 10], [60, 40]], "circle": [[50, 50], [50, 70]], "linestrip": [[500, 500], [501, 501]]}
    value = {"shapes": [{"label": kind, "shape_type": kind, "points": points} for kind, points in drawn.items()]}
    moved = Carrier(Mirrored(BEFORE, "horizontal"), visible=0.1).tree(value)
    point, line, circle = moved["shapes"]

    assert [[180, 10]] == point["points"]
    assert [[180, 10], [140, 40]] == line["points"]
    assert "polygon" == circle["shape_type"]
    assert (130, 170) == (min(x for x, _ in circle["points"]), max(x for x, _ in circle["points"]))


WHOLE = {
    "image": {"width": 200, "height": 100, "x": 1},
    "size": {"width": 200, "height": 100},
    "imageWidth": 200,
    "imageHeight": 99,
    "annotations": [
        {"bbox": [20, 10, 40, 30], "category_id": 1, "area": 1200, "score": 0.5},
        {"bbox": [190, 90, 20, 20], "category_id": 2, "area": 400},
        {"bbox": [0, 0, 10, 10], "segmentation": [[0, 0, 10, 0, 10, 10, 0, 10], [0, 0, 4, 0, 4, 4]], "area": 108, "category_id": 3},
        {"keypoints": [10, 10, 2, 60, 40, 1, 0, 0, 0], "num_keypoints": 2, "category_id": 4},
        {"keypoints": [10, 10, 2, 0, 0, 0], "num_keypoints": 1, "category_id": 5},
        {"label": "e", "shape_type": "polygon", "points": [[100, 50], [140, 50], [140, 90]]},
    ],
}


def test_a_whole_json_is_carried_along():
    """Half as large, then 20 to the left and 10 up: a picture of 60 x 30 is left."""

    class Moved:
        before, after = (100, 200), (30, 60)

        def points(self, places):
            return places / 2 - (20, 10)

    assert {
        "image": {"width": 200, "height": 100, "x": 1},
        "size": {"width": 60, "height": 30},
        "imageWidth": 200,
        "imageHeight": 99,
        "annotations": [
            {"bbox": [0.0, 0.0, 10.0, 10.0], "category_id": 1, "area": 100.0, "score": 0.5},
            {"keypoints": [0.0, 0.0, 0, 10.0, 10.0, 1, 0.0, 0.0, 0], "num_keypoints": 1, "category_id": 4},
            {"label": "e", "shape_type": "polygon", "points": [[45.0, 30.0], [30.0, 15.0], [50.0, 15.0], [50.0, 30.0]]},
        ],
    } == Carrier(Moved()).tree(WHOLE)


@pytest.mark.parametrize(
    ("form", "row", "expected"),
    [("xywh", [0.1, 0.1, 0.2, 0.3], [0.7, 0.1, 0.2, 0.3]), ("xyxy", [0.1, 0.1, 0.3, 0.4], [0.7, 0.1, 0.9, 0.4])],
)
def test_shares_stay_shares(form, row, expected):
    np.testing.assert_allclose([expected], Carrier(Mirrored(BEFORE, "horizontal"), form).rows(np.array([row])))
    assert [[*expected, 5]] == Carrier(Mirrored(BEFORE, "horizontal"), form).tree({"boxes": [[*row, 5]]})["boxes"]


@pytest.mark.parametrize(("form", "shape"), [("xywh", (2, 3)), ("xywh", (4,)), ("points", (2, 1)), ("points", (2, 2, 2))])
def test_rows_of_another_shape_are_refused(form, shape):
    columns = 2 if form == "points" else 4
    with pytest.raises(DataError, match=rf"{form} expects numbers \[n, {columns} or more\], got \[{', '.join(map(str, shape))}\]"):
        Carrier(Mirrored(BEFORE, "horizontal"), form).rows(np.ones(shape))


def test_points_that_leave_go_and_those_at_the_edge_stay():
    places = [[90, 40], [150, 100], [151, 50], [100, 39]]
    value = {"shapes": [{"label": str(at), "shape_type": "point", "points": [place]} for at, place in enumerate(places)]}

    assert ["0", "1"] == [each["label"] for each in Carrier(Cropped(BEFORE, 40, 90, (60, 60))).tree(value)["shapes"]]


def test_points_of_an_array_that_leave_go():
    made = Carrier(Cropped(BEFORE, 40, 90, (60, 60)), "points").rows(np.array([[90, 40, 1], [150, 100, 2], [151, 50, 3], [100, 39, 4]]))

    assert [[0, 0, 1], [60, 60, 2]] == made.tolist()
    assert (0, 3) == Carrier(Cropped(BEFORE, 40, 90, (60, 60)), "points").rows(np.zeros((0, 3))).shape


def test_an_object_of_voc_without_a_box_stays_as_it_is():
    box = "<bndbox><xmin>0</xmin><ymin>0</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>"
    xml = f"<a><object><name>x</name></object><object><name>b</name>{box}</object></a>"
    away = Carrier(Cropped(BEFORE, 50, 100, (10, 10)))

    assert b"<a><object><name>x</name></object></a>" == away.payload(xml.encode(), "xml")
    assert xml.encode() == Carrier(Cropped(BEFORE, 0, 0, BEFORE)).payload(xml.encode(), "txt")


@pytest.mark.parametrize(("levels", "refused"), [(4, True), (5, False)])
def test_numbers_that_look_like_boxes_are_looked_for_some_levels_deep(levels, refused):
    value: object = {"my_boxes": {"x": [[1, 2]]}}
    for _ in range(levels):
        value = {"inner": value}
    carrier = Carrier(Mirrored(BEFORE, "horizontal"))

    if not refused:
        assert value == carrier.tree(value)
        return
    with pytest.raises(DataError, match="'my_boxes' looks like annotations"):
        carrier.tree(value)
