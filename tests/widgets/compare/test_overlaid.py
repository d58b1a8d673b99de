"""What lies over the steps of a chain: drawn where it was carried, said where it stayed behind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tarviz.looks import runs
from tarviz.ops import Chain
from tarviz.widgets.compare.controller import Compare
from tarviz.widgets.compare.overlaid import Overlaid
from tarviz.widgets.panes.overlays import Overlays
from tests.widgets.conftest import png, tar

BOX = {"annotations": [{"bbox": [5, 5, 10, 10], "category": "cat"}]}


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    mask = png((3, 3, 3), (40, 30))
    fields = {"jpg": png((200, 40, 90), (40, 30)), "json": json.dumps(BOX).encode(), "seg.png": mask}
    return tar(tmp_path / "a.tar", [(f"n{n}", fields) for n in (1, 2)])


def tiles(shard: Path, chain: str, **more: object) -> list:
    run = Compare(shard, chain, records=1, **more)
    assert run.wait(30)
    return [run.originals[0], *run.columns[-1].strips[0].tiles]


class TestOver:
    def test_boxes_go_with_every_step(self, shard: Path):
        found = tiles(shard, "decode(jpg)|carry(jpg, json)|resize(jpg, (60, 80))|flip(jpg, p=1)|center_crop(jpg, (60, 60))")
        boxes = [[shape.numbers for shape in tile.over.shapes] for tile in found]

        assert [(5, 5, 10, 10)] == boxes[0] == boxes[1] == boxes[2]
        assert [(10, 10, 20, 20)] == boxes[3]
        assert [(50, 10, 20, 20)] == boxes[4]
        assert [(40, 10, 20, 20)] == boxes[5]
        assert (60, 60) == (found[5].over.width, found[5].over.height)

    def test_a_mask_goes_as_bytes_and_as_an_array(self, shard: Path):
        found = tiles(shard, "decode(jpg)|decode(seg.png, channels=1)|carry(jpg, json, seg.png)|flip(jpg, p=1)")

        pictures = [tile for tile in found if tile.ext == "jpg"]

        assert 4 == len(pictures)
        assert [["seg.png"]] * 4 == [[mask.ext for mask in tile.over.masks] for tile in pictures]

    def test_what_is_not_carried_is_said_and_no_longer_drawn(self, shard: Path):
        found = tiles(shard, "decode(jpg)|flip(jpg, p=1)|flip(jpg, p=1)")

        assert found[1].over.shapes
        assert "json, seg.png stayed behind: carry(jpg, json, seg.png)" == found[2].behind
        assert [None, None] == [tile.over for tile in found[2:]]
        assert "" == found[3].behind

    @pytest.mark.parametrize(
        ("name", "blob"),
        [
            ("txt", b"1 0.5 0.5 0.2 0.4 0.5 0.5 2"),
            ("json", b'{"boxes": [[0.1, 0.2, 0.4, 0.6]], "labels": ["cat"]}'),
            ("xml", b"<annotation><size><width>40</width><height>30</height></size><object><name>a</name><bndbox><xmin>4</xmin>"
             b"<ymin>6</ymin><xmax>16</xmax><ymax>18</ymax></bndbox></object></annotation>"),
        ],
    )  # fmt: skip
    def test_shares_are_right_after_a_resize_and_stay_behind_a_crop(self, name, blob, tmp_path: Path):
        shard = tar(tmp_path / "c.tar", [("n", {"jpg": png((1, 2, 3), (40, 30)), name: blob})])
        found = tiles(shard, "decode(jpg)|resize(jpg, (60, 100))|center_crop(jpg, (30, 30))")
        before, resized = ([shape.numbers for shape in tile.over.shapes if shape.kind == "box"] for tile in (found[0], found[2]))

        assert np.allclose(np.array(before) * (2.5, 2, 2.5, 2), resized)
        assert ["", "", f"{name} stayed behind: carry(jpg, {name})"] == [tile.behind for tile in found[1:]]

    def test_a_mask_of_run_lengths_is_drawn_where_it_went(self, tmp_path: Path):
        mask = np.zeros((30, 40), np.uint8)
        mask[5:15, 5:15] = 1
        item = {"bbox": [5, 5, 10, 10], "segmentation": runs.encode(mask, {"size": [], "counts": ""})}
        shard = tar(tmp_path / "d.tar", [("n", {"jpg": png((1, 2, 3), (40, 30)), "json": json.dumps([item]).encode()})])
        found = tiles(shard, "decode(jpg)|carry(jpg, json)|flip(jpg, p=1)")
        (drawn,) = [shape for shape in found[-1].over.shapes if shape.kind == "mask"]

        assert runs.thin(runs.encode(mask[:, ::-1], {"size": [], "counts": []})) == drawn.numbers

    def test_rows_of_an_array_are_drawn_in_the_form_that_is_said(self, tmp_path: Path):
        import io

        boxes = io.BytesIO()
        np.save(boxes, np.array([[5, 5, 15, 15, 2]], np.float32))
        shard = tar(tmp_path / "b.tar", [("n", {"jpg": png((1, 2, 3), (40, 30)), "box.npy": boxes.getvalue()})])
        found = tiles(shard, 'decode(jpg)|decode(box.npy)|carry(jpg, "box.npy:xyxy")|flip(jpg, p=1)')

        assert [(25, 5, 10, 10)] == [shape.numbers for shape in found[-1].over.shapes]

    def test_other_runners_draw_theirs(self, shard: Path):
        pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        found = tiles(shard, "decode(jpg)|carry(jpg, json)|resize(jpg, (60, 80))", columns=["tf.data"])

        assert [(10, 10, 20, 20)] == [shape.numbers for shape in found[-1].over.shapes]


class TestTold:
    def test_views_get_shapes_masks_and_colours(self, shard: Path):
        run = Compare(shard, "decode(jpg)|carry(jpg, json)|flip(jpg, p=1)", records=1)
        assert run.wait(30)
        message, buffers = run.poll()
        last = message["strips"][0]["tiles"][-1]

        assert [["box", [25, 5, 10, 10], "cat", None]] == last["over"]["shapes"]
        assert {"cat"} == set(message["colours"])
        assert b"\x89PNG" == bytes(buffers[message["originals"][0]["over"]["masks"][0]["buffer"]])[:4]

    def test_json_has_the_shapes(self, shard: Path):
        from tarviz.widgets.compare.text import plain

        run = Compare(shard, "decode(jpg)|carry(jpg, json)|flip(jpg, p=1)", records=1)
        assert run.wait(30)
        steps = plain(run.columns, run.records)[0]["steps"]

        assert [["box", 25, 5, 10, 10, "cat"]] == steps[-1]["shapes"]
        assert "seg.png stayed behind: carry(jpg, seg.png)" == steps[-1]["behind"]


class TestTune:
    def test_another_number_runs_the_chain_again(self, shard: Path):
        run = Compare(shard, {"a": "decode(jpg)|carry(jpg, json)|rotate(jpg, 0)", "b": "decode(jpg)"}, records=2)
        assert run.wait(30)
        other = run.columns[1].strips[0]
        answer = run.tune(0, 2, "angle", 180)
        assert run.wait(30)

        assert "decode(jpg)|carry(jpg, json)|rotate(jpg, 180.0)" == answer["chain"].replace("180)", "180.0)")
        assert [(25, 15, 10, 10)] == [shape.numbers for shape in run.columns[0].strips[1].tiles[-1].over.shapes]
        assert other is run.columns[1].strips[0]
        assert "rotate(jpg, 180" in run.spec

    def test_only_the_last_of_many_moves_is_run(self, shard: Path):
        run = Compare(shard, {"a": "decode(jpg)|rotate(jpg, 0)"}, records=2)
        for angle in range(1, 40):
            run.tune(0, 1, "angle", angle)
        assert run.wait(30)

        assert all("rotate(jpg, 39)" == strip.tiles[-1].op for strip in run.columns[0].strips)


def test_no_two_of_a_hundred_classes_have_one_colour():
    from tarviz.widgets.panes.overlays import Overlays

    overlays = Overlays()

    assert 100 == len({overlays.colour(name) for name in ["aeroplane", "cow", "sheep", "train", *(f"c{n}" for n in range(96))]})


@pytest.mark.parametrize(
    ("shape", "lies"),
    [
        ((2, 50, 3), True),
        ((50, 2, 1), True),
        ((50, 2), True),
        ((1, 50, 3), False),
        ((50, 1), False),
        ((50,), False),
        ((2, 2, 50, 3), False),
    ],
)
def test_a_line_of_numbers_is_no_picture_for_boxes_to_lie_over(shape: tuple[int, ...], lies: bool):
    over = Overlaid(Overlays("json.annotations"), Chain()).over({"jpg": np.zeros(shape, np.uint8), "json": BOX}, "jpg")

    assert lies is (over is not None)
    assert over is None or (shape[1], shape[0]) == (over.width, over.height)


@pytest.mark.parametrize(
    ("form", "rows", "expected"),
    [
        ("xyxy", [[5, 5, 15, 25, 2.5], [1, 2, 3, 5, 7]], [("box", (5, 5, 10, 20), "2.5"), ("box", (1, 2, 2, 3), "7")]),
        ("xywh", [[5, 5, 15, 25], [1, 2, np.nan, 5]], [("box", (5, 5, 15, 25), "")]),
        ("cxcywh", [[0.5, 0.5, 0.5, 0.2]], [("box", (10, 12, 20, 6), "")]),
        ("points", [[5, 6, 1], [7, 8, 0]], [("points", (5, 6, 2, 7, 8, 2), "")]),
        ("points", [[0.5, 0.5]], [("points", (20, 15, 2), "")]),
        ("points", np.zeros((0, 2)), []),
        ("xyxy", [5, 5, 15, 15], []),
    ],
)
def test_rows_of_an_array_are_boxes_or_points(form: str, rows: object, expected: list[tuple[object, ...]]):
    record = {"jpg": np.zeros((30, 40, 3), np.uint8), "a.npy": np.array(rows)}
    over = Overlaid(Overlays(), Chain.of(f"carry(jpg, 'a.npy:{form}')|flip(jpg)")).over(record, "jpg")

    shapes = over.shapes if over else ()
    assert expected == [(shape.kind, tuple(round(n, 6) for n in shape.numbers), shape.name) for shape in shapes]
    assert over is None or ((40, 30), ("a.npy",)) == ((over.width, over.height), over.fields)
