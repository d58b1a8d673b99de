"""Several tabs on one server, and marking with hands, in a real browser."""

from __future__ import annotations

import pytest

from tests.browser import probes
from tests.browser.conftest import watch
from tests.conftest import wait_until
from tests.widgets.conftest import records, tar

pytestmark = pytest.mark.browser


@pytest.fixture
def three(tmp_path):
    return [tar(tmp_path / f"s-{number}.tar", records(number * 20, 20)) for number in range(3)]


@pytest.fixture
def twins(tmp_path):
    """Shards that have the same keys."""
    return [tar(tmp_path / f"s-{number}.tar", records(0, 20)) for number in range(3)]


SEEN = """[location.hash, document.querySelector('.tvz-filter').value, document.querySelector('[aria-label=order]').value,
  document.querySelector('.tvz-label-input').value, document.querySelector('.tvz-shard-select').value,
  document.querySelector('.tvz-pane h2')?.title, document.querySelector('.tvz-status').innerText.match(/#[0-9]+ of [0-9]+/)?.[0],
  document.querySelector('.tvz-tableview').hidden, !!document.querySelector('.tvz-zoomed'),
  !!document.querySelector('[aria-selected=true][data-position]')]"""


def settled(page):
    """What a page shows, its address first, once it comes to rest."""
    seen = []
    while len(seen) < 3 or seen[-1] != seen[-3] or seen[-1][6] is None:
        assert len(seen) < 200, seen[-1]
        page.settled()
        page.tab.wait_for_timeout(300)
        seen.append(page.tab.evaluate(SEEN))
    return seen[-1]


def beside(page, address=""):
    """One more tab on the page's server, by the address that was printed."""
    found = watch(page.tab.context.browser.new_context().new_page(), page.page.origin)
    found.tab.set_default_timeout(60_000)
    found.tab.goto(page.page.url + address)
    found.tab.wait_for_selector(".tvz-tile:not(.tvz-waiting)")
    found.page = page.page
    return found


def says(page, text):
    page.until(f"document.querySelector('.tvz-status').textContent.includes({text!r})")


def marked(page):
    return [ref.key for ref in page.page.controller.marked]


def keys(*numbers):
    return [f"set/n{number:06d}" for number in numbers]


class TestTabs:
    def test_each_tab_has_its_own_filter_and_saves_what_it_shows(self, three, open_page, tmp_path):
        one = open_page(three)
        other = beside(one)
        one.tab.locator(".tvz-filter").fill("json.w < 30")
        one.shows(keys(1, 2))
        other.tab.locator(".tvz-grid").focus()
        other.key("End")
        other.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000059'")
        other.until("!document.querySelector('.tvz-tile.tvz-waiting')")

        assert "" == other.tab.locator(".tvz-filter").input_value()
        for page, name, count in ((other, "all.txt", 60), (one, "few.txt", 2)):
            page.tab.locator("select.tvz-save").select_option("txt")
            says_words = f"document.querySelector('.tvz-save-words').textContent.startsWith('{count} shown')"
            page.until(says_words)
            page.tab.locator(".tvz-save-path").fill(str(tmp_path / name))
            page.tab.get_by_role("button", name="write").click()
            wait_until((tmp_path / name).exists)
            assert count == len((tmp_path / name).read_text().split())
        third = beside(one)
        assert "" == third.tab.locator(".tvz-filter").input_value()
        assert [] == one.errors + other.errors + third.errors

    def test_marks_are_shared_and_say_so(self, three, open_page):
        one = open_page(three)
        other = beside(one)
        one.tab.locator(".tvz-tile").nth(1).click()
        one.key("Space")
        one.tab.locator(".tvz-browse").dispatch_event("pointerenter")
        says(one, "1 marked, for all pages")
        other.tab.locator(".tvz-browse").dispatch_event("pointerenter")
        other.until("document.querySelectorAll('.tvz-marked').length === 1")
        says(other, "2 pages look at these shards")

    def test_a_page_whose_session_is_gone_searches_anew(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-filter").fill("cls = 1")
        says(page, "20 shown")
        sessions = page.page.controller._sessions
        for name in [name for name in sessions if name]:
            sessions.pop(name).close()
        page.tab.locator(".tvz-grid").focus()

        def last():
            page.key("End")  # the first may come while the page asks for a session
            return "set/n000058" == page.tab.evaluate("document.querySelector('.tvz-pane h2')?.title")

        wait_until(last)
        says(page, "20 shown")
        assert [] == page.errors


class TestMarking:
    def test_twenty_by_shift_and_click(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-tile").nth(2).click()
        page.tab.locator(".tvz-tile").nth(8).click(modifiers=["Shift"])
        wait_until(lambda: keys(*range(2, 9)) == marked(page))
        page.tab.locator(".tvz-tile").nth(5).click(modifiers=["Shift"])
        wait_until(lambda: keys(*range(2, 6)) == marked(page))

        page.key("Shift+ArrowRight", "Shift+ArrowRight")
        wait_until(lambda: keys(*range(2, 8)) == marked(page))
        wait_until(lambda: 6 == page.tab.locator(".tvz-marked").count())  # the session knows before the page draws

    def test_all_none_others_and_back(self, three, open_page):
        page = open_page(three, where="cls = 1")
        says(page, "20 shown")
        page.tab.locator(".tvz-grid").focus()
        page.key("Control+a")
        says(page, "20 marked")
        assert 20 == len(marked(page))
        page.tab.locator(".tvz-status button", has_text="undo").click()
        wait_until(lambda: not marked(page))
        page.tab.locator(".tvz-grid").focus()
        page.key("Control+y")
        wait_until(lambda: 20 == len(marked(page)))
        page.tab.locator(".tvz-filter").fill("")
        says(page, "#0 of 60")
        page.tab.locator(".tvz-grid").focus()
        page.key("I")
        wait_until(lambda: 40 == len(marked(page)))
        page.key("N")
        wait_until(lambda: not marked(page))
        page.key("Control+z", "Control+z")
        wait_until(lambda: 20 == len(marked(page)))
        page.key("Control+z")
        page.until("document.querySelector('.tvz-filter').value === 'cls = 1'")
        says(page, "20 shown")
        page.tab.get_by_label("mark records").select_option("none")
        wait_until(lambda: not marked(page))
        assert [] == page.errors

    def test_undo_never_leaves_the_grid(self, three, open_page, tmp_path):
        page = open_page(three)
        page.tab.locator(".tvz-tile").nth(3).click()
        page.key("Space")
        page.tab.locator("select.tvz-save").select_option("tar")
        page.tab.locator(".tvz-save-path").fill(str(three[0]))
        page.key("Enter")
        says(page, "is there already")
        page.tab.locator(".tvz-grid").focus()
        page.key("Control+z", "Control+z", "Control+z")

        assert "tvz-grid" in page.tab.evaluate("document.activeElement.className")
        assert str(three[0]) == page.tab.locator(".tvz-save-path").input_value()
        wait_until(lambda: not marked(page))
        page.key("Enter")
        page.until("document.querySelector('.tvz-zoomed')")

    def test_a_tag_is_taken_back(self, three, open_page):
        page = open_page(three)
        page.until("document.querySelector('.tvz-facets .tvz-bar')")
        page.tab.locator(".tvz-tile").nth(1).click()
        page.key("T")
        page.until("document.activeElement === document.querySelector('.tvz-tagger .tag')")
        page.tab.keyboard.type("blurred")
        page.key("Enter")
        says(page, "1 record tagged blurred")
        tags = page.page.controller.shards.questions.table.tags
        assert {"blurred": 1} == tags.counts()
        page.tab.locator(".tvz-grid").focus()
        page.key("Control+z")
        says(page, "taken back: tag blurred")
        assert {} == tags.counts()


class TestAddresses:
    def test_back_and_forward_go_through_filters_and_views(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-filter").fill("cls = 2")
        says(page, "20 shown")
        page.until("location.hash.includes('cls')")
        page.tab.get_by_role("button", name="table", exact=True).click()
        page.until("location.hash.includes('view=table')")
        page.tab.go_back()
        page.until("document.querySelector('.tvz-tableview').hidden")
        assert "cls = 2" == page.tab.locator(".tvz-filter").input_value()
        page.tab.go_back()
        page.until("document.querySelector('.tvz-filter').value === ''")
        says(page, "of 60")
        page.tab.go_forward()
        page.until("document.querySelector('.tvz-filter').value === 'cls = 2'")
        assert [] == page.errors

    def test_a_walk_leads_back_and_forth_through_what_was_seen(self, twins, open_page):
        """Keys come twice here, captions and orders change: each step, gone back to or opened beside, is as it was left."""
        page = open_page(twins)
        walk = [
            lambda: page.tab.locator(".tvz-tile").nth(3).click(),
            lambda: page.tab.locator(".tvz-filter").fill("cls = 1"),
            lambda: (page.tab.locator(".tvz-label-input").fill("json.label"), page.key("Enter", "Escape")),
            lambda: page.tab.get_by_label("order", exact=True).select_option("key"),
            lambda: (page.tab.locator(".tvz-grid").focus(), page.key("t")),
            lambda: page.key("End"),
            lambda: page.key("Enter"),
            lambda: page.key("ArrowUp"),
            lambda: page.key("Escape"),
            lambda: page.tab.locator(".tvz-shard", has_text="s-1.tar").click(),
        ]
        left = [settled(page)]
        for step in walk:
            before = page.tab.evaluate("history.length")
            step()
            now = settled(page)
            left = [*left, now] if page.tab.evaluate("history.length") > before else [*left[:-1], now]

        assert len(left) > 5
        for seen in reversed(left[:-1]):
            page.tab.go_back()
            assert seen == settled(page)
        assert left[1] == settled(beside(page, left[1][0]))
        for seen in left[1:]:
            page.tab.go_forward()
            assert seen == settled(page)
        assert [] == page.errors

    def test_an_address_holds_shard_size_caption_and_view(self, three, open_page):
        page = open_page(three)
        page.tab.locator(".tvz-shard", has_text="s-1.tar").click()
        page.until("document.querySelector('.tvz-shard.tvz-on')?.textContent.includes('s-1.tar')")
        page.tab.get_by_label("size of the tiles").select_option("96")
        page.tab.locator(".tvz-label-input").fill("json.label")
        page.tab.locator(".tvz-label-input").press("Enter")
        page.tab.locator(".tvz-tile").nth(2).click()
        page.until("location.hash.includes('n000022') && location.hash.includes('json.label')")
        again = beside(page, page.tab.evaluate("location.hash"))
        again.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000022'")

        again.until("document.querySelector('.tvz-shard.tvz-on')?.textContent.includes('s-1.tar')")
        assert "96" == again.tab.get_by_label("size of the tiles").input_value()
        again.until("document.querySelector('.tvz-label')?.textContent === 'owl'")
        assert again.tab.evaluate(probes.COLUMNS) == page.tab.evaluate(probes.COLUMNS)


def test_the_enlarged_view_walks_and_closes_by_the_mouse(three, open_page):
    page = open_page(three, where="cls = 1")
    says(page, "20 shown")
    page.tab.locator(".tvz-tile").nth(1).dblclick()
    page.until("document.querySelector('.tvz-zoomed .tvz-walk')?.textContent.includes('2 of 20')")
    page.tab.get_by_role("button", name="next record (→)").click()
    page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000007'")
    page.tab.get_by_role("button", name="record before (←)").click()
    page.until("document.querySelector('.tvz-pane h2')?.title === 'set/n000004'")
    page.tab.get_by_role("button", name="back to the grid (Esc)").click()
    assert 0 == page.tab.locator(".tvz-zoomed").count()
    assert [] == page.errors
