"""Several pages on the same shards: each has its own search, order and cursor; marks are everybody's; nothing stale is written."""

from __future__ import annotations

import random
import threading

import pytest

from tarviz.widgets.browse import controller
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.host.rpc import answer
from tests.conftest import wait_until


@pytest.fixture
def browser(shards):
    found = Browser(shards, cache=False)
    wait_until(lambda: found.shards.rows.finished)
    yield found
    found.close()


class Page:
    """What a page asks, under its own name."""

    def __init__(self, browser, name):
        self.browser, self.name = browser, name

    def __call__(self, method, **message):
        reply, buffers = answer(self.browser, {"k": "tvz:req", "id": "1", "session": self.name, "name": method, "msg": message})
        return reply.get("r", reply.get("err")), buffers

    def search(self, where="", **wish):
        number = self("search", where=where, **wish)[0]["query"]
        wait_until(lambda: self("poll")[0]["query"]["done"])
        return number

    def keys(self):
        poll = self("poll")[0]["query"]
        rows = self("fetch", query=poll["number"], start=0, stop=120)[0]["rows"]
        assert poll["count"] == len(rows)
        return [row["key"] for row in rows]


def expected(number):
    """What page `number` filters for, and the keys that fit."""
    low = number * 2
    return f"json.w > {low * 10} and cls = {number % 3}", [f"set/n{n:06d}" for n in range(low + 1, 60) if n % 7 and n % 3 == number % 3]


class TestSearches:
    @pytest.mark.matrix
    def test_twenty_pages_at_once_see_their_own_rows_and_write_them(self, browser, tmp_path):
        wrong = []

        def work(number):
            page, draw = Page(browser, f"page-{number}"), random.Random(number)
            for turn in range(6):
                where, keys = expected(draw.randrange(20))
                query = page.search(where)
                if keys != page.keys():
                    wrong.append((number, where))
                if "err" in (found := page("export", kind="txt", query=query)) or bytes(found[1][0]).decode().split() != keys:
                    wrong.append((number, turn, "written"))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)

        assert [] == wrong

    def test_a_search_that_a_later_one_has_overtaken_on_the_way_changes_nothing(self, browser):
        page = Page(browser, "a")
        page.search("cls = 1", asked=[5.0, 20.0])
        shown = page.keys()
        refused, _ = page("search", where="", asked=[5.0, 10.0])

        assert ("E_STOPPED", shown) == (refused["code"], page.keys())
        page.search("cls = 2", asked=[6.0, 10.0])  # the page was loaded again
        assert shown != page.keys()

    def test_a_fresh_page_shows_what_the_browser_was_opened_with(self, browser):
        Page(browser, "a").search("cls = 1", sort="key", descending=True)
        first, _ = browser.first("b")

        assert (0, "", "order") == (first["rows"]["query"], first["config"]["where"], first["config"]["sort"])
        assert 60 == len(Page(browser, "b").keys())

    def test_one_page_stops_its_search_and_not_that_of_another(self, shards):
        browser = Browser(shards, cache=False, where="json.w > 100")
        one, other = Page(browser, "a"), Page(browser, "b")
        one("poll")
        other("poll")
        one("stop")
        wait_until(lambda: other("poll")[0]["query"]["done"])

        assert [f"set/n{n:06d}" for n in range(11, 60) if n % 7] == other.keys()
        browser.close()

    def test_what_is_written_is_what_the_page_shows_or_nothing(self, browser, tmp_path):
        page = Page(browser, "a")
        stale = page.search("cls = 1")
        page.search("cls = 2")
        for name, message in (
            ("keep", {"path": str(tmp_path / "k.txt")}),
            ("export", {"kind": "txt"}),
            ("preview", {}),
            ("mark_shown", {}),
        ):
            error, _ = page(name, query=stale, **message)

            assert "E_CHANGED" == error["code"]
        assert not (tmp_path / "k.txt").exists()
        assert "stale" in page("fetch", query=stale, start=0, stop=3)[0]

    @pytest.mark.matrix
    def test_no_two_pages_have_a_search_of_one_number(self, browser):
        numbers = [Page(browser, name).search("cls = 1") for name in "abcabc"]

        assert len(set(numbers)) == len(numbers)

    def test_a_page_that_was_forgotten_is_told_that_its_search_is_no_more(self, browser, monkeypatch):
        monkeypatch.setattr(controller, "MOST_SESSIONS", 3)
        page = Page(browser, "a")
        query = page.search("cls = 1")
        for name in "bcd":
            Page(browser, name)("poll")

        assert query != page("poll")[0]["query"]["number"]
        assert len(browser._sessions) <= 3


class TestShared:
    def test_marks_are_everybodys(self, browser):
        one, other = Page(browser, "a"), Page(browser, "b")
        before = other("poll")[0]["marks"]["version"]
        change, _ = one("mark_shown", query=0, start=3, stop=6)
        found, buffers = other("marks")
        import numpy as np

        assert [3, 4, 5] == np.frombuffer(buffers[0], np.float64).tolist() == change["added"]
        assert {"version": before + 1, "count": 3} == other("poll")[0]["marks"] == found
        assert {"added": [], "dropped": [4]}.items() <= other("mark", drop=[4, 9])[0].items()
        assert ["set/n000003", "set/n000005"] == [ref.key for ref in browser.marked]
        assert {"added": [2, 4], "dropped": [3, 5]}.items() <= one("mark_shown", query=0, start=2, stop=6, how="invert")[0].items()
        assert {"added": [], "dropped": [2]}.items() <= one("mark_shown", query=0, start=2, stop=4, how="unmark")[0].items()
        assert 2 == other("poll")[0]["pages"]

    def test_a_map_is_made_once_for_two_pages_and_stops_when_both_have_left_it(self, browser):
        one, other = Page(browser, "a"), Page(browser, "b")
        for page in (one, other):
            wait_until(lambda page=page: "making" not in page("map_points", x="json.w", y="json.meta.n")[0])
        making = browser.session_of("a").map.making

        assert making is browser.session_of("b").map.making
        one("map_points", x="json.w", y="size")
        assert not making.stopped.is_set()
        other("map_points", x="json.w", y="size")
        assert making.stopped.is_set()

    def test_python_sees_the_page_that_was_used_last(self, browser):
        Page(browser, "a").search("cls = 1")
        Page(browser, "b").search("cls = 2")

        assert "where='cls = 2'" in browser.spec
        assert {"2"} == {bytes(record["cls"]).decode() for record in browser.records()}

    def test_marks_of_a_shard_that_is_scanned_anew_are_gone(self, browser):
        page = Page(browser, "a")
        page("mark", add=[2, 1 << 32])
        page("again", shard=0)

        assert [1 << 32] == sorted(browser.shards.marks.rows)
