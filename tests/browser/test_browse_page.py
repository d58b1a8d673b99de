"""The shard browser on its stand-alone page, in a real browser: pictures, keys, filter, scrolling, hostile shards."""

from __future__ import annotations

import contextlib
import io
import json
import threading
import urllib.parse
import wave

import pytest

from tarviz.table.making import shard_columns
from tarviz.widgets.browse import thumbnails
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.host.rpc import rpc
from tests.browser import probes
from tests.conftest import DATA, wait_until
from tests.widgets.conftest import png, records, tar

pytestmark = pytest.mark.browser


@pytest.fixture
def three(tmp_path):
    return [tar(tmp_path / f"s-{number}.tar", records(number * 20, 20)) for number in range(3)]


def selected(page):
    return page.tab.evaluate("document.querySelector('.tvz-tile[aria-selected=true] .tvz-key')?.title")


class TestKeys:
    def test_arrows_and_letters_move_and_the_pane_follows(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-grid").focus()
        columns = page.tab.evaluate(probes.COLUMNS)
        page.key("ArrowRight", "l", "ArrowLeft", "j")
        page.until(f"document.querySelector('.tvz-pane h2')?.title === 'set/n{columns + 1:06d}'")
        assert f"set/n{columns + 1:06d}" == selected(page)
        page.key("End")
        page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000059'")
        page.key("Home", "k", "h")
        page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000000'")

    def test_enter_enlarges_and_escape_goes_back_then_leaves(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-grid").focus()
        page.key("Enter")
        assert page.tab.locator(".tvz-zoomed").count() == 1
        page.key("ArrowRight")
        page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000001'")
        page.key("Escape")
        assert page.tab.locator(".tvz-zoomed").count() == 0
        page.key("Escape")
        assert page.tab.evaluate("document.activeElement === document.body")

    def test_slash_filters_g_goes_and_m_shows_the_marked(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-grid").focus()
        page.key("/")
        page.tab.keyboard.type("cls == 1 and json.w > 500")
        page.key("Enter")
        page.until("document.querySelectorAll('.tvz-tile:not(.tvz-waiting)').length === 3")
        page.shows(["set/n000052", "set/n000055", "set/n000058"])
        page.key("g")
        page.tab.keyboard.type("n000033")
        page.key("Enter")
        page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000033' && !document.querySelector('.tvz-tile.tvz-waiting')")
        page.key("Space", "ArrowRight", "Space", "m")
        page.until("document.querySelectorAll('.tvz-tile.tvz-marked').length === 2 && document.querySelectorAll('.tvz-tile').length === 2")
        page.shows(["set/n000033", "set/n000034"])
        wait_until(lambda: ["set/n000033", "set/n000034"] == [ref.key for ref in page.page.controller.marked])

    def test_digits_choose_the_field_and_i_hides_the_pane(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('.tvz-pane canvas')")
        page.tab.locator(".tvz-grid").focus()
        page.key("l", "3")
        page.until("document.querySelector('.tvz-tree')")
        assert "dog" in page.tab.locator(".tvz-tree").inner_text()
        page.key("i")
        assert not page.tab.locator(".tvz-pane").is_visible()
        page.key("i")
        assert page.tab.locator(".tvz-pane").is_visible()

    def test_plus_minus_r_brackets_shift_and_question_mark(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-grid").focus()
        page.key("-")
        page.until("document.querySelector('.tvz-box').getBoundingClientRect().width === 96")
        page.key("+", "+")
        page.until("document.querySelector('.tvz-box').getBoundingClientRect().width === 256")
        page.key("r")
        page.until("document.querySelector('select[aria-label=order]').value === 'random'")
        page.key("]", "]")
        page.until("document.querySelector('.tvz-shard.tvz-on')?.textContent.includes('s-1.tar')")
        page.key("[")
        page.until("document.querySelector('.tvz-shard.tvz-on')?.textContent.includes('s-0.tar')")
        page.until("document.querySelector('.tvz-caption')")
        page.tab.keyboard.down("Shift")
        page.until("[...document.querySelectorAll('.tvz-caption')].some((text) => getComputedStyle(text).visibility === 'hidden')")
        page.tab.keyboard.up("Shift")
        assert "visible" == page.tab.evaluate("getComputedStyle(document.querySelector('.tvz-caption')).visibility")
        page.key("?")
        assert page.tab.locator("[role=dialog]").is_visible()
        page.key("Escape")
        assert page.tab.locator("[role=dialog]").count() == 0

    def test_y_copies_the_key_and_capital_y_the_python(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('.tvz-pane h2')")
        page.tab.locator(".tvz-grid").focus()
        page.key("y")
        page.copied("set/n000000")
        page.key("Y")
        page.copied("tarviz.index(")

    def test_tab_and_the_browsers_own_keys_stay_alive(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-grid").focus()
        page.key("Tab")
        assert page.tab.evaluate("document.activeElement.closest('.tvz-pane') !== null")

    def test_arrows_in_the_rail_choose_shards(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-rail-list").focus()
        page.key("ArrowDown")
        page.until("document.querySelector('.tvz-shard.tvz-on')?.textContent.includes('s-0.tar')")


class TestFilter:
    def test_the_pane_follows_to_the_first_record_found(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-tile").nth(2).click()
        page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000002'")
        page.tab.locator(".tvz-filter").fill("cls == 1 and json.w > 500")
        page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000052'")
        wait_until(lambda: (chosen := page.page.controller.selected) is not None and chosen.key == "set/n000052")

        page.tab.locator(".tvz-filter").fill("cls == 77")
        page.until("!document.querySelector('.tvz-pane h2') && !document.querySelector('.tvz-empty').hidden")
        page.tab.locator(".tvz-filter").fill("")
        page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000000'")
        assert [] == page.errors

    def test_classes_are_counted_although_the_scan_ends_before_the_first_rows_come(self, three, open_widget):
        class Slow(Browser):
            @rpc
            def fetch(self, **wish):
                assert self.wait(61, 60)  # more than there are: to the end of the scan
                return super().fetch(**wish)

        page = open_widget(Slow(three, px=96), ".tvz-tile")  # more tiles than come with the page
        page.until("document.querySelector('.tvz-facet-head')?.textContent.startsWith('cls')", 20)

    def test_a_class_in_the_rail_filters_and_shows_that_it_does(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('.tvz-facet-head')?.textContent.startsWith('cls')", 20)
        page.until("document.querySelector('.tvz-facets .tvz-bar')", 20)
        page.tab.locator(".tvz-facets .tvz-bar").first.click()
        page.until("document.querySelector('.tvz-facets .tvz-bar[aria-pressed=true]')", 20)
        page.tab.locator(".tvz-facets .tvz-bar[aria-pressed=true]").click()
        page.until("document.querySelector('.tvz-picks').hidden && !document.querySelector('.tvz-facets .tvz-bar[aria-pressed=true]')", 20)

    def test_a_wrong_filter_is_marked_and_explained(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-filter").fill("cls ==")
        page.until("document.querySelector('.tvz-filter').getAttribute('aria-invalid') === 'true'")
        page.tab.locator(".tvz-filter").press("Enter")
        page.until("document.querySelector('.tvz-status').textContent.includes('cannot be read')")
        assert 60 == page.tab.evaluate("Number(document.querySelector('.tvz-shard .tvz-number').textContent)")

    def test_fields_classes_and_sets_filter_by_click_and_again(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelectorAll('.tvz-bar').length >= 6")
        page.tab.locator(".tvz-bar", has_text="json").first.click()
        page.until("document.querySelector('.tvz-status').textContent.includes('51 shown')")
        page.tab.locator(".tvz-pick").click()
        page.until("document.querySelector('.tvz-picks').hidden")
        page.tab.locator(".tvz-matrix tbody tr").nth(1).click()
        page.until("document.querySelector('.tvz-status').textContent.includes(' 9 shown')")
        page.tab.locator(".tvz-matrix tbody tr").nth(1).click()
        page.until("document.querySelector('.tvz-picks').hidden")

    def test_the_marked_are_tagged_by_a_key_and_asked_for(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('.tvz-facets .tvz-bar')", 20)
        page.tab.locator(".tvz-tile").nth(1).click()
        page.key("Space", "ArrowRight", "Space", "T")
        page.until("document.activeElement === document.querySelector('.tvz-tagger .tag')")
        page.tab.keyboard.type("blurred")
        page.tab.locator(".tvz-tagger input[aria-label=note]").fill("seen by hand")
        page.key("Enter")
        page.until("document.querySelector('.tvz-status').textContent.includes('2 records tagged blurred')")
        page.until("document.querySelector('.tvz-checks .tvz-bar')?.textContent.includes('blurred')", 20)
        page.tab.locator(".tvz-filter").fill("tag = 'blurred'")
        page.until("document.querySelector('.tvz-status').textContent.includes('2 shown')", 20)

        page.shows(["set/n000001", "set/n000002"])
        table = page.page.controller.shards.questions.table
        assert [("set/n000001", "seen by hand"), ("set/n000002", "seen by hand")] == table.sql("SELECT key, note FROM tags").fetchall()
        page.tab.locator(".tvz-tile").first.click()
        page.tab.get_by_role("button", name="tag …").click()
        page.tab.get_by_role("button", name="take away").click()
        page.until("!document.querySelector('.tvz-checks .tvz-bar')", 20)
        assert [] == page.errors

    def test_the_columns_of_the_label_doctor_are_chosen(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('[data-name=\"doctor predicted\"]')", 20)
        page.tab.locator("[data-name='doctor predicted']").select_option("json.label")
        page.until("document.querySelectorAll('.tvz-confusion tbody tr').length", 20)
        cell = page.tab.locator(".tvz-confusion td button").first
        count = cell.inner_text()
        cell.click()
        page.until(f"document.querySelector('.tvz-status').textContent.includes(' {count} shown')", 20)

        assert "17" == count
        assert [] == page.errors

    def test_what_columns_hold_shows_while_they_are_read(self, three, open_page, monkeypatch):
        gate, real = threading.Event(), shard_columns.make_columns

        def made(url, options, parts, **more):
            if not url.endswith("s-0.tar") and any(part.tier == "value" for part in parts):
                assert gate.wait(60)
            return real(url, options, parts, **more)

        monkeypatch.setattr(shard_columns, "make_columns", made)
        try:
            page = open_page(three)
            page.until("document.querySelector('.tvz-facets .tvz-of')?.textContent === 'of the first 20 records read'", 30)
            page.until("document.querySelectorAll('.tvz-facets .tvz-bar').length >= 3", 30)
        finally:
            gate.set()
        page.until("!document.querySelector('.tvz-facets .tvz-of') && document.querySelectorAll('.tvz-hist').length", 30)
        assert [] == page.errors

    def test_brushes_and_clicks_add_up_and_their_bars_equal_sql(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelectorAll('.tvz-hist').length >= 2", 20)
        page.tab.locator(".tvz-facets .tvz-bar", has_text="1").first.click()
        page.until("document.querySelector('.tvz-status').textContent.includes('20 shown')", 20)
        page.until("document.querySelector('.tvz-facets .tvz-bar[aria-pressed=true]')?.textContent.includes('20 / 20')", 20)
        page.until("document.querySelector('[data-name=\"bars json.w\"] .tvz-col')?.title.includes(' of ')", 20)
        box = page.tab.locator("[data-name='bars json.w']")
        two = "document.querySelectorAll('.tvz-pick').length === 2"
        for attempt in range(4):  # while figures come in above, the bars move away from under the pointer
            box.scroll_into_view_if_needed()
            frame = box.bounding_box()
            page.tab.mouse.move(frame["x"] + frame["width"] * 0.51, frame["y"] + 20)
            page.tab.mouse.down()
            page.tab.mouse.move(frame["x"] + frame["width"] * 0.99, frame["y"] + 20, steps=4)
            page.tab.mouse.up()
            with contextlib.suppress(AssertionError) if attempt < 3 else contextlib.nullcontext():
                page.until(two, 8)
                break
        table = page.page.controller.shards.questions.table
        where = " and ".join(page.page.controller.query.wish.also)
        shown = table.sizes(where)[0]
        page.until(f"document.querySelector('.tvz-status').textContent.includes(' {shown} shown')", 20)
        page.until(f"document.querySelector('.tvz-facets .tvz-bar[aria-pressed=true]')?.textContent.includes('{shown} / 20')", 20)

        assert 0 < shown < 20
        assert [] == page.errors
        page.until("new URLSearchParams(location.hash.slice(1)).get('also')?.includes('json.w')")  # the link is written a moment later
        page.tab.reload()
        page.until("document.querySelectorAll('.tvz-pick').length === 2", 20)
        page.until(f"document.querySelector('.tvz-status').textContent.includes(' {shown} shown')", 20)
        page.tab.get_by_text("all away").click()
        page.until("document.querySelector('.tvz-picks').hidden")

    def test_a_link_keeps_its_filter_where_its_record_lies_outside(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelectorAll('.tvz-tile').length")
        also = json.dumps([["cls", {"where": "cls = 1", "text": "cls: 1", "parts": ["cls = 1"]}]])
        outside, inside = (
            page.page.controller.shards.questions.table.sql(f"SELECT min(key) FROM records WHERE cls {op} 1").fetchall()[0][0]
            for op in ("<>", "=")
        )
        for row, chosen in ((outside, inside), (inside, inside)):
            page.tab.evaluate("hash => history.replaceState(null, '', '#' + hash)", urllib.parse.urlencode({"also": also, "row": row}))
            page.tab.reload()
            page.until("document.querySelector('.tvz-status')?.textContent.includes(' 20 shown')", 20)
            page.until(f"document.querySelector('.tvz-pane')?.textContent.includes({chosen!r})", 20)
            assert 1 == page.tab.locator(".tvz-pick").count()
        assert [] == page.errors

    def test_suggestions_are_taken_with_the_keys(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('.tvz-facets .tvz-bar')", 20)
        page.tab.locator(".tvz-filter").click()
        page.tab.keyboard.type("json.la")
        page.until("document.querySelector('.tvz-complete:not([hidden])')?.textContent.includes('json.label')")
        page.key("Tab")
        page.tab.keyboard.type(" = 'do")
        page.until("document.querySelector('.tvz-complete:not([hidden])')?.textContent.includes(\"'dog'\")")
        page.key("ArrowDown", "Enter")

        assert "json.label = 'dog'" == page.tab.locator(".tvz-filter").input_value()
        page.until("document.querySelector('.tvz-status').textContent.includes(' 17 shown')", 20)
        assert [] == page.errors

    def test_a_filter_that_fits_nothing_says_why(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-filter").fill("cls = 1 and json.w > 9000")
        page.until("document.querySelector('.tvz-why')", 20)

        assert "json.w is 10 … 590" in page.tab.locator(".tvz-why").inner_text()
        page.tab.get_by_text("show all").click()
        page.until("document.querySelectorAll('.tvz-tile img').length > 3")

    def test_sorted_by_a_column_both_ways(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('select[aria-label=order] option[value=\"by json.w\"]')", 20)
        page.tab.locator("select[aria-label=order]").select_option("by json.w")
        page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000001'", 20)
        page.tab.locator(".tvz-turn-order").click()
        page.until("document.querySelector('.tvz-tile .tvz-key')?.title === 'set/n000059'", 20)

    def test_checks_and_the_label_doctor_click_through_to_the_grid(self, tmp_path, open_page):
        made = records(0, 30)
        for at, (_, fields) in enumerate(made):
            fields["json"] = json.dumps({"pred": at % 3 if at % 10 else 1, "conf": at / 30}).encode()
        made[4][1]["png"] = b"\x89PNG broken"
        page = open_page(tar(tmp_path / "doubtful.tar", made))
        page.until("document.querySelector('.tvz-confusion')", 20)
        page.tab.locator("[data-name='mistakes']").click()
        page.until("document.querySelector('.tvz-status').textContent.includes(' 2 shown')", 20)
        page.shows(["set/n000020", "set/n000000"])
        page.tab.locator("[data-name='cell 0 1']").click()
        page.until("document.querySelector('.tvz-status').textContent.includes(' 1 shown')", 20)
        page.tab.locator(".tvz-pick").click()
        page.tab.locator("[data-name='check all']").click()
        page.until("document.querySelector('.tvz-checks .tvz-bar')?.textContent.includes('bad')", 30)
        page.tab.locator(".tvz-checks .tvz-bar", has_text="bad").click()
        page.until("document.querySelector('.tvz-status').textContent.includes(' 1 shown')", 20)
        page.shows(["set/n000004"])

        page.tab.locator("select.tvz-save").select_option("txt")
        page.until("document.querySelector('.tvz-save-words').textContent.startsWith('1 shown')", 20)
        page.tab.locator(".tvz-save-path").fill(str(tmp_path / "keys.txt"))
        page.tab.locator(".tvz-save-path").press("Enter")
        page.until("document.querySelector('.tvz-status').textContent.includes('1 record written')", 20)
        assert "set/n000004\n" == (tmp_path / "keys.txt").read_text()
        assert [] == page.errors

    def test_where_the_table_is_not_installed_the_rest_works(self, three, open_page, monkeypatch):
        from tarviz.widgets.answers import questions

        monkeypatch.setattr(questions, "find_spec", lambda name: None)
        page = open_page(three)
        page.until("document.querySelector('.tvz-facet-note')?.textContent.includes(\"pip install 'tarviz[table]'\")")
        page.tab.locator(".tvz-filter").fill("cls = 1")
        page.until("document.querySelector('.tvz-status').textContent.includes(\"pip install 'tarviz[table]'\")")
        assert [] == page.errors

    def test_the_address_keeps_filter_and_record(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-filter").fill("cls == 2")
        page.until("document.querySelector('.tvz-status').textContent.includes('20 shown')")
        key = "set/n000011"  # the fourth of those with this class
        page.until(f"document.querySelectorAll('.tvz-tile .tvz-key')[3]?.title === '{key}'")
        page.tab.locator(".tvz-tile").nth(3).click()
        page.until(f"location.hash.includes('{key.rpartition('/')[2]}')")
        page.tab.reload()
        page.until(f"document.querySelector('.tvz-pane h2')?.title === '{key}'")
        assert "cls == 2" == page.tab.locator(".tvz-filter").input_value()
        assert "token" not in page.tab.url


class TestMany:
    def test_scrolling_ten_thousand_asks_for_what_shows_and_stays_small(self, tmp_path, open_page, monkeypatch):
        made, real = [], thumbnails.make_tile
        monkeypatch.setattr(thumbnails, "make_tile", lambda *plan, **more: made.append(plan) or real(*plan, **more))
        page = open_page(
            tar(tmp_path / "many.tar", [(f"k{n:05d}", {"png": png((n % 256, n // 256, 9)), "cls": b"1"}) for n in range(10_000)])
        )
        page.until("document.querySelector('.tvz-status').textContent.includes('scanned · 10,000')", 30)
        before, page.peak = len(made), page.flying  # the first record was asked for beside these
        for place in range(1, 26):
            page.tab.evaluate(
                f"document.querySelector('.tvz-grid').scrollTop = document.querySelector('.tvz-area').clientHeight * {place / 25}"
            )
            page.tab.evaluate(probes.FRAMES)
        page.until("!document.querySelector('.tvz-waiting')")
        page.until("[...document.querySelectorAll('.tvz-key')].some((k) => k.title === 'k09999')")

        assert 0 < len(made) - before < 25 * 60
        assert page.peak <= 3  # two, and a poll
        assert page.tab.evaluate("document.querySelectorAll('.tvz-tile').length") < 60
        assert [] == page.errors

    def test_the_last_of_a_hundred_thousand_is_one_key_away(self, tmp_path, open_page):
        from tests.widgets.browse.test_rows import many_shard

        page = open_page(many_shard(tmp_path / "many.tar", 100_000))
        page.until("document.querySelector('.tvz-status').textContent.includes('scanned · 100,000')", 60)
        page.tab.locator(".tvz-grid").focus()
        page.key("End")
        page.until("document.querySelector('.tvz-pane h2')?.title === 'k0099999'")
        page.until("[...document.querySelectorAll('.tvz-tile .tvz-key')].some((key) => key.title === 'k0099999')")
        assert "k0099999" in page.shown()
        page.key("g")
        page.tab.keyboard.type("#50000")
        page.key("Enter")
        page.until("document.querySelector('.tvz-pane h2')?.title === 'k0050000'")
        page.until(
            "[...document.querySelectorAll('.tvz-tile .tvz-key')].some((key) => key.title === 'k0050000')"
        )  # tiles come behind the pane
        assert "k0050000" in page.shown()
        page.tab.locator(".tvz-grid").hover()
        before = page.shown()
        page.tab.mouse.wheel(0, 400)
        wait_until(lambda: page.shown() not in ([], before))
        after = page.shown()
        assert before[-1] in after or int(after[0][1:]) - int(before[0][1:]) < 40, (before, after)
        assert before != after


class TestHostile:
    @pytest.mark.parametrize("name", ["S13-xss", "D00-hostile-payloads", "S12-shell-hostile-keys"])
    def test_nothing_is_executed_no_markup_is_drawn_and_the_rest_goes_on(self, name, open_page):
        path = DATA / "corpora" / "generated" / f"{name}.tar"
        if not path.is_file():
            pytest.skip("the corpus is not here")
        page = open_page(path)
        count = len(page.page.controller.query)
        page.tab.locator(".tvz-grid").focus()
        for _ in range(count):
            page.tab.keyboard.press("ArrowRight")
            page.until("document.querySelector('.tvz-pane h2')?.title === document.querySelector('[aria-selected=true] .tvz-key')?.title")
            page.settled()
        page.key("Home", "2")
        page.settled()
        for button in page.tab.locator("button", has_text="preview as picture").all():
            button.click()
        tags = page.tab.evaluate("[...new Set([...document.querySelectorAll('.tvz *')].map((e) => e.localName))]")

        assert page.tab.evaluate("window.tarviz_pwned") is None
        assert not {"script", "iframe", "svg", "style", "a", "object", "embed", "form"} & set(tags)
        assert [] == page.elsewhere
        assert not [error for error in page.errors if "dialog" in error]

    def test_svg_is_drawn_as_a_picture_on_request_and_its_script_is_dead(self, tmp_path, open_page):
        size = b'width="40" height="20"'
        svg = b'<svg xmlns="http://www.w3.org/2000/svg" %s><script>parent.tarviz_pwned=1</script><rect %s/></svg>' % (size, size)
        page = open_page(tar(tmp_path / "s.tar", [("a", {"svg": svg})]))
        page.tab.locator("button", has_text="preview as picture").click()
        page.until("document.querySelector('.tvz-preview')?.naturalWidth === 40")

        assert page.tab.evaluate("window.tarviz_pwned") is None
        assert [] == page.elsewhere

    def test_long_rtl_and_emoji_keys_keep_the_frame(self, tmp_path, open_page):
        page = open_page(
            tar(tmp_path / "k.tar", [(key, {"txt": b"t"}) for key in ("x" * 1000, "שלום-עולם", "🎉🎉", "a\u202eb")]), width=600
        )
        page.until("document.querySelectorAll('.tvz-tile').length === 4")
        page.tab.locator(".tvz-tile").first.click()
        page.until("document.querySelector('.tvz-pane h2')?.title.length === 1000")

        assert page.tab.evaluate("document.documentElement.scrollWidth") <= 600
        assert page.tab.evaluate("document.querySelector('.tvz-pane').scrollWidth <= document.querySelector('.tvz-pane').clientWidth + 1")
        assert [] == page.errors

    def test_an_empty_and_a_broken_shard_say_so(self, tmp_path, open_page):
        (tmp_path / "empty.tar").write_bytes(bytes(10_240))
        (tmp_path / "page.tar").write_bytes(b"<html>404</html>" * 100)
        assert "no records" in open_page(tmp_path / "empty.tar").tab.locator(".tvz-empty").inner_text()
        assert "E_NOT_TAR" in open_page(tmp_path / "page.tar").tab.locator(".tvz-empty").inner_text()

    def test_a_shard_that_shrinks_is_noticed_and_scanned_again(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('.tvz-status').textContent.includes('60 records')")
        tar(three[0], records(0, 3))
        page.tab.mouse.move(1, 1)
        page.tab.locator(".tvz-grid").hover()
        page.until("document.querySelector('.tvz-status').textContent.includes('changed since the scan')")
        page.tab.locator(".tvz-status button", has_text="scan again").click()
        page.until("document.querySelector('.tvz-status').textContent.includes('43 records')")

    def test_a_server_that_is_gone_is_said_and_the_pictures_stay(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelectorAll('.tvz-tile img').length > 8 && document.querySelector('.tvz-pane h2')")
        page.page.close()
        page.tab.locator(".tvz-tile").nth(4).click()
        page.until("document.querySelector('.tvz-status').textContent.includes('does not answer')")
        assert page.tab.evaluate("[...document.querySelectorAll('.tvz-tile img')].every((i) => i.naturalWidth > 0)")
        page.until("document.querySelector('.tvz-pane').innerText.includes('only the saved thumbnail')")


class TestPane:
    def test_tabs_show_bytes_example_and_header(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('.tvz-pane canvas')")
        page.tab.get_by_role("tab", name="Bytes").click()
        page.until("document.querySelector('.tvz-hex-lines')?.textContent.includes('89 50 4e 47')")
        page.tab.locator("button", has_text="SHA-256").click()
        page.until("/[0-9a-f]{64}/.test(document.querySelector('.tvz-pane').textContent)")
        page.tab.get_by_role("tab", name="tf.Example").click()
        page.until("document.querySelector('.tvz-fact-table')?.textContent.includes('int64_list[1]')")
        page.tab.get_by_role("tab", name="Tar header").click()
        page.until("document.querySelector('.tvz-fact-table')?.textContent.includes('ustar')")

    def test_a_picture_zooms_and_tells_its_pixels(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('.tvz-frame')?.view?.picture")
        box = page.tab.locator(".tvz-canvas").bounding_box()
        page.tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.until("document.querySelector('.tvz-image-foot').textContent.includes('= 0 80 120')")
        before = page.tab.locator(".tvz-image-foot").inner_text()
        page.tab.locator(".tvz-grid").focus()
        page.tab.mouse.wheel(0, -300)
        page.until(f"document.querySelector('.tvz-image-foot').innerText !== {before!r}")

    def test_a_path_of_a_tree_is_copied_as_a_selection(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-tile").nth(1).click()
        page.tab.locator(".tvz-chip", has_text="json").click()
        page.tab.locator(".tvz-name", has_text="n").last.click()
        page.copied('SelectJSON("json", ["meta", "n"])')

    def test_a_field_is_saved_whole(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('.tvz-pane canvas')")
        with page.tab.expect_download() as waiting:
            page.tab.locator("button", has_text="save .png").click()
        download = waiting.value

        assert "n000000.png" == download.suggested_filename
        with open(download.path(), "rb") as file:
            assert png((0, 80, 120)) == file.read()

    def test_sound_plays_from_ranges(self, tmp_path, open_page):
        out = io.BytesIO()
        with wave.open(out, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(bytes(16_000))
        page = open_page(tar(tmp_path / "w.tar", [("a", {"wav": out.getvalue()})]))
        page.until("document.querySelector('audio')?.duration === 1")

        assert [] == page.errors

    def test_slices_of_a_volume_are_chosen(self, tmp_path, open_page):
        import numpy as np

        out = io.BytesIO()
        np.save(out, np.arange(60.0).reshape(5, 3, 4))
        page = open_page(tar(tmp_path / "v.tar", [("a", {"npy": out.getvalue()})]))
        page.tab.locator(".tvz-controls input").fill("4")
        page.tab.locator(".tvz-controls input").dispatch_event("change")
        page.until("document.querySelector('.tvz-figure figcaption')?.textContent.includes('48 dark … 59 bright')")


class TestLooks:
    @pytest.mark.parametrize("width", [1280, 800, 600, 420])
    def test_nothing_sticks_out_at_any_width(self, three, open_page, width):
        page = open_page(three, width=width)
        page.until("document.querySelector('.tvz-tile img')")
        wide = page.tab.evaluate(probes.STICKING_OUT)

        assert [] == wide
        assert page.tab.evaluate("document.documentElement.scrollWidth") <= width

    def test_narrow_pages_fold_the_rail_and_put_the_pane_below(self, three, open_page):
        page = open_page(three, width=500)
        page.tab.locator(".tvz-tile").first.click()
        page.until("document.querySelector('.tvz-pane h2')")
        grid, pane = (page.tab.locator(name).bounding_box() for name in (".tvz-grid", ".tvz-pane"))

        assert pane["y"] >= grid["y"] + grid["height"] - 1
        assert not page.tab.locator(".tvz-rail").is_visible()
        page.tab.locator(".tvz-rail-button").click()
        assert page.tab.locator(".tvz-rail").is_visible()

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_text_has_the_contrast_that_people_need(self, three, open_page, scheme):
        page = open_page(three, scheme=scheme)
        page.until("document.querySelector('.tvz-pane h2') && document.querySelectorAll('.tvz-bar').length > 3")
        poor = page.tab.evaluate(probes.CONTRAST)

        assert [] == poor

    def test_roles_and_names_say_what_things_are(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('.tvz-pane h2')")

        assert page.tab.get_by_role("listbox", name="records").count() == 1
        assert page.tab.get_by_role("option", name="n000003, 0").count() == 1
        assert page.tab.get_by_role("status").count() == 1
        assert [] == page.tab.evaluate(probes.UNNAMED)
