"""Boxes, outlines and key points: recognised as people write them, and nothing made up of what is something else."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.looks.shapes import MOST, Frame, Shape, find, read, read_over

BOX = Shape("box", (10.0, 20.0, 30.0, 40.0), "cat")


def boxes(value, **more):
    return [shape.numbers for shape in find(value, 100, 100, **more)]


class TestForms:
    @pytest.mark.parametrize(
        "value",
        [
            {"annotations": [{"bbox": [10, 20, 30, 40], "category_id": 3}], "categories": [{"id": 3, "name": "cat"}]},
            [{"bbox": [10, 20, 30, 40], "category": "cat"}],
            {"boxes": [[10, 20, 40, 60]], "labels": ["cat"]},
            {"objects": {"bbox": [[10, 20, 30, 40]], "category": ["cat"]}},
            {"objects": [{"box": {"xmin": 10, "ymin": 20, "xmax": 40, "ymax": 60}, "label": "cat"}]},
            {"objects": [{"box": {"cx": 25, "cy": 40, "w": 30, "h": 40}, "label": "cat"}]},
            {"objects": [{"box": {"x": 10, "y": 20, "width": 30, "height": 40}, "label": "cat"}]},
            {"annotation": {"object": {"name": "cat", "bndbox": {"xmin": "10", "ymin": "20", "xmax": "40", "ymax": "60"}}}},
            {"shapes": [{"label": "cat", "shape_type": "rectangle", "points": [[10, 20], [40, 60]]}]},
            {"shapes": [{"label": "cat", "shape_type": "rectangle", "points": [[40, 20], [40, 60], [10, 60], [10, 20]]}]},
            {"shapes": [{"label": "dog", "shape_type": "rectangle", "points": [[10, 20], 7]}, {"label": "cat", "bbox": [10, 20, 30, 40]}]},
            {"names": {"²": "dog", "3": "cat"}, "boxes": [[10, 20, 40, 60]], "labels": [3]},
            {"categories": [{"id": [3], "name": "dog"}], "objects": [{"bbox": [10, 20, 30, 40], "label": "cat"}]},
            {"boxes": [[0.1, 0.2, 0.4, 0.6]], "labels": ["cat"]},
            {"predictions": [{"x1": 10, "y1": 20, "x2": 40, "y2": 60, "class": "cat"}]},
        ],
    )
    def test_a_box_is_the_same_however_it_is_written(self, value):
        assert [BOX] == find(value, 100, 100)

    def test_a_list_of_corners_that_would_leave_the_picture_is_not_taken_for_sizes(self):
        assert [(60.0, 60.0, 30.0, 30.0)] == boxes([{"bbox": [60, 60, 90, 90]}])
        assert [(10.0, 50.0, 30.0, 10.0)] == boxes({"boxes": [[10, 50, 40, 60]]})
        assert [(50.0, 10.0, 10.0, 30.0)] == boxes({"boxes": [[50, 10, 60, 40]]})

    @pytest.mark.parametrize("bad", [None, [1, 2], [1, 2, math.nan, 4], "x", [1, 2, 3, None]])
    @pytest.mark.parametrize("at", [0, 1])
    @pytest.mark.parametrize(("rows", "names"), [("boxes", "labels"), ("bbox", "category")])
    def test_a_box_that_is_none_leaves_the_others_with_their_names(self, bad, at, rows, names):
        good, labels = [10, 20, 30, 40] if rows == "bbox" else [10, 20, 40, 60], ["dog", "cat"] if at == 0 else ["cat", "dog"]
        value = {rows: [bad, good] if at == 0 else [good, bad], names: labels}

        assert [BOX] == find(value, 100, 100) == find({"objects": value}, 100, 100)

    @pytest.mark.parametrize(
        ("labels", "names"),
        [
            (["a", 7, None], ["a", "7", ""]), (["a", ["b"], {"c": 1}], ["a", "", ""]), (["a", "b"], ["a", "b", ""]),
            (["a"], ["", "", ""]), (["a", "b", "c", "d"], ["", "", ""]),
        ],
    )  # fmt: skip
    def test_names_that_are_some_none_or_one_too_few_are_those_of_their_boxes(self, labels, names):
        assert names == [shape.name for shape in find({"boxes": [[1, 2, 4, 6]] * 3, "labels": labels}, 100, 100)]

    def test_a_list_of_all_classes_is_no_list_of_names(self):
        assert ["", ""] == [shape.name for shape in find({"boxes": [[1, 2, 4, 6]] * 2, "classes": ["a"]}, 100, 100)]

    def test_the_form_can_be_said(self):
        assert [(10.0, 20.0, 20.0, 20.0)] == boxes([{"bbox": [10, 20, 30, 40]}], form="xyxy")
        assert [(-5.0, 0.0, 30.0, 40.0)] == boxes([{"bbox": [10, 20, 30, 40]}], form="cxcywh")

    def test_yolo_lines_are_shares_with_a_score_or_an_outline(self):
        found = read(b"2 0.5 0.5 0.2 0.4 0.9\n1 0.1 0.1 0.5 0.1 0.5 0.5\n", "txt", 100, 50)

        assert Shape("box", (40.0, 15.0, 20.0, 20.0), "2", 0.9) == found[0]
        assert Shape("polygon", (10.0, 5.0, 50.0, 5.0, 50.0, 25.0), "1") == found[1]

    @pytest.mark.parametrize(
        "text",
        [
            "\ufeff1 0.5 0.5 0.2 0.4\n", "1.000000000000000000e+00 5.0e-01 5.0e-01 2.0E-01 4.0e-01\n", "1 +0.5 .5 +.2 0.4",
            "1.0 0.5 0.5 0.2 0.4", "1. 0.5 0.5 0.2 0.4\r\n", "01 0.5 0.5 0.2 0.4",
        ],
    )  # fmt: skip
    def test_yolo_lines_are_the_same_however_their_numbers_are_written(self, text):
        assert [Shape("box", (40.0, 15.0, 20.0, 20.0), "1")] == read(text.encode(), "txt", 100, 50)

    @pytest.mark.parametrize(("width", "height", "found"), [(1, 1, 1), (0, 1, 0), (1, 0, 0)])
    def test_a_picture_of_one_pixel_has_shapes_and_one_of_none_has_not(self, width, height, found):
        assert found == len(read(b"1 0.5 0.5 1 1\n", "txt", width, height))

    def test_voc_is_read_by_its_tags_and_scaled_to_the_picture(self):
        xml = "<annotation><size><width>200</width><height>200</height></size><object><name>a &lt;b&gt;</name><bndbox>"
        xml += "<xmin>20</xmin><ymin>40</ymin><xmax>80</xmax><ymax>120</ymax></bndbox></object></annotation>"

        for ext, before in (("xml", ""), ("txt", "\n \t")):
            assert [Shape("box", (10.0, 20.0, 30.0, 40.0), "a <b>")] == read((before + xml).encode(), ext, 100, 100)

    def test_the_box_and_the_name_of_a_part_are_not_those_of_its_object(self):
        part = "<part><name>head</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></part>"
        own = "<name>cat</name><bndbox><xmin>10</xmin><ymin>20</ymin><xmax>40</xmax><ymax>60</ymax></bndbox>"

        for inner in (part + own, own + part, part + part + own):
            assert [BOX] == read(f"<annotation><object>{inner}</object></annotation>".encode(), "xml", 100, 100)

    def test_outlines_and_key_points_come_with_their_box(self):
        item = {"bbox": [1, 2, 3, 4], "segmentation": [[1, 1, 5, 1, 5, 5]], "keypoints": [1, 2, 2, 3, 4, 0], "score": 0.5}
        kinds = [(shape.kind, shape.score) for shape in find([item], 10, 10)]

        assert [("box", 0.5), ("polygon", 0.5), ("points", 0.5)] == kinds

    def test_a_mask_of_run_lengths_comes_with_its_box(self):
        item = {"bbox": [1, 0, 1, 2], "segmentation": {"size": [2, 3], "counts": [2, 2, 2]}, "category": "cat"}

        assert [Shape("box", (1.0, 0.0, 1.0, 2.0), "cat"), Shape("mask", (2, 3, 2, 2, 2), "cat")] == find([item], 3, 2)

    @pytest.mark.parametrize(
        "outline", [{"size": [2, 3], "counts": [2, 2]}, [[[1, 2]]], [[]], [[[1, 2], 3, [4, 5], [6, 7]]], [[1, 2, 3, 4]]]
    )
    def test_a_damaged_mask_or_outline_is_left_out(self, outline):
        item = {"bbox": [1, 0, 1, 2], "segmentation": outline}

        assert ["box"] == [shape.kind for shape in find([item], 3, 2)]


class TestNothing:
    @pytest.mark.parametrize(
        ("blob", "ext"),
        [
            (b"A dog on a beach", "txt"), (b"3 1 4 1 5", "txt"), (b"12 3.5 4.5 99 2", "txt"), (b"1.5 0.5 0.5 0.2 0.4", "txt"),
            (b"-1 0.5 0.5 0.2 0.4", "txt"), (b'{"caption": "x", "width": 3}', "json"),
            (b'{"bbox": []}', "json"), (b"[1, 2, 3]", "json"), (b"{", "json"), (b"<html></html>", "xml"), (b"", "json"),
            (b'{"boxes": [[NaN, 1, 2, 3]]}', "json"), (b'{"messages": [{"role": "user", "content": "x"}]}', "json"),
        ],
    )  # fmt: skip
    def test_is_made_of_what_holds_none(self, blob, ext):
        assert [] == read(blob, ext, 640, 480)

    def test_a_flood_is_cut(self):
        many = json.dumps({"boxes": [[1, 2, 3, 4]] * 5000}).encode()

        assert MOST == len(read(many, "json", 100, 100))

    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
            lambda inner: (
                st.lists(inner, max_size=5)
                | st.dictionaries(
                    st.sampled_from(["bbox", "boxes", "annotations", "segmentation", "keypoints", "labels", "points", "a"]),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=20,
        )
    )
    def test_no_json_raises(self, value):
        assert isinstance(read(json.dumps(value).encode(), "json", 10, 10), list)

    @given(st.binary(max_size=80), st.sampled_from(["txt", "xml", "json"]))
    def test_no_bytes_raise(self, blob, ext):
        assert isinstance(read(blob, ext, 10, 10), list)


class TestNames:
    @pytest.mark.parametrize(
        ("more", "name"),
        [
            ({"categories": [{"id": 3, "name": "cat"}]}, "cat"),
            ({"categories": [{"id": 3}]}, "3"),
            ({"categories": [{"name": "cat"}]}, "3"),
            ({"class_names": ["a", "b", "c", "d"]}, "d"),
            ({"class_names": {"3": "cat", "x": "no"}}, "cat"),
            ({"id2label": {"3": "cat"}}, "cat"),
            ({"names": {"3": "cat"}}, "cat"),
            ({"names": ["a", "b", "c", "d"]}, "3"),
            ({}, "3"),
        ],
    )
    def test_a_number_has_the_name_that_the_json_says(self, more, name):
        assert [(name, 3)] == [
            (shape.name, shape.number) for shape in find({"annotations": [{"bbox": [1, 2, 3, 4], "category_id": 3}], **more}, 9, 9)
        ]

    @pytest.mark.parametrize(
        ("item", "name", "number", "score"),
        [
            ({"label": "cat", "category_id": 3, "conf": 0.5}, "cat", 3, 0.5),
            ({"label": "7", "category_id": 3, "score": 101}, "dog", 3, None),
            ({"class": 3.0, "probability": True}, "", 3, None),
            ({"cls": True, "score": -1}, "True", None, None),
            ({"name": ["cat"], "title": "boat", "confidence": 100}, "boat", None, 100),
        ],
    )
    def test_a_name_a_number_and_a_score_are_each_where_they_can_be(self, item, name, number, score):
        (shape,) = find({"annotations": [{"bbox": [1, 2, 3, 4], **item}], "categories": [{"id": 3, "name": "dog"}]}, 9, 9)

        assert (name, number, score) == (shape.name, shape.number, shape.score)

    def test_columns_behind_a_box_are_its_score_and_its_class(self):
        shapes = find([[1, 2, 3, 4], [1, 2, 3, 4, 0.5], [1, 2, 3, 4, 0.25, 2], None], 9, 9)

        assert [("", None, 0), ("", 0.5, 1), ("2", 0.25, 2)] == [(shape.name, shape.score, shape.item) for shape in shapes]
        assert [] == find([[1, 2, 3, 4, 5, 6, 7]], 9, 9)


class TestPlaces:
    @pytest.mark.parametrize(("levels", "found"), [(4, 1), (5, 0)])
    def test_boxes_are_looked_for_some_levels_deep(self, levels, found):
        value: object = [{"bbox": [1, 2, 3, 4]}]
        for _ in range(levels):
            value = {"objects": value}

        assert found == len(find(value, 9, 9))

    @pytest.mark.parametrize(
        ("rows", "guess", "written"),
        [
            ([[1, 2, 3, 4]], "xywh", ("xywh", False)),
            ([[1, 1, 9.2, 9]], "xywh", ("xywh", False)),
            ([[1, 1, 9.3, 9]], "xywh", ("xyxy", False)),
            ([[5, 5, 5.3, 5.1]], "xywh", ("xyxy", False)),
            ([[5, 5, 5.3, 4]], "xywh", ("xywh", False)),
            ([[1, 2, 3, 4], [5, 5, 9, 9]], "xyxy", ("xyxy", False)),
            ([[1, 2, 3, 4], [5, 5, 4, 9]], "xyxy", ("xywh", False)),
            ([[0.1, 0.2, 0.3, 0.4]], "xyxy", ("xyxy", True)),
            ([[0.5, 0.5, 0.6, 0.9]], "xywh", ("xyxy", True)),
            ([[0, 0, 0, 0]], "xywh", ("xywh", False)),
            ([[0.1, 0.2, 0.3, 0.4]], "coco", ("xywh", False)),
        ],
    )
    def test_the_form_is_told_by_all_rows_in_a_picture_of_10_pixels(self, rows, guess, written):
        assert written == Frame(10, 10).form_of(rows, guess)
        assert ("cxcywh", written[1] or (guess == "coco")) == Frame(10, 10, "cxcywh").form_of(rows, guess)

    def test_outlines_circles_and_marks_of_an_item(self):
        items = [
            {"polygon": [[1, 1], [5, 1], [5, 5]], "label": "a"},
            {"segmentation": [[1, 1, 5, 1, 5, 5], "x", [1, 2], [1, 2, 3, 4, 5, None], [[1, 2], None, [3, 4], [5, 6]]]},
            {"shape_type": "circle", "points": [[5, 5], [5, 7]]},
            {"shape_type": "point", "points": [[5, 6]]},
            {"shape_type": "line", "points": [[5, 6], [7, math.nan]]},
            {"shape_type": "rectangle", "points": [[5, 6], [1, 2]]},
            {"shape_type": "rectangle", "points": [[5, 6]]},
            {"segmentation": [[0.1, 0.1, 0.5, 0.1, 0.5, 0.5]]},
        ]
        shapes = find(items, 10, 10)

        assert [(0, "polygon"), (1, "polygon"), (2, "polygon"), (3, "points"), (5, "box"), (7, "polygon")] == [
            (each.item, each.kind) for each in shapes
        ]
        assert [(1, 1, 5, 1, 5, 5)] * 2 == [each.numbers for each in shapes[:2]]
        assert (64, 3.0, 7.0, 3.0, 7.0) == (len(c := shapes[2].numbers) // 2, min(c[::2]), max(c[::2]), min(c[1::2]), max(c[1::2]))
        assert (5.0, 6.0, 2.0) == shapes[3].numbers
        assert (1, 2, 4, 4) == shapes[4].numbers
        assert (1, 1, 5, 1, 5, 5) == shapes[5].numbers

    def test_a_long_outline_is_thinned_to_be_shown_and_not_to_be_counted(self):
        corners = [n for at in range(1000) for n in (at / 100, at % 7)]
        item = json.dumps([{"segmentation": [corners] * 60, "keypoints": [1, 2, 2] * 100}]).encode()
        shown, whole = read(item, "json", 10, 10), read_over(item, "json", Frame(10, 10, most=10_000, digits=6))

        assert [250] * 50 == [len(each.numbers) for each in shown[:-1]]
        assert [2000] * 60 == [len(each.numbers) for each in whole[:-1]]
        assert (240, 300) == (len(shown[-1].numbers), len(whole[-1].numbers))

    def test_very_large_payloads_and_pictures_of_no_size_have_no_shapes(self):
        small = b'[{"bbox": [1, 2, 3, 4]}]'
        large = small + b" " * (4 << 20)

        assert 1 == len(read(large[: 4 << 20], "json", 10, 10))
        assert [] == read(large, "json", 10, 10) == read(small, "json", 0, 10) == read(small, "json", 10, 0)
        assert 1 == len(read_over(large, "json", Frame(10, 10, most=1000)))
