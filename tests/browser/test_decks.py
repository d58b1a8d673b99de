"""Decks in Chromium with the network off: nothing is asked for, nothing fails, widgets live without a kernel, every slide is whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tarviz
from tests.browser.conftest import chromium_path
from tests.commands.test_deck import notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]
pytest.importorskip("nbconvert", reason="a deck needs the extra deck")
pytest.importorskip("playwright", reason="playwright is in the extra `test`")

from docs import look, pairs  # noqa: E402 (first what may not be installed)

ROOT = Path(__file__).parents[2]
WIDGET = "document.querySelector('[data-tarviz-drawn]').shadowRoot"
SLIDES = sorted((ROOT / "slides").glob("*.md"))

BROWSE = notebook(
    ("skip", "py", "import tarviz\ntarviz.samples.photos('data', count=40, shards=2)"),
    ("slide", "md", "# A talk"),
    ("fragment", "md", "and more"),
    ("notes", "md", "what to say here"),
    ("slide", "py", "tarviz.browse('data/')"),
    ("slide", "md", "## The end\n\n" + "\n".join(f"- line {number}" for number in range(24))),
)


@pytest.fixture(scope="module")
def deck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small deck with a browser of shards in it, printed as well."""
    if chromium_path() is None:
        pytest.skip("chromium is not installed")
    path = tmp_path_factory.mktemp("deck") / "talk.md"
    path.write_text(BROWSE, "utf-8")

    made = tarviz.deck(path, pdf=True)

    assert (3, 1, 0) == (made.slides, made.widgets, made.exit_code)
    return path.with_suffix(".html")


@pytest.fixture
def tab(chromium: Any, deck: Path) -> Iterator[Any]:
    """The deck at its slide with the widget, and the errors it met."""
    errors: list[str] = []
    with look.browser(chromium) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{deck.as_uri()}#/1")
        page.wait_for_selector("[data-tarviz-drawn] .tvz-tile img")
        page.wait_for_selector(".tvz-pane canvas")
        yield page

    assert [] == errors


def key(page: Any) -> str:
    return str(page.locator(".tvz-pane h2").inner_text())


class TestSmallDeck:
    def test_nothing_is_asked_for_and_nothing_is_wrong(self, chromium: Any, deck: Path):
        with look.browser(chromium) as context:
            seen = look.look(context, deck)

        assert [] == seen.wrong
        assert (3, 1) == (seen.slides, seen.widgets)

    def test_it_is_whole_in_the_dark_too(self, chromium: Any, deck: Path):
        with look.browser(chromium, dark=True) as context:
            assert [] == look.look(context, deck).wrong

    def test_what_does_not_fit_is_shrunk(self, chromium: Any, deck: Path):
        with look.browser(chromium) as context:
            assert ["slide 3"] == [each.partition(":")[0] for each in look.look(context, deck).shrunk]

    def test_it_is_printed_a_page_a_slide(self, deck: Path):
        data = deck.with_suffix(".pdf").read_bytes()

        assert data.startswith(b"%PDF")
        assert 3 == data.count(b"/Type /Page\n") + data.count(b"/Type /Page/") + data.count(b"/Type /Page ")


class TestWidget:
    def test_a_click_opens_the_record_in_full(self, tab: Any):
        tab.locator(".tvz-tile").nth(3).click()
        look.until(tab, f"{WIDGET}.querySelector('.tvz-pane h2').textContent.endsWith('3')")

        assert tab.locator(".tvz-pane canvas").count() >= 1
        assert "jpg" in tab.locator(".tvz-chips").inner_text()

    def test_the_tar_header_of_the_first_record_is_there(self, tab: Any):
        tab.get_by_role("tab", name="Tar header").click()

        look.until(tab, f"{WIDGET}.querySelector('.tvz-body').textContent.includes('photo/n00000000.jpg')")

    def test_what_needs_a_kernel_is_not_there_and_nothing_turns(self, tab: Any):
        look.until(tab, f"{WIDGET}.querySelector('.tvz-status').textContent.includes('a saved picture: 40 of 40 records')")

        assert not any(one.is_visible() for one in tab.locator(".tvz-tools, .tvz-pane-foot, .tvz-views, .tvz-head > button").all())
        assert tab.locator(".tvz-tile img").count() > 8
        assert 0 == tab.locator(".tvz-bad:visible").count()
        assert [] == tab.evaluate(
            f"[...{WIDGET}.querySelectorAll('.tvz-busy')].filter((one) => getComputedStyle(one, '::before').display !== 'none')"
        )

    def test_arrows_move_in_the_widget_and_turn_slides_outside(self, tab: Any):
        tab.locator(".tvz-tile").first.click()
        tab.locator(".tvz-grid").press("ArrowRight")
        look.until(tab, f"{WIDGET}.querySelector('.tvz-pane h2').textContent.endsWith('1')")

        assert 1 == tab.evaluate("Reveal.getIndices().h")

        tab.locator(".tvz-grid").evaluate("(grid) => grid.blur()")
        tab.keyboard.press("ArrowRight")

        assert 2 == tab.evaluate("Reveal.getIndices().h")


def test_a_slide_of_more_lines_than_half_size_holds_scrolls_above_its_number_and_is_printed_whole(chromium: Any, tmp_path: Path):
    path = tmp_path / "talk.md"
    path.write_text(notebook(("slide", "md", "# Words"), ("slide", "md", "\n".join(f"- line {number}" for number in range(34)))), "utf-8")
    tarviz.deck(path, pdf=True)
    with look.browser(chromium) as context:
        page = context.new_page()
        page.goto(f"{path.with_suffix('.html').as_uri()}#/1")
        look.until(page, "document.documentElement.dataset.tarvizDeck === 'ready'")
        for _ in range(3):
            page.keyboard.press("ArrowDown")
        last, number = (page.locator(one).last.bounding_box() for one in ("li", ".slide-number"))
        pdf = path.with_suffix(".pdf").read_bytes()

        assert last["y"] + last["height"] < number["y"]
        assert 2 == pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page/")


def test_the_speaker_sees_the_notes(chromium: Any, deck: Path):
    with look.browser(chromium) as context:
        page = context.new_page()
        page.goto(deck.as_uri())
        look.until(page, "document.documentElement.dataset.tarvizDeck === 'ready'")
        with context.expect_page() as opened:
            page.keyboard.press("s")
        look.until(opened.value, "document.body.innerText.includes('what to say here')")


@pytest.fixture(scope="module", params=SLIDES, ids=lambda path: path.stem)
def built(request: pytest.FixtureRequest) -> Path:
    """A deck of the repository, made anew where it is older than what it is made of."""
    source: Path = request.param
    target = ROOT / "build" / "slides" / f"{source.stem}.html"
    newest = max(path.stat().st_mtime for path in [source, *(ROOT / "tarviz").rglob("*.py"), *(ROOT / "tarviz").rglob("*.mjs")])
    if not target.is_file() or target.stat().st_mtime < newest:
        pairs.run(source, target.with_suffix(".ipynb"))  # in an empty folder
        tarviz.deck(target.with_suffix(".ipynb"), target, execute="never")
    return target


class TestDecksOfTheRepository:
    @pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
    def test_every_slide_is_whole_with_the_network_off(self, chromium: Any, built: Path, dark: bool):
        with look.browser(chromium, dark=dark) as context:
            seen = look.look(context, built)

        assert [] == seen.wrong
        assert seen.slides > 5
        assert [] == [each for each in seen.shrunk if float(each.rpartition(" ")[2]) < 0.75]

    def test_is_small(self, built: Path):
        assert built.stat().st_size <= 3_000_000
