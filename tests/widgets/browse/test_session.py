"""What one page asks: what changed, marks of a search, the call that shows the same, a record by its key or number."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.widgets.browse import session
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.browse.rows import row_id
from tarviz.widgets.host.rpc import answer
from tests.widgets.browse.test_controller import ask, settle
from tests.widgets.conftest import png, records, tar


@pytest.fixture
def browser(shards):
    found = settle(Browser(shards, cache=False))
    yield found
    found.close()


def refused(browser, request, **message):
    return answer(browser, {"name": request, "msg": message})[0]["err"]


def shown_after(browser, **wish):
    number = ask(browser, "search", **wish)[0]["query"]
    settle(browser)
    return number


def test_a_poll_tells_how_everything_stands(browser, shards):
    poll, _ = ask(browser, "poll")

    assert {"number": 0, "count": 60, "checked": 0, "ordered": True, "done": True, "error": "", "note": ""} == poll["query"]
    assert (60, True, 3, "", 0) == (poll["total"], poll["exact"], len(poll["shards"]), poll["trouble"], poll["pages"])
    assert "scanned 3 of 3 shards · 60 records" == poll["status"]
    assert {"running": False, "text": "", "bad": False} == poll["job"]
    assert {"version": 0, "count": 0} == poll["marks"]
    assert [["png", 60], ["cls", 60], ["json", 51]] == poll["summary"]["fields"]
    again, _ = ask(browser, "poll", since=poll["version"])
    assert ([], False) == (again["shards"], "summary" in again)
    ask(browser, "mark", add=[0])
    again, _ = ask(browser, "poll", since=poll["version"])
    assert ([], True, {"version": 1, "count": 1}) == (again["shards"], "summary" in again, again["marks"])


def test_pages_that_asked_lately_are_counted(browser, monkeypatch):
    answer(browser, {"name": "poll", "session": "one"})

    def pages(name):
        return answer(browser, {"name": "poll", "session": name})[0]["r"]["pages"]

    assert [1, 2] == [pages("one"), pages("two")]
    browser.session_of("one").asked -= session.ALIVE + 1
    assert (1, 30.0) == (pages("two"), session.ALIVE)


def test_marks_are_told_as_what_they_changed(browser):
    assert {"version": 1, "count": 3, "added": [0, 1, row_id(2, 19)], "dropped": []} == ask(browser, "mark", add=[0, 1, row_id(2, 19)])[0]
    assert {"version": 2, "count": 3, "added": [2], "dropped": [1]} == ask(browser, "mark", add=[0, 2], drop=[1, 5])[0]
    assert {"version": 2, "count": 3, "added": [], "dropped": []} == ask(browser, "mark")[0]
    message, (buffer,) = ask(browser, "marks")
    assert ({"version": 2, "count": 3}, [0.0, 2.0, float(row_id(2, 19))]) == (message, np.frombuffer(buffer, np.float64).tolist())


@pytest.mark.parametrize("row", [20, row_id(2, 20), row_id(3, 0)])
def test_what_is_no_row_cannot_be_marked(browser, row):
    assert "IndexError" == refused(browser, "mark", add=[0, row])["type"]
    assert 0 == ask(browser, "marks")[0]["count"]


def test_what_a_search_shows_is_marked_unmarked_or_inverted(browser):
    number = browser.query.number

    def marked(**how):
        found, _ = ask(browser, "mark_shown", query=number, **how)
        return found["added"], found["dropped"], sorted(browser.shards.marks.rows)

    assert ([2, 3], [], [2, 3]) == marked(start=2, stop=4)
    assert ([4], [], [2, 3, 4]) == marked(start=3, stop=5, how="mark")
    assert ([1, 5], [2, 3, 4], [1, 5]) == marked(start=1, stop=6, how="invert")
    assert ([], [1], [5]) == marked(start=-3, stop=3, how="unmark")
    assert [59, 0, 60] == [len(rows) for rows in marked()]
    assert "E_CHANGED" == refused(browser, "mark_shown", query=number + 1)["code"]


def test_a_search_tells_its_wish(browser):
    found, _ = ask(browser, "search", sort="key", seed=3, shard=1, descending=True)
    told = {name: found[name] for name in ("where", "sort", "seed", "shard", "also", "descending", "words")}

    assert {"where": "", "sort": "key", "seed": 3, "shard": 1, "also": [], "descending": True, "words": []} == told
    assert found["python"] == browser.spec
    found, _ = ask(browser, "search", sort="label")
    assert "cls" == browser.query.wish.label


def test_only_the_marked_show(browser):
    ask(browser, "mark", add=[4, 2])
    shown_after(browser, only=True)

    assert [2, 4] == browser.query.ids(0, 9)


def test_a_search_of_more_than_lies_ahead_reads_on_and_one_that_is_over_does_not(browser):
    wants = browser.shards.scan._all
    wants.clear()
    for wish, reads in (({"sort": "key"}, True), ({}, False), ({"sort": "size"}, True), ({"shard": 1}, False)):
        shown_after(browser, **wish)
        assert reads is (browser.session in wants)
    shown_after(browser, sort="key")
    ask(browser, "stop")
    assert browser.session not in wants
    ask(browser, "go_on")
    assert {None} == wants


def test_a_shard_is_scanned_again_and_the_search_goes_on(browser):
    shown_after(browser, sort="key", descending=True, shard=1)
    before = browser.query
    found, _ = ask(browser, "again", shard=1)
    settle(browser)

    assert (before.wish, before.number) != (browser.query.wish, found["query"])
    assert before.wish == browser.query.wish
    assert 20 == len(browser.query)


def test_a_record_is_found_by_key_part_and_number(browser):
    asked = {"set/n000021": 21, "n000021": 21, "#21": 21, " #2 1 ": 21, "#0": 0}
    for text, position in asked.items():
        assert {"row": row_id(position // 20, position % 20), "position": position} == ask(browser, "find", text=text)[0]
    for text in ("none", "#60", "#-1", ""):
        assert f"No record {text!r} among 60." == refused(browser, "find", text=text)["msg"]


def test_of_records_of_one_key_it_is_the_one_that_shows_there(tmp_path):
    browser = settle(Browser([tar(tmp_path / f"{name}.tar", records(0, 3)) for name in "ab"], cache=False))

    assert {"row": 1, "position": 1} == ask(browser, "find", text="set/n000001")[0]
    assert {"row": row_id(1, 1), "position": 4} == ask(browser, "find", text="set/n000001", at=4)[0]
    assert {"row": 2, "position": 2} == ask(browser, "find", text="set/n000002", at=4)[0]
    assert {"row": row_id(1, 2), "position": 5} == ask(browser, "find", text="#5", at=5)[0]
    browser.close()


def test_the_call_compares_what_is_marked(tmp_path):
    browser = settle(Browser([tar(tmp_path / "a.tar", [(f"n{at:02d}", {"cls": b"1", "a.png": png()}) for at in range(14)])], cache=False))
    ask(browser, "mark", add=list(range(13)))
    found = ask(browser, "call", marked=True)[0]["python"]

    assert [f"n{at:02d}" in found for at in range(14)] == [True] * 12 + [False] * 2
    assert "'a.png'" in found
    assert ask(browser, "call")[0]["python"] == browser.spec
    browser.remember({"image": "cls"})
    assert "'a.png'" not in ask(browser, "call", marked=True)[0]["python"]
    browser.close()


def test_what_a_page_shows_beside_its_rows_is_remembered(browser):
    browser.remember({"selected": 3, "px": 96, "image": "png"})
    look = browser.session.look

    assert ("set/n000003", 96, "png") == (look.selected.key, look.px, look.image)
    browser.remember({"selected": 10**6, "px": 97})
    assert (None, 96, "") == (look.selected, look.px, look.image)
