"""The site's own code: links that lead nowhere are found, docstrings become Markdown, the shell's reference comes from the parser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("nbconvert", reason="the site needs the extras lab and deck")

from docs import reference, site
from tarviz.model.errors import MissingPackageError


class TestDeadLinks:
    @pytest.fixture
    def pages(self, tmp_path: Path) -> Path:
        (tmp_path / "notebooks").mkdir()
        (tmp_path / "index.html").write_text(
            '<h1 id="top">a</h1><a href="notebooks/a.html#there">b</a><a href="https://host/x">c</a>', "utf-8"
        )
        (tmp_path / "notebooks" / "a.html").write_text(
            '<p id="there"></p><a href="../index.html#top">b</a><script>"href=nowhere"</script>', "utf-8"
        )
        return tmp_path

    def test_links_that_hold_are_no_complaint(self, pages: Path):
        assert [] == site.dead_links(pages)

    def test_a_file_and_a_place_that_are_not_there_are_found(self, pages: Path):
        (pages / "b.html").write_text('<a href="index.html#nowhere">x</a><img src="no.png">', "utf-8")

        assert ["b.html: no file at no.png", "b.html: no place at index.html#nowhere"] == sorted(site.dead_links(pages))


class TestOpening:
    def test_pictures_lead_to_the_notebooks_that_were_run(self):
        made = site.opening(
            [Path("10-browse.ipynb"), Path("12-captions-boxes-sound-text.ipynb"), Path("80-throughput.ipynb"), Path("00-tour.ipynb")]
        )

        assert 4 == made.count(".png)](notebooks/")
        assert "](notebooks/10-browse.ipynb)<br>[Browse" in made
        assert "15-ask" not in made

    def test_there_is_a_picture_and_a_notebook_for_each(self):
        for picture, name, _ in site.OPENING:
            assert (site.ROOT / "docs" / "screenshots" / f"{picture}.png").is_file()
            assert (site.ROOT / "notebooks" / f"{name}.md").is_file()

    def test_without_notebooks_there_is_none(self):
        assert "" == site.opening([])


class TestFilm:
    def test_it_moves_for_half_a_minute_and_is_small(self):
        path = site.ROOT / "docs" / "screenshots" / "film.webp"
        with Image.open(path) as film:
            times = []
            for at in range(film.n_frames):
                film.seek(at)
                film.load()  # a WebP tells how long a frame is shown once it is decoded
                times.append(film.info["duration"])

        assert path.stat().st_size <= 2_500_000
        assert 25_000 <= sum(times) <= 36_000
        assert len(times) > 40

    def test_who_wants_no_motion_gets_a_still_and_the_page_its_files(self, tmp_path: Path):
        readme = (site.ROOT / "README.md").read_text("utf-8")
        (picture,) = re.findall(r"<picture>.*?</picture>", readme, re.DOTALL)
        site.copy_pictures(picture, tmp_path)

        assert 'media="(prefers-reduced-motion: reduce)"' in picture
        assert len(re.findall(r'alt="([^"]+)"', picture)[0]) > 60
        assert {"browse-light-1280.png", "film.webp"} == {path.name for path in (tmp_path / "docs" / "screenshots").iterdir()}


class TestReference:
    def test_doctests_and_indented_blocks_become_code(self):
        def function() -> None:
            """First line.

            Below::

                tar -tf a.tar

            >>> 1 + 1
            2

            Last line.
            """

        made = reference.docstring(function)

        assert "Below:\n\n```text\ntar -tf a.tar" in made
        assert "```pycon\n>>> 1 + 1\n2\n```" in made
        assert made.endswith("Last line.")

    def test_a_signature_shows_no_address_in_memory(self):
        marker = object()

        def function(self: object, a: int, b: object = marker) -> str: ...

        assert "(a: int, b: object = …) -> str" in reference.signature(function).replace('"', "")

    @pytest.mark.parametrize("name", reference.pages())
    def test_every_page_has_text(self, name: str):
        if name == "pipeline":
            pytest.importorskip("tensorflow", reason="the page shows the runner tf")
            pytest.importorskip("torch", reason="the page shows the runner torch")
        assert len(reference.markdown(reference.pages()[name])) > 500

    def test_a_module_whose_package_is_not_there_is_left_out_with_a_word(self, monkeypatch: pytest.MonkeyPatch):
        def none(name: str) -> None:
            raise MissingPackageError.of("torch", "Pipeline.torch()", "torch")

        monkeypatch.setattr(reference.importlib, "import_module", none)

        assert "Left out: E_MISSING" in reference.markdown(reference.Page("A", (("tarviz.runners.torch", "run"),)))

    def test_every_verb_is_in_the_reference_of_the_shell(self):
        text = reference.shell()

        for name in ("ls", "proc", "deck", "browse"):
            assert f"### `tarviz {name}`" in text
        assert "| `-o, --output URL` |" in text
