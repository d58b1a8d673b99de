"""Objects as a relation, in conditions, and written: COCO → YOLO → VOC → COCO."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

import tarviz
from tarviz.cli import main
from tarviz.commands.objects import objects
from tarviz.looks import runs
from tarviz.model.errors import UsageError
from tests.table.test_objects import js, picture

pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")

NAMES = [{"id": 3, "name": "star"}, {"id": 7, "name": "moon & sun"}]
COCO = [
    {"bbox": [10.25, 20.5, 30.125, 12.0], "category_id": 3, "score": 0.9},
    {"bbox": [1, 2, 3.3333, 4], "category_id": 7, "score": 0.2},
    {"bbox": [0, 0, 50, 40], "category_id": 3, "segmentation": [[0, 0, 50, 0, 50, 40]], "score": 0.4},
]


@pytest.fixture
def shard(make) -> Path:
    boxes = {"annotations": COCO[:2], "categories": NAMES}
    return make([
        ("a", {"png": picture(), "json": js(boxes)}),
        ("b", {"png": picture(), "json": js({"annotations": COCO, "categories": NAMES})}),
        ("c", {"png": picture(), "json": js({"objects": {"bbox": [[1, 2, 3, 4]], "category": ["ring"]}})}),
        ("d", {"png": picture(), "txt": b"0 0.5 0.5 0.1 0.2\n1 0.25 0.25 0.5 0.5\n", "cls": b"1"}),
        ("e", {"png": picture(), "txt": b"a caption", "json": js({"label": "star", "score": 1})}),
        ("f", {"xml": b"<annotation><size><width>50</width><height>40</height></size><object><name>cup</name><bndbox><xmin>1</xmin>"
               b"<ymin>2</ymin><xmax>11</xmax><ymax>7.5</ymax></bndbox></object></annotation>"}),
    ])  # fmt: skip


class TestRelation:
    def test_has_a_row_for_each_annotation_in_any_form(self, shard):
        rows = (
            tarviz.table(shard)
            .sql("SELECT key, field, kind, label, score, x0, y0, x1, y1, area FROM objects ORDER BY n, y0, x0")
            .fetchall()
        )

        assert ("a", "json", "box", "moon & sun", 0.2, 1.0, 2.0, pytest.approx(4.3333), 6.0, pytest.approx(13.3332)) == rows[0]
        assert [("a", 2), ("b", 3), ("c", 1), ("d", 2), ("f", 1)] == [(key, sum(row[0] == key for row in rows)) for key in "abcdf"]
        assert ("b", "json", "polygon", "star", 0.4, 0.0, 0.0, 50.0, 40.0, 1000.0) == next(row for row in rows if row[2] == "polygon")
        assert ("f", "xml", "box", "cup", None, 1.0, 2.0, 11.0, 7.5, 55.0) == rows[-1]

    def test_all_lines_of_yolo_are_read_and_those_outside_are_found(self, make):
        texts = [b"0 0.5 0.5 0.1 0.2\n" * 3000, b"1 0.5 0.5 0.1 0.2\n1 1.7 0.5 0.1 0.2", b"0 120 90 30 40", b"a caption"]
        shard = make([(str(at), {"png": picture(), "txt": text}) for at, text in enumerate(texts)])
        found = objects(shard)

        assert ({"0": 3000, "1": 2}, {"txt with numbers outside of the picture": 2}) == (found.counts, found.findings)
        assert "2 × txt with numbers outside of the picture" in str(found)
        assert [(330.0,)] == tarviz.table(shard).sql("SELECT x0 FROM objects WHERE x0 > width").fetchall()

    def test_numbers_that_are_no_yolo_in_any_record_are_nothing(self, make):
        shard = make([(str(at), {"png": picture(), "txt": b"0 120 90 30 40\n5 5.1 3.5 1.4 0.2"}) for at in range(3)])

        assert ({}, {}) == ((found := objects(shard)).counts, found.findings)

    def test_numbers_of_classes_have_names(self, shard, tmp_path):
        (tmp_path / "names.txt").write_text("ball\nbat\n", "utf-8")
        query = "SELECT label, label_id FROM objects WHERE key = 'd' ORDER BY label_id"

        assert [("0", 0), ("1", 1)] == tarviz.table(shard).sql(query).fetchall()
        assert [("ball", 0), ("bat", 1)] == tarviz.table(shard, classes=["ball", "bat"]).sql(query).fetchall()
        assert [("ball", 0), ("bat", 1)] == tarviz.table(shard, classes=tmp_path / "names.txt").sql(query).fetchall()

    @pytest.mark.parametrize(
        "value",
        [
            {"annotations": [{"bbox": [1, 2, 3, 4], "category_id": 3}, {"bbox": [1, 2, 3, 4], "category_id": 7}], "categories": NAMES},
            {"boxes": [[1, 2, 4, 6], [1, 2, 4, 6]], "labels": [3, 7.0], "categories": NAMES},
            {"objects": [{"bbox": [1, 2, 3, 4], "label": each["name"], "label_id": each["id"]} for each in NAMES]},
        ],
    )
    def test_the_number_of_a_class_comes_with_its_name(self, make, value):
        table = tarviz.table(make([("a", {"png": picture(), "json": js(value)})]))

        assert [("star", 3), ("moon & sun", 7)] == table.sql("SELECT label, label_id FROM objects").fetchall()

    @pytest.mark.parametrize("label", ["²", 1 << 40, "99999999999", -1])
    def test_a_label_that_is_no_number_of_a_class_is_a_name(self, make, label):
        table = tarviz.table(make([("a", {"png": picture(), "json": js([{"bbox": [1, 2, 3, 4], "label": label}])})]))

        assert [(str(label), None)] == table.sql("SELECT label, label_id FROM objects").fetchall()

    @pytest.mark.parametrize(
        ("marks", "box"),
        [([12, 25, 2, 0, 0, 0, 30, 50, 1], (12, 25, 30, 50)), ([0, 0, 0, 0, 0, 0], (0, 0, 0, 0)), ([12, 25, 0, 1, 2, 0], (1, 2, 12, 25))],
    )
    def test_key_points_alone_have_the_box_of_those_that_are_labelled(self, make, marks, box):
        shard = make([("a", {"png": picture(), "json": js({"keypoints": marks, "category_id": 1})})])

        assert [box] == tarviz.table(shard).sql("SELECT x0, y0, x1, y1 FROM objects").fetchall()

    def test_is_there_still_when_more_columns_were_made(self, shard):
        table = tarviz.table(shard)
        before = table.sql("SELECT count(*) FROM objects").fetchall()
        table.sql("SELECT png.mean FROM records").fetchall()

        assert [(9,)] == before == table.sql("SELECT count(*) FROM objects").fetchall()

    def test_joins_the_records(self, shard):
        query = "SELECT r.key, count(*) FROM records r JOIN objects o USING (shard, n) WHERE r.cls = 1 GROUP BY r.key"

        assert [("d", 2)] == tarviz.table(shard).sql(query).fetchall()

    @pytest.mark.parametrize(
        ("where", "keys"),
        [
            ("has_object('star')", "ab"),
            ("count_objects('star') > 1", "b"),
            ("count_objects() = 0", "e"),
            ("any_object(label = 'star' and score > 0.5)", "ab"),
            ("any_object(label = 'moon & sun' and score > 0.5)", ""),
            ("any_object(area > 900) and has:json", "b"),
            ("not has_object('star') and any_object(x0 < 5)", "cdf"),
            ("json.label = 'star' and json.score = 1", "e"),
        ],
    )
    def test_chooses_records(self, shard, where, keys):
        assert list(keys) == [record.key for record in tarviz.records(shard, where=where)]

    @pytest.mark.parametrize("where", ["any_object()", "has_object()", "any_object(label = 'a', 1)"])
    def test_what_cannot_be_read_is_told(self, shard, where):
        with pytest.raises(UsageError, match="one argument"):
            tarviz.table(shard).rows(where)


def test_coco_yolo_voc_coco_gives_the_same_boxes(make, tmp_path):
    first = make([(f"k{at}", {"png": picture(), "json": js({"annotations": COCO[:2], "categories": NAMES})}) for at in range(3)])
    names = tmp_path / "names.txt"
    names.write_text("moon & sun\nstar\n", "utf-8")

    def joined(labels: Path, name: str) -> Path:
        with tarfile.open(labels) as tar:
            members = {member.name: tar.extractfile(member).read() for member in tar}
        return make([(key.split(".")[0], {"png": picture(), key.split(".")[1]: text}) for key, text in members.items()], name)

    objects(first, tmp_path / "one.json", classes=names)
    objects(first, tmp_path / "y.tar", form="yolo", classes=names)
    yolo = joined(tmp_path / "y.tar", "yolo.tar")
    objects(yolo, tmp_path / "v.tar", form="voc", classes=tmp_path / "y.names")
    objects(joined(tmp_path / "v.tar", "voc.tar"), tmp_path / "two.json")

    one, two = (json.loads((tmp_path / name).read_text()) for name in ("one.json", "two.json"))
    assert one["images"] == two["images"]
    assert one["categories"] == two["categories"]
    assert [each["category_id"] for each in one["annotations"]] == [each["category_id"] for each in two["annotations"]]
    for a, b in zip(one["annotations"], two["annotations"], strict=True):
        assert a["bbox"] == pytest.approx(b["bbox"], abs=0.01)


@pytest.mark.parametrize("size", [(80, 100), (40, 50)])
@pytest.mark.parametrize("is_text", [True, False])
@pytest.mark.parametrize("box", [{"bbox": [0, 0, 13, 80]}, {}])
def test_coco_has_masks_as_large_as_the_picture(make, tmp_path, size, is_text, box):
    mask = np.zeros(size, np.uint8)
    mask[:, : size[1] // 10] = mask[size[0] // 2 :, size[1] // 5] = 1
    said = {"annotations": [{"category_id": 1, "segmentation": runs.encode(mask, {"counts": "" if is_text else []}), **box}]}
    shard = make([("a", {"png": picture(100, 80), "json": js(said)})])
    objects(shard, tmp_path / "o.json")
    (made,) = json.loads((tmp_path / "o.json").read_text())["annotations"]
    times = 80 // size[0]

    assert [80, 100] == made["segmentation"]["size"]
    assert np.array_equal(mask.repeat(times, 0).repeat(times, 1), runs.decode(made["segmentation"]))
    assert made["area"] == runs.decode(made["segmentation"]).sum()


ODD = ["star", "moon & sun", " <tag> ", '"q"', "don't", "日本", "7", "0", "person\tx"]


def test_odd_boxes_and_labels_come_back_from_coco_yolo_and_voc(make, tmp_path):
    draw = np.random.default_rng(0)
    boxes = [[19.25, 2.5, 30.0, 30.5], [0, 0, 1, 1], [0.5, 0.25, 0.25, 0.5], [-7.5, 50, 230, 40], [150, 60, 160, 90], [3, 4, 0, 5]]
    said = {}
    for at in range(40):
        own = [boxes[int(each)] for each in draw.integers(0, len(boxes), 1 + at % 3)]
        said[f"k{at:02}"] = [(ODD[int(draw.integers(len(ODD)))], box) for box in own]
    categories = [{"id": at, "name": name} for at, name in enumerate(ODD, 11)]
    made = {
        key: {
            "annotations": [{"bbox": box, "category_id": 11 + ODD.index(name), "iscrowd": 0} for name, box in own],
            "categories": categories,
        }
        for key, own in said.items()
    }
    shard = make([(key, {"png": picture(), "json": js(value)}) for key, value in made.items()], "first.tar")
    names = tmp_path / "odd.names"
    names.write_text("".join(f"{name}\n" for name in ODD), "utf-8")
    for form in ("yolo", "voc"):
        objects(shard, tmp_path / "o.tar", form=form, classes=names)
        with tarfile.open(tmp_path / "o.tar") as tar:
            texts = {member.name: tar.extractfile(member).read() for member in tar}
        shard = make([(name.split(".")[0], {"png": picture(), name.split(".")[1]: text}) for name, text in texts.items()], f"{form}.tar")
        found = tarviz.table(shard, classes=names if form == "yolo" else ()).sql("SELECT key, label, x0, y0, x1 - x0, y1 - y0 FROM objects")
        rows = found.fetchall()

        assert [(key, name) for key, own in said.items() for name, _ in own] == [row[:2] for row in rows]
        assert [box for own in said.values() for _, box in own] == [pytest.approx(row[2:], abs=0.01) for row in rows]


def test_several_outlines_are_one_in_yolo_and_a_crowd_stays_one(make, tmp_path):
    rings = [[10, 10, 30, 10, 30, 40, 10, 40], [50, 60, 50, 90, 90, 90], [120, 20, 150, 20, 150, 30]]
    crowd = {"segmentation": {"size": [100, 200], "counts": [0, 100, 19_900]}, "category_id": 1, "iscrowd": 1, "score": 0.5}
    shard = make([("a", {"png": picture(), "json": js([{"segmentation": rings, "category_id": 0, "iscrowd": 0}, crowd])})])
    objects(shard, tmp_path / "o.json")
    lost = objects(shard, tmp_path / "y.tar", form="yolo")
    with tarfile.open(tmp_path / "y.tar") as tar:
        again = make([("a", {"png": picture(), "txt": tar.extractfile("a.txt").read()})], "y.tar")
    made = json.loads((tmp_path / "o.json").read_text())["annotations"]

    assert [0, 1] == [each["iscrowd"] for each in made]
    assert {"crowd": 1, "runs": 1, "score": 1} == lost.left_out
    assert "left out: crowd of 1" in str(lost)
    box, area = (10, 10, 150, 90), 600 + 600 + 150
    assert [(*map(pytest.approx, box), pytest.approx(area, abs=0.01))] == tarviz.table(again).sql(
        "SELECT x0, y0, x1, y1, area FROM objects WHERE kind = 'polygon'"
    ).fetchall()


def test_coco_names_pictures_without_an_object_too(shard, tmp_path):
    objects(shard, tmp_path / "o.json")
    objects(shard, tmp_path / "w.json", where="key > 'd'")
    made = [[each["file_name"] for each in json.loads((tmp_path / name).read_text())["images"]] for name in ("o.json", "w.json")]

    assert [["a.png", "b.png", "c.png", "d.png", "e.png", "f"], ["e.png", "f"]] == made


def test_coco_names_the_files_that_pictures_are_and_is_read_back(make, tmp_path):
    said = {"annotations": [{"bbox": [0.1, 2, 0.2, 4], "category_id": 7}], "categories": NAMES}
    path = make([("in/a", {"seg.txt": b"x", "png": picture(), "json": js(said)}), ("in/b", {"jpg": b"no picture", "mask.png": picture()})])
    objects(path, tmp_path / "o.json")
    with tarfile.open(path) as tar:
        tar.extractall(tmp_path / "files", filter="data")

    made = json.loads((tmp_path / "o.json").read_text())
    assert ["in/a.png", "in/b.mask.png"] == [each["file_name"] for each in made["images"]]
    assert [0.1, 2, 0.2, 4] == made["annotations"][0]["bbox"]
    assert 0 == main(["create", str(tmp_path / "files"), "--coco", str(tmp_path / "o.json"), "-o", str(tmp_path / "again.tar")])
    again = objects(tmp_path / "again.tar").table.select(["label", "label_id", "x0"])
    assert [{"label": "moon & sun", "label_id": 7, "x0": 0.1}] == again.to_pylist()


@pytest.mark.parametrize(
    ("numbers", "names", "expected"),
    [
        ((3, 7), True, {"star": 3, "moon & sun": 7}),
        ((7, 3), False, {"7": 7, "3": 3}),
        ((0, 10), False, {"0": 0, "10": 10}),
        (("x", 7), False, {"7": 1, "x": 2}),
    ],
)
def test_coco_keeps_the_numbers_of_classes_where_each_has_one(make, tmp_path, numbers, names, expected):
    said = {"annotations": [{"bbox": [1, 2, 3, 4], "category_id": each} for each in numbers]}
    objects(make([("a", {"png": picture(), "json": js({**said, **({"categories": NAMES} if names else {})})})]), tmp_path / "o.json")
    made = json.loads((tmp_path / "o.json").read_text())

    assert expected == {each["name"]: each["id"] for each in made["categories"]}
    assert sorted(expected.values()) == [each["id"] for each in made["categories"]]
    called = {each["id"]: each["name"] for each in made["categories"]}
    assert [str(each) if not names else {3: "star", 7: "moon & sun"}[each] for each in numbers] == [
        called[each["category_id"]] for each in made["annotations"]
    ]


def test_numbers_of_yolo_that_nobody_named_stay(make, tmp_path):
    text = b"0 0.5 0.5 0.1 0.2\n10 0.5 0.5 0.1 0.2\n2 0.5 0.5 0.1 0.2\n"
    objects(make([("a", {"png": picture(), "txt": text})]), tmp_path / "y.tar", form="yolo")
    with tarfile.open(tmp_path / "y.tar") as tar:
        lines = tar.extractfile("a.txt").read().decode().splitlines()

    assert ["0", "10", "2"] == [line.split()[0] for line in lines]
    assert [str(at) for at in range(11)] == (tmp_path / "y.names").read_text().splitlines()


def test_labels_are_packed_as_their_name_says(make, tmp_path):
    said = js([{"bbox": [1, 2, 30, 40], "label": "x"}])
    objects(make([("a", {"png": picture(), "json": said})]), tmp_path / "l.tar.gz", form="yolo")

    with tarfile.open(tmp_path / "l.tar.gz", "r:gz") as tar:
        assert ["a.txt"] == tar.getnames()
    assert "x\n" == (tmp_path / "l.names").read_text()


def test_damage_is_no_clean_exit(make, tmp_path, capsys):
    good = {"png": picture(), "json": js({"annotations": COCO, "categories": NAMES})}
    path = make([("a", good), ("b", {**good, "json": b'{"annotations": ['})])

    assert 1 == main(["objects", str(path)])
    assert "1 × json.bad" in capsys.readouterr().out
    assert 1 == main(["objects", str(path), "-o", str(tmp_path / "o.csv")])


@pytest.mark.parametrize(
    "fields",
    [
        {"txt": b"{not json"},
        {"txt": b'{"width": 1e999, "height": 4, "boxes": [[1, 2, 3, 4]]}'},
        {"json": js({"width": 1 << 40, "height": 4, "boxes": [[1, 2, 3, 4]]})},
        {"xml": b"<size><width>1e300</width><height>2</height></size>"},
    ],
)
def test_a_text_without_a_picture_that_names_no_size_has_no_objects(make, fields):
    assert 0 == len(objects(make([("a", fields)])))


@pytest.mark.matrix
def test_long_outlines_keep_their_points(make):
    turn = np.linspace(0, 2 * np.pi, 2000, endpoint=False)
    circle = np.stack([100 + 40 * np.cos(turn), 50 + 40 * np.sin(turn)], 1).ravel()
    shard = make([("a", {"png": picture(), "json": js([{"segmentation": [circle.tolist()] * 60, "keypoints": [5, 5, 2] * 133}])})])
    ((count, points, marks),) = tarviz.table(shard).sql("SELECT len(outlines), len(outlines[1]), len(keypoints) FROM objects").fetchall()

    assert (60, 4000, 399) == (count, points, marks)


def test_two_records_of_one_key_are_no_two_files_of_one_name(make, tmp_path):
    one = ("a", {"png": picture(), "json": js([{"bbox": [1, 2, 30, 40], "label": "x"}])})

    with pytest.raises(UsageError, match="two records have the key 'a'"):
        objects([make([one], "a.tar"), make([one], "b.tar")], tmp_path / "o.tar", form="voc")


def test_objects_without_a_label_have_a_class_of_their_own(make, tmp_path, capsys):
    shard = make([("a", {"png": picture(), "json": js([{"bbox": [10, 20, 30, 40]}, {"bbox": [1, 2, 3, 4], "label": "zebra"}])})])
    objects(shard, tmp_path / "o.json")
    objects(shard, tmp_path / "y.tar", form="yolo")
    made = json.loads((tmp_path / "o.json").read_text())

    assert [{"id": 1, "name": "zebra"}, {"id": 2, "name": "unlabelled"}] == made["categories"]
    assert [2, 1] == [each["category_id"] for each in made["annotations"]]
    assert "zebra\nunlabelled\n" == (tmp_path / "y.names").read_text()
    with tarfile.open(tmp_path / "y.tar") as tar:
        assert ["1", "0"] == [line.split()[0] for line in tar.extractfile("a.txt").read().decode().splitlines()]

    (tmp_path / "c.names").write_text("zebra\n", "utf-8")
    assert 2 == main(["objects", str(shard), "--yolo", "-o", str(tmp_path / "z.tar"), "--classes", str(tmp_path / "c.names")])
    assert "without a label are of the class 'unlabelled'" in " ".join(capsys.readouterr().err.split())
    (tmp_path / "c.names").write_text("unlabelled\nzebra\n", "utf-8")
    assert 0 == main(["objects", str(shard), "--yolo", "-o", str(tmp_path / "z.tar"), "--classes", str(tmp_path / "c.names")])


def test_the_verb_counts_and_writes(shard, tmp_path, capsys):
    assert 0 == main(["objects", str(shard)])
    assert "star" in (shown := capsys.readouterr().out)
    assert 0 == main(["objects", str(shard), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["objects"] == sum(told["counts"].values()) > 0
    assert all(label in shown for label in told["counts"])
    assert 0 == main(["objects", str(shard), "-o", str(tmp_path / "o.csv"), "--where", "has_object('cup')"])
    assert "f,1" not in (tmp_path / "o.csv").read_text()
    assert 2 == len((tmp_path / "o.csv").read_text().splitlines())
    assert 2 == main(["objects", str(shard), "-o", str(tmp_path / "o.txt")])
    assert "--yolo or --voc" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:W_EMPTY")
def test_a_shard_without_records_hides_no_objects_of_the_others(make, tmp_path):
    good = make([("a", {"png": picture(), "json": js({"annotations": COCO, "categories": NAMES})})])
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    table = tarviz.table([str(tmp_path / "empty.tar"), str(good)])

    assert [(len(COCO),)] == table.sql("SELECT count(*) FROM objects").fetchall()
    assert [(0,)] == tarviz.table(tmp_path / "empty.tar").sql("SELECT count(*) FROM objects").fetchall()


def test_points_circles_and_lines_of_labelme_are_objects_and_boxes_are_said(make, tmp_path, capsys):
    drawn = {"point": [[10, 20]], "line": [[10, 20], [30, 60]], "linestrip": [[1, 2], [3, 4], [5, 1]], "circle": [[50, 50], [50, 70]]}
    labels = {"shapes": [{"label": kind, "shape_type": kind, "points": points} for kind, points in drawn.items()]}
    path = make([("a", {"png": picture(), "json": json.dumps(labels).encode()})])
    rows = tarviz.table(path).sql("SELECT label, kind, x0, y0, x1, y1, area FROM objects ORDER BY label").fetchall()

    assert [("circle", "polygon", 30, 30, 70, 70)] == [row[:6] for row in rows[:1]]
    assert rows[0][6] == pytest.approx(np.pi * 400, rel=0.003)
    assert [("line", "points", 10, 20, 30, 60), ("linestrip", "points", 1, 1, 5, 4), ("point", "points", 10, 20, 10, 20)] == [
        row[:6] for row in rows[1:]
    ]
    for form, lost in (("yolo", "keypoints of 3"), ("voc", "keypoints of 3, outlines of 1")):
        assert 0 == main(["objects", str(path), f"--{form}", "-o", str(tmp_path / "labels.tar")])
        assert f"left out: {lost}\n" in capsys.readouterr().out
    assert {} == objects(path, tmp_path / "coco.json").left_out


def test_without_pictures_coco_has_those_of_the_objects(make, tmp_path):
    xml = b"<annotation><size><width>50</width><height>40</height></size><object><name>cup</name><bndbox><xmin>1</xmin>"
    path = make(
        [("a", {"xml": xml + b"<ymin>2</ymin><xmax>11</xmax><ymax>7.5</ymax></bndbox></object></annotation>"}), ("b", {"txt": b"none"})]
    )
    objects(path, tmp_path / "o.json")
    found = json.loads((tmp_path / "o.json").read_text())

    assert [{"id": 1, "file_name": "a", "width": 50, "height": 40}] == found["images"]
    assert [{"id": 1, "name": "cup"}] == found["categories"]
    (one,) = found["annotations"]
    assert {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 10, 5.5], "area": 55.0, "iscrowd": 0, "segmentation": []} == one


@pytest.mark.parametrize("form", ["--coco", "--yolo", "--voc"])
def test_a_form_wants_a_file(form, capsys):
    assert 2 == main(["objects", "x.tar", form])
    assert f"{form} needs a file" in capsys.readouterr().err


def test_the_whole_of_what_is_written(make, tmp_path):
    content = {"annotations": COCO, "categories": NAMES}
    path = make(
        [
            ("k<1>", {"png": picture(), "json": js(content)}),
            ("k2", {"png": picture(50, 40), "json": js({**content, "annotations": COCO[2:]})}),
        ]
    )
    yolo, voc = objects(path, tmp_path / "y.tar", form="yolo"), objects(path, tmp_path / "v.tar", form="voc")

    assert "moon & sun\nstar\n" == (tmp_path / "y.names").read_text()
    with tarfile.open(tmp_path / "y.tar") as tar:
        texts = {each.name: tar.extractfile(each).read().decode().splitlines() for each in tar}
    assert {"k<1>.txt", "k2.txt"} == set(texts)
    assert "1 0.12656250 0.26500000 0.15062500 0.12000000" == texts["k<1>.txt"][0]
    assert "0 0.01333325 0.04000000 0.01666650 0.04000000" == texts["k<1>.txt"][1]
    assert "1 0.00000000 0.00000000 1.00000000 0.00000000 1.00000000 1.00000000" == texts["k2.txt"][0]
    with tarfile.open(tmp_path / "v.tar") as tar:
        texts = {each.name: tar.extractfile(each).read().decode() for each in tar}
    assert (
        "<annotation><filename>k2.png</filename><size><width>50</width><height>40</height><depth>3</depth></size>\n"
        "<object><name>star</name><bndbox><xmin>0</xmin><ymin>0</ymin><xmax>50</xmax><ymax>40</ymax></bndbox></object>\n"
        "</annotation>\n"
    ) == texts["k2.xml"]
    assert "<filename>k&lt;1&gt;.png</filename>" in texts["k<1>.xml"]
    assert "<name>moon &amp; sun</name>" in texts["k<1>.xml"]
    assert ({"score": 4}, {"outlines": 2, "score": 4}) == (yolo.left_out, voc.left_out)
    assert f"{tmp_path}/v.tar: 4 objects, 2 labels; left out: outlines of 2, score of 4" == str(voc)
    assert {"objects": 4, "counts": {"star": 3, "moon & sun": 1}, "left_out": {"score": 4}, "findings": {}} == yolo.to_dict()
    assert ["label       objects", "star              3", "moon & sun        1", "in all            4"] == str(objects(path)).splitlines()
