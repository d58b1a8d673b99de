"""Every kind of data set on the stand-alone page: drawn, without an error, by keyboard, and fit for a screen reader."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import tarviz
from tarviz import samples
from tarviz.samples.kinds import KINDS

pytestmark = pytest.mark.browser

VISIBLE = "document.querySelector('.tvz-pane h2')"


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return samples.zoo(tmp_path_factory.mktemp("zoo"), count=12)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", [*KINDS, "cut"])
def test_a_kind_is_drawn_with_its_record(kind, scheme, zoo, open_page):
    if kind not in zoo:
        pytest.skip("PyAV is not installed (extra `media`)")
    page = open_page(zoo[kind], scheme=scheme)
    page.until(VISIBLE)

    assert page.tab.locator(".tvz-tile").count() >= 4
    assert page.tab.locator(".tvz-body").inner_text() or page.tab.locator(".tvz-body canvas, .tvz-body video, .tvz-body audio").count()
    assert not page.errors
    assert not page.elsewhere


class TestOverlays:
    def test_boxes_lie_over_tiles_and_picture_and_can_be_switched(self, zoo, open_page):
        page = open_page(zoo["coco"])
        page.until("document.querySelectorAll('.tvz-tile .tvz-over').length > 3 && document.querySelector('.tvz-layers')")
        inked = "((c) => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v))"
        drawn = f"{inked}(document.querySelector('.tvz-over'))"

        assert page.tab.evaluate(drawn)
        layer = page.tab.get_by_role("region", name="record").get_by_role("button", name="boxes")
        layer.click()
        assert "false" == layer.get_attribute("aria-pressed")
        page.tab.locator(".tvz-grid").focus()
        page.key("o")
        page.until(f"!{drawn}")

    def test_the_value_under_the_pointer_is_the_number_not_its_colour(self, zoo, open_page):
        page = open_page(zoo["medical"], image="ct.png")
        page.until("document.querySelector('.tvz-frame')?.view?.picture")
        page.settled()
        box = page.tab.locator(".tvz-frame canvas").first.bounding_box()
        page.tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.until("/= \\d{3,4}$/.test(document.querySelector('.tvz-image-foot').textContent)")


class TestArrays:
    def test_the_pane_switches_cloud_lines_picture_and_numbers(self, zoo, open_page):
        page = open_page(zoo["points"])
        shown = page.tab.get_by_label("shown as").first
        for way, seen in (("lines", "figcaption span"), ("picture", ".tvz-image-foot"), ("numbers", ".tvz-table"), ("cloud", "canvas")):
            shown.select_option(way)
            page.until(f"document.querySelector('.tvz-body {seen}') && document.querySelector('.tvz-controls select').value === '{way}'")

        assert not page.errors


class TestTable:
    def test_t_shows_rows_and_columns_that_sort_both_ways(self, zoo, open_page):
        page = open_page(zoo["captions"])
        page.key("t")
        page.until(
            "document.querySelectorAll('.tvz-trow .tvz-cell').length > 20"
            " && !document.querySelector('.tvz-trow [role=rowheader]').textContent.includes('…')"
        )
        found = page.tab.get_by_role("columnheader").all_inner_texts()
        assert ["key", "json.caption", "txt"] == [name.strip() for name in found[1:4]]

        similarity = page.tab.locator(".tvz-th").get_by_role("button", name="json.similarity")
        for order, ascending in (("ascending", True), ("descending", False)):
            similarity.click()
            page.until(f"document.querySelector('[aria-sort={order}]') && document.querySelectorAll('.tvz-trow').length > 8")
            column = page.tab.evaluate(
                "[...document.querySelectorAll('.tvz-th button')].findIndex((b) => b.textContent.startsWith('json.similarity'))"
            )
            read = f"[...document.querySelectorAll('.tvz-trow')].map((r) => Number(r.children[{column} + 1].textContent)).filter(Boolean)"
            page.until(f"({read}).length > 8")
            values = page.tab.evaluate(read)
            assert sorted(values, reverse=not ascending) == values

    def test_the_cursor_moves_by_keys_and_the_pane_follows(self, zoo, open_page):
        page = open_page(zoo["text"])
        page.key("t", "ArrowDown", "ArrowDown")
        page.until("document.querySelector('.tvz-pane h2')?.title === 'doc0000002'")


def test_a_filter_that_finds_nothing_says_what_there_is(zoo, open_page):
    page = open_page(zoo["text"])
    page.tab.locator(".tvz-filter").fill("json.nosuch == 3")
    page.until("document.querySelector('.tvz-names')?.textContent.includes('json.meta.lang')")


class TestKept:
    @pytest.mark.parametrize("kind", ["tar", "csv", "txt"])
    def test_the_marked_are_saved(self, kind, zoo, open_page, tmp_path: Path):
        page = open_page(zoo["captions"])
        page.until(VISIBLE)
        page.key("Space", "ArrowRight", "ArrowRight", "Space")
        page.tab.locator("select.tvz-save").select_option(kind)
        page.until("document.querySelector('.tvz-save-words').textContent.startsWith('2 marked')")
        with page.tab.expect_download() as waiting:
            page.tab.get_by_role("button", name="download", exact=True).click()
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)

        assert f"captions-marked.{kind}" == path.name
        wanted = ["000000000", "000000002"]
        match kind:
            case "tar":
                kept = list(tarviz.records(str(path)))
                assert wanted == [record.key for record in kept]
                assert bytes(next(tarviz.records(zoo["captions"]))["jpg"]) == bytes(kept[0]["jpg"])
            case "csv":
                rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
                assert wanted == [row["key"] for row in rows]
                assert rows[0]["json.caption"]
            case _:
                assert wanted == path.read_text("utf-8").split()


class TestKeyboard:
    def test_the_grid_has_the_keys_at_once(self, zoo, open_page):
        page = open_page(zoo["coco"])
        page.until(VISIBLE)

        assert page.tab.evaluate("document.activeElement.classList.contains('tvz-grid')")
        page.key("ArrowRight")
        page.until(f"{VISIBLE}.title.endsWith('000000000001')")

    def test_the_list_of_keys_is_closed_by_the_key_that_opened_it(self, zoo, open_page):
        page = open_page(zoo["coco"])
        page.key("?")
        assert 1 == page.tab.locator(".tvz-sheet").count()
        page.key("?")
        assert 0 == page.tab.locator(".tvz-sheet").count()

    def test_the_rail_is_one_stop_whose_parts_are_walked_by_arrows(self, zoo, open_page):
        page = open_page(zoo["missing"])
        page.until("document.querySelectorAll('.tvz-rail .tvz-bar').length > 5")

        assert 1 == page.tab.evaluate(
            "[...document.querySelectorAll('.tvz-rail button, .tvz-rail [tabindex]')].filter((e) => e.tabIndex === 0).length"
        )
        page.tab.locator(".tvz-rail .tvz-bar").first.focus()
        page.key("ArrowDown")
        assert page.tab.evaluate("document.activeElement === document.querySelectorAll('.tvz-rail .tvz-bar')[1]")


@pytest.mark.parametrize(
    ("kind", "keys"), [("coco", ""), ("captions", "t"), ("stereo", "Enter"), ("chat", "?"), ("wav", ""), ("damaged", "")]
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_bars_a_reader(kind, keys, scheme, zoo, open_page, axe):
    page = open_page(zoo[kind], scheme=scheme)
    page.until(VISIBLE)
    page.still()
    if keys:
        page.key(keys)
        page.still()

    assert [] == page.barred(axe)


def test_a_page_that_cannot_be_drawn_says_why(open_page, zoo, chromium, monkeypatch):
    from tarviz.model.errors import UsageError
    from tarviz.widgets.browse.controller import Browser
    from tarviz.widgets.host.page import ControllerPage

    class Failing(Browser):
        def first(self, session=""):
            raise UsageError("json.klass cannot be read.", hint="Write json.label.")

    with ControllerPage(Failing(zoo["coco"], cache=False)).start() as page:
        tab = chromium.new_page()
        tab.goto(page.url)
        tab.wait_for_selector(".tvz-page-error")

        assert "json.klass cannot be read. Write json.label." in tab.locator(".tvz-page-error").inner_text()
        tab.close()
