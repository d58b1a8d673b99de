"""Labels found by themselves, what lies over pictures, records as cards."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest
from PIL import Image

import tarviz
from tarviz import samples
from tarviz.model.errors import UsageError
from tarviz.samples import write_shard
from tarviz.widgets.browse import python_calls
from tarviz.widgets.browse.controller import Browser
from tests.conftest import wait_until
from tests.widgets.conftest import tar

LABELS = {
    "captions": "json.caption", "coco": "", "yolo": "", "voc": "", "detections": "", "wav": "txt", "text": "", "chat": "",
    "embeddings": "cls", "medical": "cls", "views": "", "robotics": "meta.json.instruction", "keys": "json.label", "damaged": "json.label",
}  # fmt: skip


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    kinds = [*LABELS, "instances", "segmentation", "masks", "stereo"]
    return samples.zoo(tmp_path_factory.mktemp("zoo"), kinds=kinds, count=6)


@pytest.fixture
def opened(zoo):
    browsers = []

    def make(kind: str, **wish):
        browser = Browser(zoo.get(kind, kind), cache=False, **wish)
        browsers.append(browser)
        assert browser.wait(6, 60)
        return browser

    yield make
    for browser in browsers:
        browser.close()


def rows_of(browser):
    return browser.first()[0]["rows"]["rows"]


class TestLabels:
    @pytest.mark.parametrize("kind", LABELS)
    def test_a_class_or_a_caption_is_found_by_itself(self, opened, kind):
        message, _ = opened(kind).first()

        assert LABELS[kind] == message["rows"]["label"]

    def test_what_was_asked_for_stays(self, opened):
        assert {"240"} == {row["label"] for row in rows_of(opened("captions", label="json.width"))}
        assert {""} == {row["label"] for row in rows_of(opened("captions", label=""))}


class TestOverlays:
    @pytest.mark.parametrize(
        ("kind", "kinds"),
        [
            ("coco", {"box", "polygon", "points"}),
            ("yolo", {"box"}),
            ("voc", {"box"}),
            ("detections", {"box"}),
            ("instances", {"box", "mask"}),
            ("segmentation", set()),
        ],
    )
    def test_tiles_carry_what_lies_over_them(self, opened, kind, kinds):
        rows = rows_of(opened(kind))

        assert all(row["tile"]["over"]["width"] == 240 for row in rows)
        assert kinds == {shape[0] for row in rows for shape in row["tile"]["over"]["shapes"]}
        assert (kind == "segmentation") == any(row["tile"]["over"]["masks"] for row in rows)

    def test_boxes_are_those_of_the_scene_with_names_and_scores(self, opened):
        browser = opened("detections")
        row = rows_of(browser)[0]["id"]
        message, _ = browser.session.records.record(row)
        written = json.loads(browser.session.records.part(row, "json")[1][0])

        shapes = message["over"]["shapes"]
        assert [[x, y, x + w, y + h] for _, (x, y, w, h), _, _ in shapes] == written["boxes"]
        assert written["labels"] == [name for _, _, name, _ in shapes]
        assert written["scores"] == [score for _, _, _, score in shapes]
        assert set(written["labels"]) <= set(message["colours"])

    def test_masks_are_clear_where_nothing_is_and_have_a_legend(self, opened):
        browser = opened("segmentation")
        message, buffers = browser.session.records.record(rows_of(browser)[0]["id"])
        mask = message["over"]["masks"][0]
        picture = Image.open(io.BytesIO(buffers[mask["buffer"]]))

        assert ("RGBA", (240, 180)) == (picture.mode, picture.size)
        assert 0 == picture.getextrema()[3][0]
        assert {name for _, name, _ in mask["legend"]} <= {"disc", "square", "triangle", "star"}

    def test_they_can_be_said_by_hand_and_switched_off(self, opened, tmp_path: Path):
        picture = io.BytesIO()
        Image.new("RGB", (50, 40)).save(picture, "JPEG")
        odd = json.dumps({"x": {"there": [[5, 6, 25, 26]]}}).encode()
        write_shard(tmp_path / "odd.tar", [(f"{n}", {"jpg": picture.getvalue(), "json": odd}) for n in range(6)])
        path = str(tmp_path / "odd.tar")

        assert not any("over" in row["tile"] for row in rows_of(opened(path)))
        shapes = rows_of(opened(path, overlay="json.x.there:xyxy"))[0]["tile"]["over"]["shapes"]
        assert [["box", [5.0, 6.0, 20.0, 20.0], "", None]] == shapes
        assert not any("over" in row["tile"] for row in rows_of(opened("coco", overlay="none")))
        with pytest.raises(UsageError, match="no form 'xyz'"):
            Browser(path, overlay="json.x:xyz")

    def test_the_call_that_shows_it_names_the_overlay(self, opened):
        assert "overlay='json.annotations'" in opened("coco", overlay="json.annotations").spec

    def test_a_class_has_the_same_colour_at_every_start(self, opened):
        found = [opened(kind).first()[0]["rows"]["colours"] for kind in ("coco", "coco", "voc")]

        assert found[0] == found[1] != {}
        assert set(found[0].values()) == set(found[2].values())

    def test_a_saved_sheet_has_them_drawn_in(self, opened):
        assert opened("coco").picture() != opened("coco", overlay="none").picture()


class TestCards:
    def beside(self, browser):
        message, _ = browser.session.records.record(rows_of(browser)[0]["id"])
        return message["ext"], [(item["part"], item["ext"]) for item in message["card"]["items"]], message["card"]["named"]

    def test_a_picture_has_its_caption_and_data_beside_it(self, opened):
        assert ("jpg", [("text", "txt"), ("data", "json")], []) == self.beside(opened("captions"))

    def test_left_right_and_depth_are_pictures_side_by_side(self, opened):
        main, beside, _ = self.beside(opened("stereo"))

        assert "left.jpg" == main
        assert [("picture", "right.jpg"), ("picture", "depth.png"), ("picture", "disp.npy")] == beside

    def test_many_fields_are_named_instead_of_shown(self, opened):
        _, beside, named = self.beside(opened("robotics"))

        assert 6 == sum(part == "array" for part, _ in beside)
        assert {"force5.npy", "force6.npy"} <= set(named)

    def test_a_field_asked_for_stands_alone(self, opened):
        browser = opened("captions")
        message, _ = browser.session.records.record(rows_of(browser)[0]["id"], ext="txt")

        assert "txt" == message["ext"]
        assert "card" not in message

    def test_a_tile_of_several_pictures_is_one_picture(self, opened):
        browser = opened("views")
        first, buffers = browser.first()
        tile = first["rows"]["rows"][0]["tile"]

        assert "front.jpg left.jpg rear.jpg right.jpg" == tile["ext"]
        assert max(Image.open(io.BytesIO(buffers[tile["buffer"]])).size) <= 160
        assert "left.jpg" == opened("views", image="left.jpg").first()[0]["rows"]["rows"][0]["tile"]["ext"]


class TestTable:
    def test_columns_are_texts_names_in_json_and_sizes(self, opened):
        assert ["json.caption", "txt", "json.url"] == opened("captions").session.records.columns()["columns"][:3]
        assert "size(jpg)" in opened("captions").session.records.columns()["columns"]
        assert ["json.text", "json.id", "json.meta.source", "json.meta.lang", "json.meta.tokens"] == opened(
            "text"
        ).session.records.columns()["columns"]

    def test_columns_are_told_where_nothing_fits(self, opened):
        browser = opened("text")
        browser.session.search(where="json.nosuch == 3")
        wait_until(lambda: browser.query.done)

        assert "json.text" in browser.session.records.columns()["columns"]

    def test_cells_are_values_of_their_kind(self, opened):
        browser = opened("text")
        row = browser.session.records.cells(0, 1, 2, ["json.id", "json.meta.lang", "json.nothing", "size(json)"])["rows"][0]

        assert "doc0000001" == row["key"]
        assert [1, "en", None] == row["cells"][:3]
        assert isinstance(row["cells"][3], int)

    def test_odd_names_are_written_so_that_they_can_be_read(self, opened, tmp_path: Path):
        odd = json.dumps({"a b": {"class": 3, "x-y": 'q"'}, "1": 2}).encode()
        write_shard(tmp_path / "odd.tar", [(f"{n}", {"my-meta.json": odd}) for n in range(6)])
        browser = opened(str(tmp_path / "odd.tar"))
        columns = browser.session.records.columns()["columns"]

        assert [3, 'q"', 2] == browser.session.records.cells(0, 0, 1, columns)["rows"][0]["cells"]

    def test_any_expression_sorts_both_ways_and_what_lacks_it_stays_behind(self, opened):
        browser = opened("captions")
        for descending in (False, True):
            query = browser.session.search(sort="label", label="json.similarity", descending=descending)["query"]
            wait_until(lambda: browser.query.done)
            values = [row["cells"][0] for row in browser.session.records.cells(query, 0, 6, ["json.similarity"])["rows"]]
            assert sorted(values, reverse=descending) == values


class TestKept:
    @pytest.mark.parametrize("kind", ["tar", "csv", "txt"])
    def test_what_shows_is_written_where_nothing_is_marked(self, opened, kind, tmp_path: Path):
        browser = opened("captions")
        path = tmp_path / f"out.{kind}"

        assert 6 == browser.write(path)
        assert path.stat().st_size > 6

    def test_the_marked_are_written_alone(self, opened, tmp_path: Path):
        browser = opened("captions")
        browser.session.mark([rows_of(browser)[4]["id"]])

        assert 1 == browser.write(tmp_path / "out.txt")
        assert "000000004\n" == (tmp_path / "out.txt").read_text()

    def test_an_ending_that_says_nothing_is_refused(self, opened, tmp_path: Path):
        with pytest.raises(UsageError, match=r"End it in \.tar, \.csv, \.parquet, \.txt"):
            opened("captions").write(tmp_path / "out.xyz")

    def test_the_comparison_names_the_picture_that_is_there_and_how_many_were_left_out(self, opened):
        browser = opened("detections")
        browser.session.mark_shown(browser.query.number)

        assert "decode(png)" in browser.session.call(marked=True)["python"]
        assert "the first 12 of 18 marked" in python_calls.compare(["a.tar"], "jpg", ["'key'"] * 12, 18)

    def test_the_comparison_is_of_the_marked_where_keys_come_twice(self, tmp_path):
        shards = [tar(tmp_path / f"{name}.tar", [("k", {"txt": name.encode()})]) for name in "ab"]
        with contextlib.closing(Browser(shards, cache=False)) as browser:
            assert browser.wait(2, 60)
            browser.session.mark(browser.shards.rows.ids(0, 2))
            call = browser.session.call(marked=True)["python"]

        compared = eval(call, {"tarviz": tarviz})
        assert ["a", "b"] == [bytes(values["txt"]).decode() for values in compared.controller.records]
        compared.close()
