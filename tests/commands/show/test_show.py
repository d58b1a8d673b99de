"""The first records as text, JSON and a contact sheet that cannot be made to do anything."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz import cli
from tarviz.cli.html_page import CSP
from tarviz.commands.show import record_text, show
from tarviz.formats import example, tfrecord
from tarviz.model.errors import UsageError
from tests.conftest import DATA, corpus
from tests.viewers.payloads import sound
from tests.widgets.conftest import png, tar

TARS = DATA / "corpora" / "generated"


class TestTFRecords:
    def written(self, path: Path, payloads: list[bytes]) -> str:
        path.write_bytes(b"".join(tfrecord.frame(payloads).buffers()))
        return str(path)

    def test_features_are_shown_as_fields(self, tmp_path: Path):
        records = [{"image/height": at, "image/filename": b"a.jpg", "box": [0.5, 1.0]} for at in range(3)]
        path = self.written(tmp_path / "x.tfrecord", [example.encode(each) for each in records])
        text = str(show(path, count=2))

        assert re.search(r"record 1  x-00000001\n  box.npy +136 B  float32\[2\]\n", text)
        assert re.search(r"image.height.cls +1 B  1$", text)
        assert "features.json" not in text
        assert "record 2" not in text

    def test_what_is_no_example_is_told_behind_the_records(self, tmp_path: Path):
        result = show(self.written(tmp_path / "x.tfrecord", [example.encode({"a": 1}), b"\x12\0"]))

        assert [0] == [record.index for record in result.records]
        assert ["E_BAD_EXAMPLE"] == [fault.code for fault in result.faults]
        assert "SequenceExample" in result.faults[0].message

    def test_an_example_without_features_is_a_record(self, tmp_path: Path):
        assert 1 == len(show(self.written(tmp_path / "x.tfrecord", [b""])).records)

    @pytest.mark.parametrize("choice", [{"where": "a.cls = 1"}, {"keys": ("k",)}, {"like": "k"}])
    def test_a_choice_is_for_shards(self, tmp_path: Path, choice: Any):
        path = self.written(tmp_path / "x.tfrecord", [example.encode({"a": 1})])
        with pytest.raises(UsageError, match="Make a shard of it first"):
            show(path, **choice)


class TestText:
    def test_a_line_fits_the_terminal(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        path = str(tar(tmp_path / "a.tar", [("k", {"txt": b"words " * 50, "long.name.cls": b"7"})]))
        for columns in (60, 80, 130):
            monkeypatch.setenv("COLUMNS", str(columns))
            line = str(show(path)).splitlines()[1]

            assert columns - 2 <= len(line) <= columns
            assert line.endswith("…")

    def test_a_csv_is_its_text(self, tmp_path: Path):
        assert "  csv  8 B  a,b 1,2" in str(show(str(tar(tmp_path / "a.tar", [("k", {"csv": b"a,b\n1,2\n"})]))))

    def test_names_fields_sizes_and_small_values(self, photos: Path):
        text = str(show(str(photos), count=1))

        assert "record 0  photo/n00000000" in text
        assert re.search(r"jpg +\S+ kB  (500×375|375×500) RGB JPEG", text)
        assert re.search(r"cls +1 B  [01]", text)
        assert re.search(r"txt +\d+ B  A", text)

    def test_of_a_record_without_the_fields_asked_for_its_place_is_left(self, photos: Path):
        (record,) = show(photos, count=1).records

        assert record_text(record).splitlines()[:1] == [record_text(record, frozenset(("none",)))]

    def test_counts_over_shards(self, photos: Path):
        result = show(str(photos), count=20)

        assert 20 == len(result.records)
        assert 2 == len({record.shard for record in result.records})

    def test_reads_no_more_than_it_shows(self, digits: Path, monkeypatch: pytest.MonkeyPatch):
        result = show([str(digits / "train-0000.tar"), str(digits / "train-0001.tar")], count=3)

        assert {str(digits / "train-0000.tar")} == {record.shard for record in result.records}

    def test_damage_is_told_behind_the_records(self):
        result = show(str(TARS / "B14-trunc-in-data.tar"))

        assert (1, 2) == (len(result.records), result.exit_code)
        assert "E_TRUNCATED" in str(result).splitlines()[-1]

    def test_what_may_be_incomplete_is_marked(self):
        assert "may be incomplete" in str(show(str(TARS / "B13-trunc-inside-record.tar")))

    def test_an_empty_shard_is_said_to_be_empty(self):
        assert str(show(str(TARS / "B03-all-zeros-10240.tar"))).startswith("no records")


class TestJson:
    def test_holds_what_the_text_holds(self, photos: Path, capsys: pytest.CaptureFixture[str]):
        assert 0 == cli.main(["show", "--json", "-n", "2", str(photos)])

        records = json.loads(capsys.readouterr().out)["records"]
        assert ["photo/n00000000", "photo/n00000001"] == [each["key"] for each in records]
        assert ["jpg", "cls", "json", "txt"] == list(records[0]["fields"])


class TestTheSheet:
    @pytest.fixture
    def page(self, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
        assert 0 == cli.main(["show", "--html", str(tmp_path / "sheet.html"), str(photos)])
        assert f"24 records in {tmp_path / 'sheet.html'}\n" == capsys.readouterr().out
        return (tmp_path / "sheet.html").read_text("utf-8")

    def test_has_a_picture_a_record(self, page: str):
        assert 24 == page.count('src="data:image/jpeg;base64,')

    def test_boxes_waves_and_pictures_side_by_side_are_drawn(self, tmp_path: Path):
        """What a browser's tile shows: lines of the boxes' colour, a waveform, both pictures of a pair."""
        boxes = json.dumps({"boxes": [[10, 10, 50, 40]], "labels": ["cat"]}).encode()
        plain, pair, waves = (
            {"png": png((9, 9, 9), (64, 64))},
            {f"{eye}.png": png((200, 9, 9), (64, 30)) for eye in ("left", "right")},
            sound(),
        )
        path = tar(
            tmp_path / "a.tar", [("k0", plain), ("k1", {**plain, "json": boxes}), ("k2", pair), ("k3", {"wav": waves, "txt": b"hello"})]
        )
        shown = [base64.b64decode(found) for found in re.findall(r'src="data:image/\w+;base64,([^"]+)"', show(str(path)).to_html())]
        bare, boxed, both, wave = (np.asarray(Image.open(io.BytesIO(one)).convert("RGB")) for one in shown)

        assert np.ptp(bare) < 9
        assert np.ptp(boxed) > 90
        assert both.shape[0] == pytest.approx(both.shape[1] * 30 * 2 / 64, abs=4)
        assert np.ptp(wave) > 90

    def test_loads_nothing_and_runs_nothing(self, page: str):
        assert f'content="{CSP}"' in page
        assert "<script" not in page
        assert [] == re.findall(r'(?:src|href)="(?!data:)', page)

    @pytest.mark.parametrize("name", ["S12-shell-hostile-keys.tar", "S13-xss.tar", "D00-hostile-payloads.tar"])
    def test_markup_in_records_is_text(self, name: str):
        page = show(str(TARS / name), count=60).to_html()

        tags = set(re.findall(r"<([a-z0-9]+)", page))
        assert tags <= {
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "main",
            "h1",
            "p",
            "div",
            "figure",
            "figcaption",
            "b",
            "br",
            "span",
            "img",
        }
        assert [] == re.findall(r"<[^>]*\son\w+=", page)

    def test_one_bad_tile_and_the_rest_goes_on(self):
        page = show(str(TARS / "D00-hostile-payloads.tar"), count=60).to_html()

        assert 37 == page.count("<figure>")
        assert "E_IMAGE_TOO_LARGE" in page
        assert "data:image/png" in page

    def test_a_shard_without_a_record_is_named(self, tmp_path: Path):
        page = show(str(tar(tmp_path / "a.tar", [("folder/", {"jpg": b"x"})]))).to_html()

        assert "W_NO_KEY" in page
        assert "<h1>a.tar</h1>" in page

    @pytest.mark.parametrize(("path", "entry"), corpus("generated"))
    def test_the_whole_corpus_can_be_shown(self, path: Path, entry: dict):
        result = show(str(path), count=60)

        assert "<!doctype html>" in result.to_html()
        assert str(result)
        json.dumps(result.to_dict())


class TestTiles:
    @pytest.mark.parametrize(("size", "small"), [((74, 74), True), ((75, 20), False), ((20, 75), False), ((10, 74), True)])
    def test_a_few_pixels_are_shown_as_squares(self, tmp_path: Path, size: tuple[int, int], small: bool):
        page = show(str(tar(tmp_path / "a.tar", [("k", {"png": png((9, 99, 9), size)})]))).to_html()

        assert small == ('<img class="small" alt="k"' in page)

    def test_a_tile_is_twice_as_large_as_it_is_shown(self, tmp_path: Path):
        page = show(str(tar(tmp_path / "a.tar", [("k", {"png": png((9, 99, 9), (1000, 500))})]))).to_html()

        assert '<div class="sheet" style="--tile: 148px">' in page
        (data,) = re.findall(r'src="data:image/\w+;base64,([^"]+)"', page)
        assert (296, 148) == Image.open(io.BytesIO(base64.b64decode(data))).size

    def test_fields_that_no_picture_shows_are_lines_below_it(self, tmp_path: Path):
        fields = {"png": png(), "txt": b"t" * 99, **{f"{name}.cls": b"%d" % at for at, name in enumerate("abcdefg")}}
        html = show(str(tar(tmp_path / "a.tar", [("k", fields)])))._repr_mimebundle_()["text/html"]

        lines = re.search(r"<figcaption><b>k</b>(.*?)</figcaption>", html)[1].split("<br>")  # type: ignore[index]
        assert [f"txt: {'t' * 55}…", *(f"{name}.cls: {at}" for at, name in enumerate("abcde")), ""] == lines

    def test_only_the_fields_asked_for_are_shown(self, tmp_path: Path):
        path = str(tar(tmp_path / "a.tar", [("k", {"png": png(), "txt": b"hello", "cls": b"1"})]))
        for fields in ("txt cls", "TXT,cls", "txt;cls"):
            shown = show(path, fields=fields)

            assert "<img" not in shown.to_html()
            assert ["txt", "cls"] == list(shown.to_dict()["records"][0]["fields"])

    def test_what_may_be_incomplete_is_said_below_it(self):
        assert "may be incomplete<br>" in show(str(TARS / "B13-trunc-inside-record.tar")).to_html()


class TestWhole:
    @pytest.fixture
    def shards(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "60")
        for name in "abcde":
            tar(tmp_path / f"{name}.tar", [(f"{name}{at}", {"txt": b"hello\nyou", "b.cls": b"7"}) for at in range(2)])
        return [f"{name}.tar" for name in "abcde"]

    def test_text_and_data(self, shards: list[str]):
        found = show(shards, count=3)

        assert [
            "a.tar  record 0  a0",
            "  txt    9 B  hello you",
            "  b.cls  1 B  7",
            "a.tar  record 1  a1",
            "  txt    9 B  hello you",
            "  b.cls  1 B  7",
            "b.tar  record 0  b0",
            "  txt    9 B  hello you",
            "  b.cls  1 B  7",
        ] == str(found).splitlines()
        assert {
            "records": [
                {
                    "shard": f"{name}.tar",
                    "index": at,
                    "key": f"{name}{at}",
                    "pending": False,
                    "fields": {"txt": {"size": 9, "shows": "hello you"}, "b.cls": {"size": 1, "shows": "7"}},
                }
                for name, at in (("a", 0), ("a", 1), ("b", 0))
            ],
            "faults": [],
            "warnings": [],
        } == found.to_dict()

    def test_the_head_of_a_page_names_four_shards(self, shards: list[str]):
        heads = [show(some, count=99).to_html() for some in (shards[:1], shards[:4], shards)]

        assert '<h1>a.tar</h1><p class="soft">2 records of a.tar</p>' in heads[0]
        assert '<h1>4 shards</h1><p class="soft">8 records of a.tar, b.tar, c.tar, d.tar</p>' in heads[1]
        assert '<h1>5 shards</h1><p class="soft">10 records of a.tar, b.tar, c.tar, d.tar, …</p>' in heads[2]

    def test_a_page_and_a_sheet_are_written_together(self, shards: list[str], capsys: pytest.CaptureFixture[str]):
        assert 0 == cli.main(["show", "--html", "o.html", "--png", "o.png", *shards])

        assert "10 records in o.html and o.png\n" == capsys.readouterr().out
        with Image.open("o.png") as sheet:
            assert "PNG" == sheet.format

    @pytest.mark.parametrize("words", [["show", "--html"], ["show", "--png"], ["compare", "--html"]])
    def test_a_shard_in_the_place_of_the_page_stays_as_it_is(self, shards: list[str], words: list[str], capsys: pytest.CaptureFixture[str]):
        before = Path(shards[0]).read_bytes()

        assert 2 == cli.main([*words, *shards])
        assert "has the name of a shard: name the page" in capsys.readouterr().err
        assert before == Path(shards[0]).read_bytes()

    @pytest.mark.parametrize(("words", "count"), [([], 5), (["-n", "7"], 7), (["--png", "o.png"], 10)])
    def test_so_many_are_shown(self, shards: list[str], capsys: pytest.CaptureFixture[str], words: list[str], count: int):
        assert 0 == cli.main(["show", "--json", *words, *shards])

        assert count == len(json.loads(capsys.readouterr().out)["records"])


def test_the_first_record_of_a_key_and_those_nearest_to_it(tmp_path: Path):
    pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
    for name, turns in (("a", (0.0, 3.0, 1.0)), ("b", (0.1, 2.0, 0.5))):
        tar(tmp_path / f"{name}.tar", [(f"{name}{at}" if at else "k", {"npy": vector(turn)}) for at, turn in enumerate(turns)])
    found = show([str(tmp_path / "a.tar"), str(tmp_path / "b.tar")], like="k", count=3)

    assert (3, "k", 0) == (len(found.records), found.records[0].key, found.exit_code)
    assert ["a.tar", "b2"] == [found.records[0].shard.rpartition("/")[2], found.records[-1].key]


def vector(turn: float) -> bytes:
    out = io.BytesIO()
    np.save(out, np.array([np.cos(turn), np.sin(turn)], np.float32))
    return out.getvalue()
