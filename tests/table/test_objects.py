"""Rows of `objects`: every column of boxes, outlines, masks and key points, and the names and numbers of their classes."""

from __future__ import annotations

import io
import json

import pytest
from PIL import Image

import tarviz
from tarviz.model.errors import UsageError


def picture(width: int = 200, height: int = 100) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height)).save(out, "PNG")
    return out.getvalue()


def js(value: object) -> bytes:
    return json.dumps(value).encode()


def rows(make, fields: dict[str, bytes], columns: str = "* EXCLUDE (shard, key, n)", **more: object) -> list[tuple[object, ...]]:
    return tarviz.table(make([("a", fields)]), **more).sql(f"SELECT {columns} FROM objects").fetchall()


SIZE = (200, 100)
RUNS = [2010, *[10, 90] * 19, 10, 16_080]  # rows 10 … 19 of columns 20 … 39, down the columns
SMALL = [510, *[10, 40] * 9, 10, 4030]  # the same rows and columns 10 … 19 of a mask half as large


def test_every_form_has_its_row(make):
    items = [
        {"bbox": [10, 20, 30, 40], "category_id": 3, "score": 0.5},
        {"segmentation": [[0, 0, 50, 0, 50, 40], [0, 0, 5, 0, 5, 4]], "category_id": 3},
        {"segmentation": {"size": [100, 200], "counts": RUNS}, "category_id": 7, "iscrowd": 1},
        {"segmentation": {"size": [50, 100], "counts": SMALL}, "category_id": 7, "bbox": [1, 2, 3, 4]},
        {"keypoints": [12, 25, 2, 30, 50, 1], "category_id": 9},
        {"segmentation": {"size": [100, 200], "counts": [20_000]}, "category_id": 3},
    ]
    value = {"annotations": items, "categories": [{"id": 3, "name": "star"}, {"id": 7, "name": "moon"}]}

    assert [
        ("json", "box", "star", 3, 0.5, 10, 20, 40, 60, 1200, *SIZE, None, None, None, False),
        ("json", "polygon", "star", 3, None, 0, 0, 50, 40, 1010, *SIZE, [[0, 0, 50, 0, 50, 40], [0, 0, 5, 0, 5, 4]], None, None, False),
        ("json", "mask", "moon", 7, None, 20, 10, 40, 20, 200, *SIZE, None, None, [100, 200, *RUNS], True),
        ("json", "mask", "moon", 7, None, 1, 2, 4, 6, 400, *SIZE, None, None, [50, 100, *SMALL], False),
        ("json", "points", "9", 9, None, 12, 25, 30, 50, 450, *SIZE, None, [12, 25, 2, 30, 50, 1], None, False),
        ("json", "mask", "star", 3, None, 0, 0, 0, 0, 0, *SIZE, None, None, [100, 200, 20_000], False),
    ] == rows(make, {"png": picture(), "json": js(value)})


def test_corners_are_the_numbers_that_are_written(make):
    xml = "".join(
        f"<{name}>{n}</{name}>" for name, n in zip(("xmin", "ymin", "xmax", "ymax"), (11.162, 1.702, 24.484, 24.673), strict=True)
    )
    boxes = f"<object><name>a</name><bndbox>{xml}</bndbox></object>".encode()

    assert [(11.162, 1.702, 24.484, 24.673)] == rows(make, {"png": picture(), "xml": boxes}, "x0, y0, x1, y1")


@pytest.mark.parametrize(
    ("ext", "payload", "named"),
    [
        ("txt", b"1 0.5 0.5 0.1 0.2", ("dog", 1)),
        ("txt", b"7 0.5 0.5 0.1 0.2", ("7", 7)),
        ("json", js([{"bbox": [1, 2, 3, 4], "label": "dog"}]), ("dog", 1)),
        ("json", js([{"bbox": [1, 2, 3, 4], "label": "0"}]), ("cat", 0)),
        ("json", js([{"bbox": [1, 2, 3, 4], "label": "3"}]), ("3", 3)),
        ("json", js([{"bbox": [1, 2, 3, 4], "label": "2147483648"}]), ("2147483648", None)),
        ("json", js([{"bbox": [1, 2, 3, 4], "label": 2147483647}]), ("2147483647", 2147483647)),
        ("json", js([{"bbox": [1, 2, 3, 4], "label": -1}]), ("-1", None)),
        ("json", js([{"bbox": [1, 2, 3, 4], "label": "bird"}]), ("bird", None)),
        ("json", js([{"bbox": [1, 2, 3, 4], "label": "None"}]), ("None", 2)),
        ("json", js([{"bbox": [1, 2, 3, 4]}]), (None, None)),
    ],
)
def test_a_class_is_told_by_its_number_and_by_its_name(make, ext, payload, named):
    assert [named] == rows(make, {"png": picture(), ext: payload}, "label, label_id", classes=["cat", "dog", "None"])


BOX = {"bbox": [1, 2, 3, 4]}
XML = (
    "<annotation><size><width>{}</width><height>{}</height></size><object><name>a</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax>"
)
XML += "<ymax>4</ymax></bndbox></object></annotation>"


@pytest.mark.parametrize(
    ("ext", "payload", "size"),
    [
        ("json", js({"image": {"width": 50, "height": 40}, "objects": [BOX]}), (50, 40)),
        ("json", js({"image": "a.jpg", "width": 50, "height": 40, "objects": [BOX]}), (50, 40)),
        ("json", js({"imageWidth": 50, "imageHeight": 40, "objects": [BOX]}), (50, 40)),
        ("json", b" " + js({"width": 1, "height": 40, "objects": [BOX]}), (1, 40)),
        ("json", js({"width": 0.5, "height": 40, "objects": [BOX]}), None),
        ("json", js({"width": "50", "height": 40, "objects": [BOX]}), None),
        ("json", js({"width": 50, "objects": [BOX]}), None),
        ("json", js([BOX]), None),
        ("xml", XML.format(50, 40).encode(), (50, 40)),
        ("xml", XML.format(50, -40).encode(), None),
        ("xml", XML.format("nan", 40).encode(), None),
        ("txt", b"1 0.5 0.5 0.1 0.2", None),
    ],
)
def test_without_a_picture_the_annotation_says_the_size(make, ext, payload, size):
    assert ([] if size is None else [size]) == rows(make, {ext: payload}, "width, height")


def test_the_first_picture_that_can_be_measured_is_the_one(make):
    fields = {"a.png": b"broken", "b.png": picture(30, 20), "c.png": picture(9, 9), "json": js([BOX])}

    assert [(30, 20)] == rows(make, fields, "width, height")


@pytest.mark.parametrize("classes", [{1: "cat", 7: "owl"}, {"1": "cat", "7": "owl"}])
def test_classes_may_be_named_by_their_numbers(make, classes):
    boxes = [{"bbox": [1, 2, 3, 4], "category_id": number} for number in (1, 3, 7)]

    assert [("cat", 1), ("3", 3), ("owl", 7)] == rows(make, {"png": picture(), "json": js(boxes)}, "label, label_id", classes=classes)


def test_names_of_classes_that_cannot_be_read_are_refused(make, tmp_path):
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    shard = make([("a", {"cls": b"1"})])
    for name in ("latin", "nowhere"):
        with pytest.raises(UsageError, match=f"names of classes '.*{name}' cannot be read"):
            tarviz.table(shard, classes=tmp_path / name)
    for classes, named in (({"cat": 0}, "'cat'"), ({-1: "cat"}, "-1"), ({10**6: "cat"}, "1000000")):
        with pytest.raises(UsageError, match=f"numbers of 0 to 999,999, not {named}"):
            tarviz.table(shard, classes=classes)


def test_the_lines_of_a_file_of_classes_are_those_of_the_world(make, tmp_path):
    (tmp_path / "names").write_bytes("\ufeffcat\r\nowl\u2028day\r\n\r\ndog\r\n".encode())

    assert {0: "cat", 1: "owl\u2028day", 2: "", 3: "dog"} == tarviz.table(make([("a", {"cls": b"1"})]), classes=tmp_path / "names").classes
