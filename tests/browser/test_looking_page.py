"""Ways to look at records on the page: the table's pictures and columns, side by side, confidence, words that were found, widths."""

from __future__ import annotations

import pytest

from tarviz import samples
from tarviz.model.config import options
from tests.browser.test_zoo_page import VISIBLE
from tests.conftest import wait_until

pytestmark = pytest.mark.browser

WIDTH = "Math.round(document.querySelector('.tvz-{}')?.getBoundingClientRect().width)"


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    return samples.zoo(tmp_path_factory.mktemp("zoo"), kinds=["captions", "detections", "video"])


class TestSearch:
    def test_words_are_said_and_marked_where_they_stand(self, zoo, open_page):
        page = open_page(zoo["captions"])
        page.tab.locator(".tvz-filter").fill("red")
        page.key("Enter")
        page.until("document.querySelector('.tvz-status').textContent.includes('searched for the word red')")
        page.until("document.querySelectorAll('.tvz-tile mark').length > 5")

        assert {"red"} == {text.lower() for text in page.tab.locator(".tvz-tile mark").all_inner_texts()}

        page.tab.locator(".tvz-filter").fill("json.width > 10")
        page.key("Enter")
        page.until("!document.querySelector('.tvz-status').textContent.includes('searched for')")
        page.until("!document.querySelector('mark')")


class TestTable:
    def test_rows_have_pictures_and_the_key_stays_in_view(self, zoo, open_page):
        page = open_page(zoo["captions"], width=900)
        page.key("t")
        page.until("document.querySelectorAll('.tvz-thumb img').length > 8")
        page.tab.evaluate("document.querySelector('.tvz-tableview').scrollLeft = 400")
        page.settled()
        left = page.tab.evaluate(
            "document.querySelector('.tvz-trow [role=rowheader]').getBoundingClientRect().left"
            " - document.querySelector('.tvz-tableview').getBoundingClientRect().left"
        )

        assert 40 == round(left)

    def test_columns_are_ticked_on_and_off(self, zoo, open_page):
        page = open_page(zoo["captions"])
        page.key("t")
        page.until("document.querySelectorAll('.tvz-th').length > 4")
        page.tab.locator(".tvz-chooser summary").click()
        page.tab.get_by_role("checkbox", name="txt").uncheck()
        page.until("![...document.querySelectorAll('.tvz-th')].some((one) => one.textContent.trim() === 'txt')")
        page.tab.get_by_role("checkbox", name="txt").check()
        page.until("[...document.querySelectorAll('.tvz-th')].some((one) => one.textContent.trim() === 'txt')")


class TestBeside:
    def test_marked_records_stand_side_by_side_and_zoom_together(self, zoo, open_page):
        page = open_page(zoo["detections"])
        page.key("Space", "ArrowRight", "Space", "ArrowRight", "Space", "b")
        page.until("document.querySelectorAll('.tvz-column .tvz-frame').length === 3")
        page.until("[...document.querySelectorAll('.tvz-column .tvz-frame')].every((frame) => frame.view.picture)")
        page.tab.evaluate("document.querySelector('.tvz-column .tvz-frame').view.zoom(2)")
        scales = page.tab.evaluate("[...document.querySelectorAll('.tvz-column .tvz-frame')].map((frame) => frame.view.shown().scale)")

        assert 1 == len({round(scale, 3) for scale in scales})
        page.key("Escape")
        page.until("document.querySelector('.tvz-side-by-side').hidden")

    def test_one_record_has_nothing_beside_it(self, zoo, open_page):
        page = open_page(zoo["detections"])
        page.key("Space", "b")
        page.until("document.querySelector('.tvz-status').textContent.includes('Mark two to four')")


class TestObjects:
    def test_a_click_shows_records_with_one_class_alone(self, zoo, open_page):
        page = open_page(zoo["detections"])
        page.until(VISIBLE)
        page.tab.get_by_role("button", name="only records with red star").click()
        page.until("document.querySelector('.tvz-pick')?.textContent.includes('has red star')")
        page.until("/^#0 of ([1-9]|1\\d) /.test(document.querySelector('.tvz-status').textContent)")
        names = page.tab.evaluate("[...document.querySelectorAll('.tvz-pane .tvz-class')].map((chip) => chip.textContent)")

        assert any("red star" in name for name in names)

    def test_boxes_of_low_confidence_go(self, zoo, open_page):
        page = open_page(zoo["detections"])
        page.until("document.querySelector('.tvz-pane .tvz-frame')?.view?.picture && document.querySelector('.tvz-tile .tvz-over')")
        ink = (
            "(() => { const over = document.querySelector('.tvz-tile .tvz-over');"
            " const { data } = over.getContext('2d').getImageData(0, 0, over.width, over.height);"
            " return data.filter((value, at) => at % 4 === 3 && value).length })()"
        )
        before = page.tab.evaluate(ink)
        slider = page.tab.get_by_label("least confidence")
        slider.fill("0.88")
        page.until(f"{ink} < {before} && {ink} > 0")
        slider.fill("1")
        page.until(f"{ink} === 0")


class TestWidths:
    def test_rail_and_details_are_dragged_and_moved_by_arrows(self, zoo, open_page):
        page = open_page(zoo["captions"])
        page.tab.get_by_role("separator", name="width of the filters").focus()
        page.key("ArrowRight", "ArrowRight")
        page.until(f"{WIDTH.format('rail')} === 242")
        edge = page.tab.get_by_role("separator", name="width of the details").bounding_box()
        page.tab.mouse.move(edge["x"] + 4, 400)
        page.tab.mouse.down()
        page.tab.mouse.move(edge["x"] - 96, 400, steps=4)
        page.tab.mouse.up()
        page.until(f"{WIDTH.format('pane')} === 450")
        page.tab.reload()
        page.until(f"{WIDTH.format('rail')} === 242 && {WIDTH.format('pane')} === 450")


def test_film_on_a_tile_plays_while_the_pointer_rests_on_it(zoo, open_page):
    page = open_page(zoo["video"])
    page.until(VISIBLE)
    page.tab.locator(".tvz-tile").first.hover()
    page.until("document.querySelector('.tvz-tile video.tvz-playing')?.muted")
    page.tab.mouse.move(2, 2)
    page.until("!document.querySelector('video.tvz-playing')")


class TestBoxes:
    def test_a_tile_for_each_box_then_those_of_a_class(self, zoo, open_page):
        page = open_page(zoo["detections"])
        page.until("document.querySelectorAll('.tvz-classes .tvz-bar').length > 5")
        page.tab.get_by_role("button", name="boxes", exact=True).first.click()
        page.until("document.querySelector('.tvz-status').textContent.includes('81 boxes shown')")
        bar = page.tab.locator(".tvz-classes .tvz-bar").first
        name = bar.locator(".tvz-cut").inner_text()
        bar.click()
        page.until("/[1-9] boxes shown/.test(document.querySelector('.tvz-status').textContent)")
        page.until("document.querySelector('.tvz-pick') && document.querySelectorAll('.tvz-tile .tvz-label').length > 2")

        labels = page.tab.locator(".tvz-tile .tvz-label")
        wait_until(lambda: {name} == {text.rpartition(" ")[0] for text in labels.all_inner_texts()})  # tiles are drawn one after the other


class TestViews:
    def test_what_is_shown_is_kept_under_a_name_and_shown_again(self, zoo, open_page, tmp_path):
        with options(data_dir=tmp_path):
            page = open_page(zoo["captions"])
            page.tab.locator(".tvz-filter").fill("red")
            page.key("Enter")
            page.until("document.querySelector('.tvz-status').textContent.includes('searched for')")
            page.tab.locator(".tvz-views summary", has_text="views").click()
            page.tab.get_by_label("name of the view").fill("red ones")
            page.key("Enter")
            page.until("document.querySelector('.tvz-views-list li button')?.textContent === 'red ones'")
            page.key("Escape")
            page.tab.locator(".tvz-filter").fill("")
            page.key("Enter")
            page.until("!document.querySelector('.tvz-status').textContent.includes('searched for')")
            page.tab.locator(".tvz-views summary", has_text="views").click()
            page.tab.get_by_role("button", name="red ones", exact=True).click()
            page.until("document.querySelector('.tvz-status').textContent.includes('searched for the word red')")


class TestSql:
    def test_a_query_is_answered_and_a_key_leads_to_its_record(self, zoo, open_page):
        page = open_page(zoo["detections"])
        page.tab.get_by_role("button", name="SQL").click()
        page.tab.get_by_label("SQL over").fill("SELECT key, count(*) FROM objects GROUP BY key ORDER BY 2 DESC, 1")
        page.key("Control+Enter")
        page.until("document.querySelectorAll('.tvz-sql-answer tbody tr').length > 10")
        key = page.tab.locator(".tvz-sql-answer tbody .tvz-link").first.inner_text()
        page.tab.locator(".tvz-sql-answer tbody .tvz-link").first.click()
        page.until(f"document.querySelector('.tvz-pane h2')?.title === {key!r}")

    def test_a_query_without_end_is_stopped(self, zoo, open_page):
        page = open_page(zoo["detections"])
        page.tab.get_by_role("button", name="SQL").click()
        stop = page.tab.get_by_role("button", name="stop", exact=True)
        for end in (stop.click, lambda: page.key("Escape")):
            page.tab.get_by_label("SQL over").fill(
                "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range * b.range % 7 = 3"
            )
            page.key("Control+Enter")
            stop.wait_for()
            end()
            page.until("document.querySelector('.tvz-sql .tvz-bad')?.textContent.includes('stopped')")

    def test_what_cannot_be_read_is_said(self, zoo, open_page):
        page = open_page(zoo["detections"])
        page.tab.get_by_role("button", name="SQL").click()
        page.tab.get_by_label("SQL over").fill("SELECT nosuch FROM records")
        page.tab.get_by_role("button", name="run", exact=True).click()
        page.until("document.querySelector('.tvz-side-head .tvz-bad')?.textContent.includes('nosuch')")


class TestOpening:
    def test_a_page_on_nothing_opens_shards_and_lists_those_of_last_time(self, zoo, open_page, tmp_path):
        with options(data_dir=tmp_path):
            page = open_page([])
            page.tab.get_by_label("shards to open").fill(str(zoo["captions"]))
            page.key("Enter")
            page.until("document.querySelectorAll('.tvz-tile:not(.tvz-waiting)').length > 8 && location.pathname === '/1/'")
            page.tab.locator(".tvz-opening summary").click()
            page.until(f"document.querySelector('.tvz-opening li')?.textContent === {str(zoo['captions'])!r}")
            page.tab.get_by_label("shards to open").fill("/no/such.tar")
            page.key("Enter")
            page.until("document.querySelector('.tvz-status .tvz-bad')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barrier_in_what_was_added(scheme, zoo, open_page, axe):
    page = open_page(zoo["detections"], scheme=scheme)
    page.until("document.querySelectorAll('.tvz-classes .tvz-bar').length > 5")

    assert [] == page.barred(axe)
    page.key("t")
    page.until("document.querySelectorAll('.tvz-thumb img').length > 8")
    page.tab.locator(".tvz-chooser summary").click()
    assert [] == page.barred(axe)
    page.tab.get_by_role("button", name="SQL").click()
    page.tab.get_by_role("button", name="run", exact=True).click()
    page.until("document.querySelector('.tvz-sql-answer td')")
    assert [] == page.barred(axe)
