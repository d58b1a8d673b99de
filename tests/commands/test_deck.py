"""Slides of notebooks: what is executed, what stands in the page, what is refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import tarviz
from tarviz import cli
from tarviz.model.errors import DataError, MissingPackageError, NotFoundError, StoreError, UsageError

pytest.importorskip("jupytext", reason="reading a notebook needs the extra lab")
pytest.importorskip("nbconvert", reason="a deck needs the extra deck")
pytest.importorskip("latex2mathml", reason="a deck needs the extra deck")

from tarviz.commands import deck as deck_verb
from tarviz.commands.deck import page as deck_page
from tarviz.commands.deck import run
from tarviz.commands.deck.math import mathml
from tarviz.commands.deck.widgets import STATE, VIEW, DeckWidgets


def notebook(*cells: tuple[str, str, str]) -> str:
    """Markdown of a notebook; a cell is (kind of slide, `md` or `py`, source)."""
    parts = ["---\njupyter:\n  kernelspec:\n    display_name: Python 3\n    language: python\n    name: python3\n---\n"]
    for slide, kind, source in cells:
        if kind == "md":
            parts.append(f'<!-- #region {{"slideshow": {{"slide_type": "{slide}"}}}} -->\n{source}\n<!-- #endregion -->\n')
        else:
            parts.append(f'```python slideshow={{"slide_type": "{slide}"}}\n{source}\n```\n')
    return "\n".join(parts)


TALK = notebook(
    ("skip", "py", "secret = 'setting up'\nprint(secret)"),
    ("slide", "md", "# First\n\nwith $\\frac{a}{b}$ and `code $1`"),
    ("fragment", "md", "later"),
    ("notes", "md", "say **this**"),
    ("slide", "py", "print('6 × 7 =', 6 * 7)"),
    ("subslide", "md", "# below"),
    ("slide", "md", "# Last"),
)


def write(folder: Path, text: str, name: str = "talk.md") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


@pytest.fixture(scope="session")
def talk(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the talk above, executed once."""
    folder = tmp_path_factory.mktemp("deck")
    made = tarviz.deck(write(folder, TALK))

    assert str(folder / "talk.html") == made.path
    assert 4 == made.slides
    assert 0 == made.exit_code
    return (folder / "talk.html").read_text("utf-8")


def sections(page: str) -> list[str]:
    return re.findall(r'<div class="page">(.*?)</div></section>', page, re.DOTALL)


class TestPage:
    @pytest.mark.matrix
    def test_holds_the_outputs_of_the_cells(self, talk: str):
        assert "6 × 7 = 42" in talk

    def test_shows_slides_in_their_order_and_subslides_in_a_stack(self, talk: str):
        assert ["First", "", "below", "Last"] == [("".join(re.findall(r"<h1>(.*?)</h1>", each))) for each in sections(talk)]
        assert 1 == len(re.findall(r"<section>\s*<section>", talk))

    def test_leaves_out_what_is_skipped(self, talk: str):
        assert "setting up" not in talk

    def test_keeps_fragments_and_speaker_notes(self, talk: str):
        first = sections(talk)[0]

        assert re.search(r'<div class="fragment">.*later', first, re.DOTALL)
        assert re.search(r'<aside class="notes">.*<strong>this</strong>.*</aside>', first, re.DOTALL)

    def test_draws_mathematics_as_mathml_but_not_in_code(self, talk: str):
        assert "<mfrac>" in talk
        assert "code $1" in talk

    def test_is_one_file_that_asks_for_nothing(self, talk: str):
        outside = re.sub(r"<script>.*?</script>|<style>.*?</style>", "", talk, flags=re.DOTALL)

        assert [] == re.findall(r"<link[^>]*>|<script[^>]*src|(?:src|href)=.?https?:", outside)
        assert "Content-Security-Policy" in talk
        assert deck_page.POLICY.partition(";")[0] in talk
        assert "https:" not in deck_page.POLICY

    def test_carries_reveal_and_its_notes(self, talk: str):
        assert "RevealNotes" in talk
        assert len(talk) < 700_000

    def test_is_called_by_its_first_heading(self, talk: str):
        assert "<title>First</title>" in talk

    def test_contains_no_name_of_this_machine(self, talk: str):
        assert str(Path(tarviz.__file__).parent) not in talk


class TestRun:
    @pytest.mark.matrix
    def test_a_cell_that_fails_says_which_and_why(self, tmp_path: Path):
        path = write(tmp_path, notebook(("slide", "md", "# a"), ("slide", "py", "x = 1\n1 / 0")))

        with pytest.raises(DataError, match=r"Cell 2 failed \(x = 1\): ZeroDivisionError: division by zero"):
            tarviz.deck(path)
        assert not (tmp_path / "talk.html").exists()

    @pytest.mark.matrix
    def test_a_line_of_the_shell_that_fails_ends_it_too(self, tmp_path: Path):
        (tmp_path / "talk.md").write_text(notebook(("slide", "md", "# Talk"), ("-", "py", "!true\n!exit 3\n!true")), "utf-8")

        with pytest.raises(DataError, match=r"Cell 2 failed \(!true\).*!exit 3 ended with 3"):
            tarviz.deck(tmp_path / "talk.md")

    def test_stored_outputs_are_shown_without_a_kernel(self, tmp_path: Path):
        path = write(tmp_path, TALK)
        executed = run.read(path)
        for cell in executed.cells:
            if cell.cell_type == "code":
                cell.outputs = [{"output_type": "stream", "name": "stdout", "text": "stored"}]
        (tmp_path / "talk.ipynb").write_text(json.dumps(executed), "utf-8")

        tarviz.deck(path, execute="never")

        assert "<pre>stored</pre>" in (tmp_path / "talk.html").read_text("utf-8")

    @pytest.mark.matrix
    def test_cells_run_in_the_folder_of_the_notebook_with_this_python(self, tmp_path: Path):
        import sys

        path = write(tmp_path, notebook(("slide", "py", "import os, sys\nprint(os.getcwd(), sys.prefix)")))

        tarviz.deck(path)

        assert f"{tmp_path.resolve()} {sys.prefix}" in (tmp_path / "talk.html").read_text("utf-8")

    def test_a_missing_file_is_named(self, tmp_path: Path):
        with pytest.raises(NotFoundError, match="no notebook"):
            tarviz.deck(tmp_path / "none.md")

    def test_what_is_no_notebook_is_refused(self, tmp_path: Path):
        with pytest.raises(DataError, match="is not a notebook"):
            tarviz.deck(write(tmp_path, "{", "talk.ipynb"))

    def test_execute_has_two_words(self, tmp_path: Path):
        with pytest.raises(UsageError, match="neither"):
            tarviz.deck(write(tmp_path, TALK), execute="sometimes")  # type: ignore[arg-type]

    def test_a_notebook_without_slides_says_so(self, tmp_path: Path):
        with pytest.raises(DataError, match="All cells are skipped"):
            tarviz.deck(write(tmp_path, notebook(("skip", "md", "a"))), execute="never")


class TestShell:
    def test_writes_where_it_is_told_and_says_so(self, tmp_path: Path):
        path = write(tmp_path, TALK)

        done = CliRunner().invoke(cli.group, ["deck", str(path), "-o", str(tmp_path / "out.html"), "--execute", "never", "--json"])

        assert 0 == done.exit_code
        assert 4 == json.loads(done.stdout)["slides"]
        assert (tmp_path / "out.html").stat().st_size == json.loads(done.stdout)["size"]

    def test_an_address_elsewhere_is_warned_of(self, tmp_path: Path):
        path = write(tmp_path, notebook(("slide", "md", "![x](https://example.org/a.png) [link](https://example.org)")))

        made = tarviz.deck(path, execute="never")

        assert 1 == made.exit_code
        assert ["W_EXTERNAL"] == [fault.code for fault in made.warnings]
        assert "https://example.org/a.png" in str(made)


class TestPictures:
    def test_a_local_picture_is_put_into_the_page(self, tmp_path: Path):
        (tmp_path / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", "utf-8")

        tarviz.deck(write(tmp_path, notebook(("slide", "md", "![drawing](a.svg)"))), execute="never")

        assert 'src="data:image/svg+xml;base64' in (tmp_path / "talk.html").read_text("utf-8")

    def test_without_reveal_the_package_to_install_is_named(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(deck_page, "find_spec", lambda name: None)

        with pytest.raises(MissingPackageError, match="sphinx-revealjs"):
            deck_page.reveal_files()

    def test_without_a_browser_a_pdf_says_what_it_needs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("PATH", str(tmp_path))

        with pytest.raises(UsageError, match="Chromium"):
            tarviz.deck(write(tmp_path, TALK), execute="never", pdf=True)


class TestPrinting:
    """With a program in Chromium's place: what it is told, what it is shown, what is said when it fails."""

    @pytest.fixture
    def printed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], bytes]:
        """What a deck is printed to by a program that is these lines of shell; `$made` and `$page` are the files it is told of."""
        names = "for word; do case $word in --print-to-pdf=*) made=${word#*=};; file:*) page=${word#file://};; esac; done"
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

        def run(lines: str) -> bytes:
            program = tmp_path / "chromium"
            program.write_text(f"#!/bin/sh\n{names}\n{lines}\n")
            program.chmod(0o700)
            deck_verb.print_pdf("<p>ä", tmp_path / "deck.pdf")
            return (tmp_path / "deck.pdf").read_bytes()

        return run

    def test_the_page_is_what_it_opens_and_its_file_is_what_is_kept(self, printed: Callable[[str], bytes]):
        assert b"<p>\xc3\xa4" == printed('cat "${page%\\?print-pdf}" > "$made"')

    @pytest.mark.parametrize("user", [0, 1000])
    def test_it_is_told_to_fetch_nothing_and_root_to_do_without_a_sandbox(
        self, printed: Callable[[str], bytes], user: int, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr("os.geteuid", lambda: user)
        words = [re.sub(rb"(?<==)/.*|(?<=file://).*/", b"", word) for word in printed('printf "%s\\n" "$@" > "$made"').splitlines()]
        first = [b"--headless", b"--disable-gpu", b"--no-first-run", b"--disable-background-networking", b"--user-data-dir="]
        last = [b"--no-pdf-header-footer", b"--virtual-time-budget=20000", b"--print-to-pdf=", b"file://deck.html?print-pdf"]

        assert [*first, *([b"--no-sandbox"] * (user == 0)), *last] == words

    @pytest.mark.parametrize(
        ("lines", "said"),
        [
            ('echo one >&2; echo no display >&2; echo x > "$made"; exit 3', "did not print: no display$"),
            ("exit 3", "did not print: 3$"),
            ("true", "did not print: 0$"),
        ],
    )
    def test_its_last_words_are_told(self, printed: Callable[[str], bytes], lines: str, said: str):
        with pytest.raises(StoreError, match=said) as caught:
            printed(lines)
        assert "E_WRITE" == caught.value.code

    def test_it_is_not_waited_for_without_end(self, printed: Callable[[str], bytes], monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(deck_verb, "_PRINTING", 0.2)

        with pytest.raises(StoreError, match=r"did not print within 0\.2 s"):
            printed("exec sleep 600")


def test_an_output_is_drawn_and_said_in_words(tmp_path: Path):
    """What a picture shows is what its object says of itself, unless that says nothing."""
    from bs4 import BeautifulSoup
    from nbformat import v4

    says = ['three "bars"\nmore', "", "<Figure size 640x480 with 1 Axes>", "<x.Thing at 0x7f00>", "y" * 300]
    pictures = [v4.new_output("display_data", {"image/png": "AAAA", **({"text/plain": text} if text else {})}) for text in says]
    drawing = v4.new_output("display_data", {"image/svg+xml": "<?xml version='1.0'?>\n<!DOCTYPE svg>\n<svg id='drawn'></svg>"})
    bare = v4.new_output("display_data", {"image/svg+xml": "<svg id='bare'></svg>"})
    cells = [
        v4.new_code_cell("w", outputs=[*pictures, drawing, bare]),
        v4.new_code_cell("w", outputs=pictures, metadata={"tags": ["remove-output"]}),
    ]
    made = deck_page.page(v4.new_notebook(cells=cells), name="talk", folder=tmp_path)

    page = BeautifulSoup(made.html, "html.parser")

    assert ['three "bars"', "figure", "figure", "figure", "y" * 200] == [picture["alt"] for picture in page.find_all("img")]
    assert ["drawn", "bare"] == [drawing["id"] for drawing in page.find_all("svg")]
    assert "DOCTYPE svg" not in made.html


def test_markdown_is_as_written_its_mathematics_apart_where_it_stands_apart(tmp_path: Path):
    from nbformat import v4

    mathematics = "in $x$ line\n\n$$y$$\n\n\\begin{matrix}z\\end{matrix}"
    text = f'{mathematics}\n\n<b class="raw">as it is</b> <IMG SRC="a.svg">\n\n<div id="box">\n\n*in it*\n\n</div>'
    (tmp_path / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", "utf-8")
    made = deck_page.page(v4.new_notebook(cells=[v4.new_markdown_cell(text)]), name="talk", folder=tmp_path)

    assert ["inline", "block", "block"] == re.findall(r'<math [^>]*display="(\w+)"', made.html)
    assert re.search(r'<b class="raw">as it is</b> <img [^>]*src="data:image/svg\+xml;base64,', made.html)
    assert re.search(r'<div id="box">\s*<p><em>in it</em></p>\s*</div>', made.html)


def test_a_deck_is_called_as_it_says_else_as_it_begins_else_as_its_file():
    from nbformat import v4

    cells = [v4.new_code_cell("# no heading"), v4.new_markdown_cell("## below\n\n#  First "), v4.new_markdown_cell("# Second")]

    assert "Given" == deck_page.title(v4.new_notebook(cells=cells, metadata={"title": "Given"}), "talk")
    assert "First" == deck_page.title(v4.new_notebook(cells=cells), "talk")
    assert "talk" == deck_page.title(v4.new_notebook(cells=cells[:1]), "talk")


class TestMath:
    def test_tex_becomes_mathml(self):
        for tex in [r"\frac{a}{b}", r"\sum_i x_i", r"c \gg 15", r"2^{32}", r"\mathrm{crc}(x)"]:
            assert mathml(tex).startswith("<math")
            assert 'display="block"' in mathml(tex, block=True)

    def test_broken_tex_is_refused_with_its_text(self):
        for tex, why in [(r"\frac", "NoAvailable"), (r"\frac{a", "braces"), (r"\nosuch{a}", r"\\nosuch"), ("a^", "Missing")]:
            with pytest.raises(DataError, match=f"not mathematics I can read .*{why}.*: "):
                mathml(tex)


class TestWidgets:
    @staticmethod
    def executed(**state: Any) -> Any:
        from nbformat import v4

        output = v4.new_output("display_data", {VIEW: {"model_id": "m1"}, "text/plain": "3 records\nmore", "image/png": "AAAA"})
        cell = v4.new_code_cell("w", outputs=[output])
        states = {
            "m1": {"model_name": "AnyModel", "state": state, "buffers": [{"encoding": "base64", "path": ["_pictures", 0], "data": "AQ=="}]}
        }
        return v4.new_notebook(cells=[cell], metadata={"widgets": {STATE: {"state": states}}})

    def test_a_widget_keeps_its_state_and_its_place(self):
        saved, made = (
            DeckWidgets(),
            self.executed(_esm="export default {}", _css=".a{}", _first={"a": "</script>"}, _pictures=[None], _dom_classes=[]),
        )

        saved.take(made)

        model = saved.models["m1"]
        assert {"_first": {"a": "</script>"}, "_pictures": [None]} == model["state"]
        assert "export default {}" == saved.modules[model["module"]]
        assert ".a{}" == saved.styles[model["style"]]
        assert [{"path": ["_pictures", 0], "data": "AQ=="}] == model["buffers"]
        assert {"text/html"} == set(made.cells[0].outputs[0].data)
        assert 'aria-label="3 records"' in made.cells[0].outputs[0].data["text/html"]
        assert "widgets" not in made.metadata

    def test_the_script_cannot_be_left_early(self):
        saved = DeckWidgets()
        saved.take(self.executed(_esm="</script>"))

        assert "<" not in saved.script()
        assert "</script>" == next(iter(json.loads(saved.script())["modules"].values()))

    def test_a_widget_of_another_kind_gives_way_to_its_picture(self):
        saved, made = DeckWidgets(), self.executed(value=3)

        saved.take(made)

        assert {} == saved.models
        assert {"text/plain", "image/png"} == set(made.cells[0].outputs[0].data)

    def test_what_a_reader_will_ask_is_answered_beforehand(self, photos: Path):
        pytest.importorskip("anywidget", reason="widgets need the extra lab")
        view = tarviz.browse(str(photos / "photos-{0000..0001}.tar"))
        try:
            used = view.to_static(400_000)

            asked = [name for name, *_ in view._answers]
            assert "poll" == asked[0]
            assert 200_000 < used <= 400_000
            assert 24 == len(view._first["rows"]["rows"])
            assert all(reply["key"] for name, _, reply, _ in view._answers if name == "record")
        finally:
            view.close()


@pytest.mark.parametrize("address", ["https://host.example/x.mp4", "HTTP://host.example/x.mp4", "//host.example/x.mp4"])
@pytest.mark.matrix
def test_what_a_page_would_fetch_from_elsewhere_is_told(tmp_path: Path, address: str):
    (tmp_path / "talk.md").write_text(notebook(("slide", "md", f'# Talk\n\n<video src="{address}"></video>')), "utf-8")

    made = tarviz.deck(tmp_path / "talk.md")

    assert [("W_EXTERNAL", True)] == [(each.code, address in each.message) for each in made.warnings]


def test_every_cell_knows_which_stack_slide_and_fragment_begins_and_ends_there():
    kinds = ["skip", "slide", "subslide", "fragment", "notes", "slide", "-", "skip", "slide"]
    cells = [SimpleNamespace(metadata={"slideshow": {"slide_type": kind}}) for kind in kinds]

    assert 4 == deck_page.mark(cells)
    begin, end = ("subslide_start", "slide_start"), ("fragment_end", "subslide_end", "slide_end")
    assert [
        {},
        dict(zip((*begin, *end), (True, True, False, True, False), strict=True)),
        {**dict(zip(begin, (True, False), strict=True)), "fragment_end": False},
        {"fragment_start": True},
        dict(zip(end, (True, True, True), strict=True)),
        dict(zip(begin, (True, False), strict=True)),
        dict(zip(end, (False, True, False), strict=True)),
        {},
        dict(zip((*begin, *end), (True, False, False, True, False), strict=True)),
    ] == [{name: value for name, value in cell.metadata.items() if name not in ("slideshow", "slide_type")} for cell in cells]
    assert kinds == [cell.metadata["slide_type"] for cell in cells]


def test_the_first_cell_that_shows_begins_a_slide():
    cells = [SimpleNamespace(metadata={"slideshow": {"slide_type": kind}}) for kind in ("notes", "-", "fragment")]

    assert 1 == deck_page.mark(cells)
    assert ["skip", "slide", "fragment"] == [cell.metadata["slide_type"] for cell in cells]
