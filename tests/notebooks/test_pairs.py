"""Notebooks and decks are pairs in step, and what they say can be found."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jupytext", reason="pairs need the extra lab")

from docs import pairs

SOURCES = pairs.sources()
EXPECTED = {
    "notebooks": "00-tour 10-browse 12-captions-boxes-sound-text 15-ask-your-shards 20-op-chains 30-tfdata-and-keras 40-tfrecord "
    "50-pytorch 60-over-http 65-object-stores 70-tar-tools 80-throughput 85-from-other-tools 90-many-machines",
    "slides": "input-pipelines tarviz-in-ten-minutes what-a-tar-shard-is",
}
each = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
decks = pytest.mark.parametrize("path", [path for path in SOURCES if path.parent.name == "slides"], ids=lambda path: path.stem)


def test_all_notebooks_and_decks_are_there():
    found = {folder: " ".join(path.stem for path in SOURCES if path.parent.name == folder) for folder in EXPECTED}

    assert found == EXPECTED


@each
def test_from_markdown_to_notebook_and_back_it_is_the_same_to_the_byte(path: Path):
    text = path.read_bytes().decode("utf-8")

    assert text == pairs.markdown(pairs.parse(text))


@each
def test_from_notebook_to_markdown_and_back_it_is_the_same_to_the_byte(path: Path):
    beside = path.with_suffix(".ipynb").read_text("utf-8")
    before = pairs.stored(path)

    assert beside == pairs.partner(pairs.parse(pairs.markdown(before)), before, name=path.stem)


@each
def test_the_pair_is_in_step_and_has_no_outputs_but_those_that_are_kept(path: Path):
    assert [] == list(pairs.complaints(path))


@each
def test_it_is_small(path: Path):
    assert path.with_suffix(".ipynb").stat().st_size < 400_000


@each
def test_names_no_file_of_one_machine(path: Path):
    assert [] == re.findall(r"/(?:home|root|tmp|work|Users)/", path.read_text("utf-8"))


def headlines(notebook: Any) -> list[str]:
    """The first line of each slide, of the first cell that shows."""
    found: list[str] = []
    begins = False
    for cell in notebook.cells:
        kind = cell.metadata.get("slideshow", {}).get("slide_type", "-")
        begins = begins or kind in ("slide", "subslide")
        if begins and kind not in ("skip", "notes"):
            found.append(cell.source.partition("\n")[0] if cell.cell_type == "markdown" else f"code: {cell.source[:60]}")
            begins = False
    return found


class TestHeadlines:
    @decks
    def test_every_slide_begins_with_a_headline(self, path: Path):
        found = headlines(pairs.parse(path.read_text("utf-8")))

        assert len(found) > 5
        assert [] == [line for line in found if not re.match(r"##? \S", line)]

    @decks
    def test_no_headline_comes_twice_or_fills_two_lines(self, path: Path):
        found = headlines(pairs.parse(path.read_text("utf-8")))

        assert [] == [line for line in found if found.count(line) > 1 or len(line) > 64]

    def test_a_slide_of_code_alone_is_noticed(self):
        text = '# A\n\n```python slideshow={"slide_type": "slide"}\n1 + 1\n```\n'

        assert ["code: 1 + 1"] == headlines(pairs.parse(text))


class TestOutOfStep:
    @pytest.fixture
    def pair(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(pairs, "ROOT", tmp_path)
        path = tmp_path / "notebooks" / "a.md"
        path.parent.mkdir()
        path.write_text('# A\n\n```python\n1 + 1\n```\n\n```python tags=["keep-output"]\n2 + 2\n```\n', "utf-8")
        pairs.write(path)

        assert [] == list(pairs.complaints(path))
        return path

    def test_a_change_of_the_markdown_is_noticed(self, pair: Path):
        pair.write_text(pair.read_text("utf-8").replace("1 + 1", "1 + 2"), "utf-8")

        assert ["notebooks/a.md: the .ipynb is out of step: make pairs"] == list(pairs.complaints(pair))

    def test_a_change_of_the_notebook_is_noticed(self, pair: Path):
        beside = pair.with_suffix(".ipynb")
        beside.write_text(beside.read_text("utf-8").replace("1 + 1", "1 + 2"), "utf-8")

        assert ["notebooks/a.md: the .ipynb is out of step: make pairs"] == list(pairs.complaints(pair))

    def test_an_output_is_noticed_and_taken_out_unless_it_is_kept(self, pair: Path):
        beside = pair.with_suffix(".ipynb")
        content = json.loads(beside.read_text("utf-8"))
        for cell in content["cells"][1:]:
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["4"]}]
        beside.write_text(json.dumps(content), "utf-8")

        assert ["notebooks/a.md: cell 1 of the .ipynb has outputs: make pairs"] == list(pairs.complaints(pair))

        pairs.write(pair)

        cells = json.loads(beside.read_text("utf-8"))["cells"][1:]
        assert [[], ["4"]] == [cell["outputs"] and cell["outputs"][0]["text"] for cell in cells]
        assert [] == list(pairs.complaints(pair))

    def test_a_missing_notebook_is_noticed(self, pair: Path):
        pair.with_suffix(".ipynb").unlink()

        assert ["notebooks/a.md: the .ipynb is missing: make pairs"] == list(pairs.complaints(pair))
