"""`tarviz compare`: text, JSON, a page, exit codes. What is compared, and how often ops run: tests/widgets/test_compare.py."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tarviz import cli
from tests.widgets.conftest import png, tar


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    return tar(
        tmp_path / "a.tar", [(f"p/n{number}", {"png": png((number * 20, 40, 90), (40, 30)), "cls": b"%d" % number}) for number in range(6)]
    )


class TestVerb:
    def test_text_data_and_exit_code(self, shard: Path, capsys: pytest.CaptureFixture[str]):
        assert 0 == cli.main(["compare", str(shard), "-n", "1", "-c", "a = decode(png)|flip(png)"])
        assert "every op ran once per record" in capsys.readouterr().out
        assert 1 == cli.main(["compare", str(shard), "-n", "1", "-c", "decode(jpg)", "--json"])

        data = json.loads(capsys.readouterr().out)
        assert "E_SCHEMA" == data["results"][0]["steps"][0]["error"]["code"]

    def test_a_page_that_needs_nothing_else(self, shard: Path, tmp_path: Path):
        page = tmp_path / "c.html"
        assert 0 == cli.main(["compare", str(shard), "-k", "p/n2", "-c", "x = decode(png)", "--html", str(page)])

        text = page.read_text("utf-8")
        assert "data:image/png;base64," in text
        assert "<script" not in text
        assert "http" not in text.replace("http-equiv", "")

    def test_boxes_are_drawn_into_the_page(self, tmp_path: Path):
        page, boxes = tmp_path / "c.html", json.dumps({"boxes": [[10, 10, 50, 40]], "labels": ["cat"]}).encode()
        shard = tar(tmp_path / "b.tar", [("k", {"png": png((9, 9, 9), (64, 64)), "json": boxes})])
        assert 0 == cli.main(["compare", str(shard), "-n", "1", "-c", "carry(png, json)|decode(png)|flip(png)", "--html", str(page)])
        shown = [base64.b64decode(found) for found in re.findall(r'src="data:image/\w+;base64,([^"]+)"', page.read_text("utf-8"))]

        assert shown
        assert all(np.ptp(np.asarray(Image.open(io.BytesIO(one)).convert("RGB"))) > 90 for one in shown)

    def test_a_chain_that_cannot_be_read_is_one_line(self, shard: Path, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["compare", str(shard), "-c", "a = decod(png)"])
        assert 1 == capsys.readouterr().err.count("\n")

    def test_records_are_chosen_by_key_and_number(self, shard: Path, capsys: pytest.CaptureFixture[str]):
        assert 0 == cli.main(["compare", str(shard), "-k", "p/n4", "-k", "#1", "-c", "a = decode(png)"])
        out = capsys.readouterr().out

        assert "p/n4" in out
        assert "p/n1" in out
        assert "p/n0" not in out

    def test_several_chains_have_their_names_and_their_text(self, shard: Path, capsys: pytest.CaptureFixture[str]):
        assert 0 == cli.main(["compare", str(shard), "-n", "1", "-c", "a = decode(png)", "-c", "b = decode(png)|flip(png)", "--json"])

        assert {"a": "decode(png)", "b": "decode(png)|flip(png)"} == json.loads(capsys.readouterr().out)["chains"]

    def test_a_key_that_is_not_there_is_one_line(self, shard: Path, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["compare", str(shard), "-k", "nobody", "-c", "a = decode(png)"])
        assert 1 == capsys.readouterr().err.count("\n")

    def test_nothing_a_record_says_becomes_markup(self, tmp_path: Path):
        page = tmp_path / "c.html"
        shard = tar(tmp_path / "b.tar", [("<img src=x onerror=alert(1)>", {"png": png(), "txt": b"<script>alert(1)</script>"})])
        cli.main(["compare", str(shard), "-n", "1", "-c", "a = drop(png)", "--html", str(page)])

        text = page.read_text("utf-8")
        assert "<img src=x" not in text
        assert "<script" not in text


def test_in_a_notebook_it_is_what_the_page_shows(shard: Path):
    result = cli.invoke(["compare", str(shard), "-n", "1", "-c", "a = decode(png)|flip(png)", "-c", "decode(jpg)"])
    html = result._repr_mimebundle_()["text/html"]

    assert str(result) == result._repr_mimebundle_()["text/plain"]
    assert "<h2>p/n0</h2>" in html
    assert '<div class="sheet" style="--tile: 148px">' in html
    assert "<th>chain</th><th>runner</th><th>ops</th><th class=right>seed</th><th class=right>a record</th><th></th>" in html
    assert (
        "<td>a</td><td>eager</td><td>decode(png)|flip(png)</td><td class=right>0</td>" in html or "<td>decode(png)|flip(png)</td>" in html
    )
    captions = {found[1]: found[2] for found in re.finditer(r"<figcaption><b>([^<]*)</b>(.*?)</figcaption>", html)}
    assert ["original", "decode(png)", "flip(png)"] == [*captions][:3]
    assert [False, True, True] == [" ms" in captions[title] for title in ("original", "decode(png)", "flip(png)")]
    assert captions["original"].startswith("png: ")
    assert '<span class="bad">' in html  # the chain that has no picture to decode
    assert 1 == result.exit_code
    assert {"a": "decode(png)|flip(png)"}.items() <= result.to_dict()["chains"].items()
    assert [str(shard)] == result.to_dict()["urls"]


@pytest.mark.parametrize(("words", "count"), [([], 2), (["--html", "o.html"], 4), (["-n", "3"], 3)])
def test_so_many_records_are_compared(shard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], count: int):
    monkeypatch.chdir(tmp_path)
    result = cli.invoke(["compare", str(shard), "-c", "a = decode(png)", *words])

    assert count == len(result.run.records)
