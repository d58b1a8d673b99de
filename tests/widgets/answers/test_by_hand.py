"""Views by name and the shards opened last: kept in the data folder, for their owner, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat

import pytest

from tarviz.model.config import options
from tarviz.model.errors import UsageError
from tarviz.widgets.answers import by_hand
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.host.rpc import answer
from tests.widgets.conftest import records, tar


@pytest.fixture(autouse=True)
def home(tmp_path):
    with options(data_dir=tmp_path / "data"):
        yield tmp_path / "data"


@pytest.fixture
def browser(tmp_path):
    found = Browser([tar(tmp_path / "a.tar", records(0, 3))], cache=False)
    yield found
    found.close()


def asked(browser, request, session="one", **message):
    found = answer(browser, {"name": request, "session": session, "msg": message})
    if "err" in found[0]:
        raise UsageError(found[0]["err"]["msg"])
    return found[0]["r"]


class TestViews:
    def test_a_view_is_there_for_every_page_and_the_next_time(self, browser, tmp_path, monkeypatch):
        asked(browser, "save_view", name="cats", address="where=cls+%3D+1")
        monkeypatch.chdir(tmp_path)
        again = Browser(["./a.tar"], cache=False)

        assert {"views": {"cats": "where=cls+%3D+1"}} == asked(browser, "views", session="two") == asked(again, "views")
        again.close()

    def test_a_name_is_replaced_and_dropped(self, browser):
        asked(browser, "save_view", name="b", address="1")
        asked(browser, "save_view", name=" b ", address="2")

        assert {"a": "3", "b": "2"} == asked(browser, "save_view", name="a", address="3")["views"]
        assert {"a": "3"} == asked(browser, "drop_view", name="b")["views"]

    @pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\nb"])
    def test_a_name_that_cannot_be_shown_is_refused(self, browser, name):
        with pytest.raises(UsageError, match="not a name"):
            asked(browser, "save_view", name=name, address="")

    def test_the_file_is_its_owners(self, browser, home):
        asked(browser, "save_view", name="cats", address="")
        (file,) = (home / "views").iterdir()

        assert 0o600 == stat.S_IMODE(file.stat().st_mode)

    def test_a_file_that_is_no_json_holds_none(self, browser, home):
        asked(browser, "save_view", name="cats", address="")
        (file,) = (home / "views").iterdir()
        file.write_text("[1, ")

        assert {} == asked(browser, "views")["views"]


class TestOpened:
    def test_the_latest_is_first_and_each_is_there_once(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for text in ("a.tar", "https://user:pw@host/b.tar", "a.tar"):
            by_hand.keep_latest(text)

        assert [os.fspath(tmp_path / "a.tar"), "https://host/b.tar"] == [text.replace("***@", "") for text in by_hand.latest()]
        assert not any("pw" in text for text in by_hand.latest())

    def test_a_page_that_cannot_open_says_so(self, browser):
        with pytest.raises(UsageError, match="Nothing else can be opened"):
            asked(browser, "open", url="b.tar")

    @pytest.mark.parametrize("text", ["{}", '"a.tar"', "no json", "[" * 100_000])
    def test_a_file_that_holds_no_list_holds_none(self, home, text):
        home.mkdir()
        (home / "opened.json").write_text(text)

        assert [] == by_hand.latest()

    def test_twelve_are_kept_for_their_owner(self, home):
        for number in range(14):
            by_hand.keep_latest(f"https://host/{number}.tar")

        assert [f"https://host/{number}.tar" for number in range(13, 1, -1)] == by_hand.latest()
        assert (0o600, 0o700) == (stat.S_IMODE((home / "opened.json").stat().st_mode), stat.S_IMODE(home.stat().st_mode))

    def test_a_home_that_cannot_be_written_is_no_hindrance(self, home):
        home.write_text("a file")
        by_hand.keep_latest("a.tar")

        assert [] == by_hand.latest()

    def test_what_a_page_opens_is_on_the_list(self, browser, tmp_path):
        opened = []
        browser.first("one")
        browser.session_of("one").views.opener = lambda url: opened.append(url) or "/1/"

        assert {"address": "/1/"} == asked(browser, "open", url=f" {tmp_path}/b.tar ")
        assert ([f"{tmp_path}/b.tar"], {"recent": [f"{tmp_path}/b.tar"]}) == (opened, asked(browser, "recent"))
        with pytest.raises(UsageError, match="Which shards"):
            asked(browser, "open", url=" ")


class TestViewsInAll:
    def test_there_are_two_hundred_at_most(self, browser, monkeypatch):
        assert 200 == by_hand.MOST_VIEWS
        monkeypatch.setattr(by_hand, "MOST_VIEWS", 2)
        for name in ("a", "b", "a"):
            asked(browser, "save_view", name=name, address="")

        with pytest.raises(UsageError, match="There are 2 views already"):
            asked(browser, "save_view", name="c", address="")
        assert ["a", "b"] == list(asked(browser, "views")["views"])

    @pytest.mark.parametrize(("name", "address", "kept"), [("x" * 100, "y" * 20_000, True), ("x", "y" * 20_001, False)])
    def test_names_and_addresses_have_a_length(self, browser, name, address, kept):
        with contextlib.nullcontext() if kept else pytest.raises(UsageError, match="not a name for a view"):
            assert {name: address} == asked(browser, "save_view", name=name, address=address)["views"]
