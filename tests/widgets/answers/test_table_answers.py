"""The browser through the table: facets that equal SQL, filters that add up, sorting by columns, completion, why nothing fits."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")

import tarviz
from tarviz.read.stream import ReadOptions
from tarviz.table.making import shard_columns
from tarviz.widgets.answers import questions
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.browse.rows import Rows
from tests.widgets.browse.test_controller import ask, settle, shown
from tests.widgets.conftest import png, records, tar


@pytest.fixture
def browser(shards):
    found = settle(Browser(shards, cache=False))
    assert found.shards.questions.wait(60)
    yield found
    found.close()


@pytest.fixture
def odd(tmp_path):
    """Records of every kind of column: numbers with a long tail, texts, truths, lists, words of SQL as names, JSON that is none."""
    draw = np.random.default_rng(3)
    found = []
    for at in range(300):
        value = {"area": float(draw.pareto(0.6) * 100 + 1), "score": float(draw.normal()), "ok": bool(at % 3), "tags": ["a"] * (at % 4)}
        value |= {"order": at % 5, "meta": {"a b": f"name {at % 7}", "it's": at}, "mixed": at if at % 2 else f"t{at}"}
        fields = {"json": json.dumps(value).encode() if at % 50 else b"{broken", "txt": f"caption {at}".encode()}
        found.append((f"k{at:04d}", fields if at % 11 else {"txt": b"alone"}))
    return tar(tmp_path / "odd.tar", found)


def by_sql(table, column, where):
    """The figures of a column as SQL says them."""
    (row,) = table.arrow(
        f"SELECT count(*) r, count(*) - count({column}) m, count(DISTINCT {column}) d FROM records WHERE {where}"
    ).to_pylist()
    return row["r"], row["m"], row["d"]


def look(browser, name):
    """The facet of a column, made where it is not there yet."""
    if "making" in ask(browser, "facet", column=name, number=browser.query.number)[0]:
        assert browser.shards.questions.wait(60)
    return ask(browser, "facet", column=name, number=browser.query.number)[0]


def in_bars(table, facet, where):
    """How many records the conditions of the bars choose."""
    counts = ", ".join(f"count(*) FILTER (({table.condition(bar['where'])}) AND ({where}))" for bar in facet["bars"])
    return list(table.fetch(f"SELECT {counts} FROM records")[0])


OF_EACH_KIND = ["json.area", "json.score", "json.ok", "json.tags", 'json."order"', 'json.meta."a b"', "json.mixed", "txt", "json.bad"]


class TestFacets:
    @pytest.fixture
    def looked(self, odd):
        with contextlib.closing(settle(Browser(odd, cache=False))) as browser:
            assert browser.shards.questions.wait(60)
            yield browser

    @pytest.mark.parametrize("where", ["", "json.score > 0", "caption 1"])
    @pytest.mark.matrix
    def test_figures_of_every_column_equal_sql(self, looked, where):
        shown(looked, where)
        table = looked.shards.questions.table
        kept = ", ".join(f"'k{n:04d}'" for n in table.rows(where).n)
        names = [column["name"] for column in ask(looked, "facets")[0]["columns"]]

        assert {*OF_EACH_KIND, "size", "json.size", "txt.size"} <= set(names)
        for name in names:
            facet = look(looked, name)
            for side, chosen in (("all", "true"), ("kept", f"key IN ({kept})")):
                assert by_sql(table, name, chosen) == tuple(facet[side][each] for each in ("records", "missing", "distinct")), name

    @pytest.mark.parametrize("name", OF_EACH_KIND)
    def test_a_bar_counts_the_records_that_its_condition_chooses(self, looked, name):
        shown(looked, "json.score > 0")
        table = looked.shards.questions.table
        facet, _ = ask(looked, "facet", column=name, number=looked.query.number)

        assert in_bars(table, facet, "true") == [bar["all"] for bar in facet["bars"]]
        assert in_bars(table, facet, table.condition("json.score > 0")) == [bar["kept"] for bar in facet["bars"]]

    def test_bars_grow_by_a_factor_where_a_few_values_are_very_large(self, looked):
        assert ask(looked, "facet", column="json.area")[0]["log"]
        assert not ask(looked, "facet", column="json.score")[0]["log"]

    def test_the_label_comes_first_and_class_numbers_have_their_names(self, shards):
        with contextlib.closing(settle(Browser(shards, cache=False, classes=["cat", "dog", "owl"]))) as browser:
            assert browser.shards.questions.wait(60)
            browser.first()
            names = [column["name"] for column in ask(browser, "facets")[0]["columns"]]
            bars = ask(browser, "facet", column="cls")[0]["bars"]

        assert "cls" == names[0]
        assert [("0 cat", 20), ("1 dog", 20), ("2 owl", 20)] == [(bar["text"], bar["all"]) for bar in bars]

    def test_a_column_that_was_not_made_is_made_when_it_is_looked_at(self, browser):
        before = {column["name"]: column["type"] for column in ask(browser, "facets")[0]["columns"]}
        first, _ = ask(browser, "facet", column="png.width")
        assert browser.shards.questions.wait(60)
        facet, _ = ask(browser, "facet", column="png.width")

        assert {"making": True} == first
        assert "" == before["png.width"]
        assert [("12", 60)] == [(bar["text"], bar["all"]) for bar in facet["bars"]]
        assert "integer" == {column["name"]: column["type"] for column in ask(browser, "facets")[0]["columns"]}["png.width"]

    def test_a_shard_that_is_chosen_is_part_of_the_filter(self, browser):
        shown(browser, "cls = 1", shard=1)
        facet, _ = ask(browser, "facet", column="cls", number=browser.query.number)

        assert (60, 6) == (facet["all"]["records"], facet["kept"]["records"])

    def test_of_a_query_that_is_over_none_are_sent(self, browser):
        shown(browser, "cls = 1")

        assert {"stale": True} == ask(browser, "facet", column="cls", number=browser.query.number - 1)[0]

    def test_large_shards_are_not_read_unasked(self, shards, monkeypatch):
        monkeypatch.setattr(questions, "MOST_READ", 1000)
        with contextlib.closing(settle(Browser(shards, cache=False))) as browser:
            before = ask(browser, "poll")[0]["table"]
            ask(browser, "prepare")
            assert browser.shards.questions.wait(60)

            assert ("costly", sum(shard.stat().st_size for shard in shards)) == (before["state"], before["bytes"])
            assert "ready" == ask(browser, "poll")[0]["table"]["state"]


@pytest.mark.parametrize(
    ("names", "words"), [([], "There are no shards yet"), (["-"], "Standard input"), (["s-0.tar", "s-1.tar", "s-0.tar"], "named twice")]
)
def test_what_cannot_be_asked_is_said(shards, names, words):
    with contextlib.closing(Browser([str(shards[0].parent / name) if name != "-" else name for name in names], cache=False)) as browser:
        assert words in str(browser.shards.questions.refused)
        assert {"reasons": []} == ask(browser, "why")[0]


def test_what_ends_the_reading_of_columns_is_told(shards, monkeypatch):
    monkeypatch.setattr(shard_columns, "make_columns", lambda *_, **__: 1 / 0)
    with contextlib.closing(settle(Browser(shards, cache=False))) as browser:
        assert not browser.shards.questions.wait(60)

        assert "Columns cannot be read: ZeroDivisionError" in str(browser.shards.questions.failed)


class TestGrowing:
    """What a column holds while it is being read."""

    @pytest.fixture
    def gate(self, monkeypatch):
        """Set to let the shards behind the first one be read."""
        found, real = threading.Event(), shard_columns.make_columns

        def made(url, options, parts, **more):
            if not url.endswith("s-0.tar") and any(part.tier == "value" for part in parts):
                assert found.wait(60)
            return real(url, options, parts, **more)

        monkeypatch.setattr(shard_columns, "make_columns", made)
        yield found
        found.set()

    def until(self, browser, name, **found):
        """The facet when it says what is wished for."""
        for _ in range(2000):
            facet = ask(browser, "facet", column=name, number=browser.query.number)[0]
            if found.items() <= facet.items():
                return facet
            with browser.shards.rows.changed:
                browser.shards.rows.changed.wait(0.01)
        raise AssertionError(f"{facet} does not become {found}")

    @pytest.mark.parametrize("where", ["", "key like '%7'"])
    @pytest.mark.matrix
    def test_it_is_exact_for_the_records_that_were_read(self, shards, gate, where):
        with contextlib.closing(settle(Browser(shards, cache=False))) as browser:
            browser.session.search(where)
            assert "making" == ask(browser, "poll")[0]["table"]["state"]
            part = self.until(browser, "json.w", of=20)
            columns = {column["name"]: column["type"] for column in ask(browser, "facets")[0]["columns"]}
            first = tarviz.table(shards[0])
            state = ask(browser, "poll")[0]["table"]["state"]
            gate.set()
            whole = self.until(browser, "json.w", of=None)

            assert "making" == state
            assert ("bigint", "varchar", "") == (columns["json.w"], columns["json.label"], columns["png.width"])
            for side, chosen in (("all", "true"), ("kept", first.condition(where))):
                assert by_sql(first, "json.w", chosen) == tuple(part[side][each] for each in ("records", "missing", "distinct"))
            assert 60 == whole["all"]["records"]

    def test_the_last_word_is_of_all_records(self, shards, gate):
        with contextlib.closing(settle(Browser(shards, cache=False))) as browser:
            self.until(browser, "json.w", of=20)
            version = ask(browser, "poll")[0]["table"]["version"]
            gate.set()
            assert browser.shards.questions.wait(60)

            assert version < ask(browser, "poll")[0]["table"]["version"]
            assert {"of": None}.items() <= ask(browser, "facet", column="json.w")[0].items()

    def test_while_shards_are_scanned_they_are_read_where_they_are_asked_for(self, shards, monkeypatch):
        monkeypatch.setattr(Rows, "finished", property(lambda _: False))
        with contextlib.closing(Browser(shards, cache=False)) as browser:
            assert "scanning" == ask(browser, "poll")[0]["table"]["state"]
            assert ask(browser, "prepare")[0]["state"] in ("making", "ready")

    def test_columns_are_read_beside_a_scan_that_takes_long(self, shards, monkeypatch):
        monkeypatch.setattr(questions, "SOON", 0.0)
        monkeypatch.setattr(Rows, "finished", property(lambda _: False))
        with contextlib.closing(Browser(shards, cache=False)) as browser:
            assert self.until(browser, "cls", of=None)["all"]["records"] == 60


class TestFilters:
    def test_clicks_add_up_with_what_was_typed(self, browser):
        both = shown(browser, "n0000", also=["cls = 1", "json.w >= 300 and json.w < 500"])

        assert [f"set/n{at:06d}" for at in range(30, 50) if at % 3 == 1 and at % 7] == both

    def test_an_or_that_was_clicked_stays_together(self, browser):
        assert 20 == len(shown(browser, "cls = 1", also=["cls = 1 or cls = 2 -- both"]))

    @pytest.mark.matrix
    def test_the_table_and_the_scan_give_the_same(self, shards):
        with contextlib.closing(settle(Browser(shards, cache=False))) as browser:
            browser.shards.questions.prepare = lambda **_: "none"
            texts = ["key:n0000", "has:json", "not has('json')", "size(png) > 70 and has:cls", "key == 'set/n000003'"]
            orders = [{"sort": "key"}, {"sort": "size"}, {"sort": "size", "descending": True}, {"sort": "order", "descending": True}]
            scanned = [shown(browser, text) for text in texts] + [shown(browser, **order) for order in orders[:1]]
            assert not browser.shards.questions.ready
            assert browser.shards.questions.table
            asked = [shown(browser, text) for text in texts] + [shown(browser, **order) for order in orders[:1]]
            sizes = [[browser.shards.rows.row(row).sizes for row in browser.query.ids(0, 99)] for _ in [shown(browser, **orders[1])]]

        assert scanned == asked
        assert sorted((sum(each.values()) for each in sizes[0]), reverse=True) == [sum(each.values()) for each in sizes[0]]

    def test_by_any_column_both_ways_what_is_missing_stays_behind(self, browser):
        up = shown(browser, sort="label", label="json.w")
        down = shown(browser, sort="label", label="json.w", descending=True)
        without = [f"set/n{at:06d}" for at in range(0, 60, 7)]

        assert [f"set/n{at:06d}" for at in range(60) if at % 7] + without == up
        assert [f"set/n{at:06d}" for at in reversed(range(60)) if at % 7] + without == down

    def test_a_wrong_column_is_named_with_the_nearest(self, browser):
        browser.session.search("json.labl = 'cat'")
        settle(browser)

        assert "json.label" in ask(browser, "poll")[0]["query"]["error"]
        assert "cannot be read" in ask(browser, "search", sort="label", label="json.label +")[0]["msg"]

    @pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
    def test_a_damaged_shard_and_one_that_is_gone_do_not_hinder(self, shards):
        data = shards[1].read_bytes()
        shards[1].write_bytes(data[: len(data) // 2])
        with contextlib.closing(settle(Browser(shards, cache=False))) as browser:
            shards[2].unlink()
            browser.shards.questions.forget()
            found = shown(browser, "cls = 1")
            known = [browser.shards.rows.row(row).key for row in browser.shards.rows.ids(0, 100) if row >> 32 < 2]

        assert [key for key in known if int(key[-6:]) % 3 == 1] == found

    def test_a_shard_that_was_replaced_is_asked_anew_when_it_is_scanned_again(self, browser, shards):
        assert 20 == len(shown(browser, "cls = 1"))
        tar(shards[0], records(100, 30))
        ask(browser, "again", shard=0)
        settle(browser)

        assert 25 == len(shown(browser, "cls = 1 or json.w > 1270"))

    def test_keys_of_a_list_are_the_only_ones(self, shards, tmp_path):
        (tmp_path / "keys.txt").write_text("set/n000003\nset/n000041\nset/n000005\n")
        with contextlib.closing(settle(Browser(shards, cache=False, keys=str(tmp_path / "keys.txt")))) as browser:
            assert ["set/n000003", "set/n000005", "set/n000041"] == [browser.shards.rows.row(row).key for row in browser.query.ids(0, 9)]
            assert ["set/n000005", "set/n000041"] == shown(browser, "cls = 2")


class TestCompletion:
    def complete(self, browser, text, **more):
        found, _ = ask(browser, "complete", text=text, at=len(text), **more)
        return text[: found["start"]], [word for word, _ in found["items"]]

    @pytest.mark.parametrize(
        ("text", "before", "words"),
        [
            ("json.l", "", {"json.label"}),
            ("cls = 1 and json.", "cls = 1 and ", {"json.label", "json.w", "json.meta.n", "json.size", "json.bad"}),
            ("json.label = ", "json.label = ", {"'cat'", "'dog'", "'owl'"}),
            ("json.label = 'd", "json.label = ", {"'dog'"}),
            ("cls in (1, ", "cls in (1, ", {"0", "1", "2"}),
            ("has:j", "has:", {"json"}),
            ("size(p", "size(", {"png)"}),
            ("star", "", {"starts_with("}),
        ],
    )
    def test_columns_functions_and_values(self, browser, text, before, words):
        found = self.complete(browser, text)

        assert (before, words) == (found[0], words & set(found[1]))

    @pytest.mark.parametrize(
        ("state", "making"), [("making", True), ("scanning", True), ("ready", False), ("costly", False), ("none", False)]
    )
    def test_it_says_whether_a_later_answer_may_tell_more(self, browser, monkeypatch, state, making):
        monkeypatch.setattr(browser.shards.questions, "prepare", lambda: state)

        assert making == ask(browser, "complete", text="json.l", at=6)[0]["making"]

    def test_tags_that_there_are(self, browser):
        browser.shards.questions.table.tags.add("cls = 1", "blurred")

        assert ("not is:", ["blurred"]) == self.complete(browser, "not is:bl")

    def test_a_label_is_a_column(self, browser):
        assert ("", ["json.label"]) == self.complete(browser, "json.l", label=True)


class TestWhy:
    def reasons(self, browser, where, **more):
        assert [] == shown(browser, where, **more)
        return ask(browser, "why")[0]["reasons"]

    def test_the_range_of_a_number(self, browser):
        (first, second) = self.reasons(browser, "cls = 1 and json.w > 5000")

        assert ["json.w > 5000", 0, 20, "json.w is 10 … 590"] == first
        assert ["cls = 1", 20, 0, ""] == second

    def test_the_nearest_value_of_a_text_and_the_values_there_are(self, browser):
        assert "json.label has 'dog'" == self.reasons(browser, "json.label = 'dgo'")[0][3]
        assert "cls is one of 0, 1, 2" == self.reasons(browser, "cls = 7")[0][3]

    def test_conditions_that_fit_alone_and_not_together(self, browser):
        assert [["cls = 1", 20, 20, ""], ["json.label = 'cat'", 17, 20, ""]] == sorted(
            [each[0], each[1], max(each[2], 20), each[3]] for each in self.reasons(browser, "cls = 1", also=["json.label = 'cat'"])
        )


class TestWithoutTheTable:
    """Where DuckDB or pyarrow is not installed."""

    @pytest.fixture
    def plain(self, shards, monkeypatch):
        monkeypatch.setattr(questions, "find_spec", lambda name: None if name == "duckdb" else sys)
        found = settle(Browser(shards, cache=False))
        yield found
        found.close()

    def test_rows_are_sorted_by_size(self, plain):
        assert 60 == len(shown(plain, sort="size"))

    @pytest.mark.parametrize("where", ["cls = 1", "n000007", "has:json"])
    def test_every_condition_says_what_to_install(self, plain, where):
        error, _ = ask(plain, "search", where=where)
        state = ask(plain, "poll")[0]["table"]

        assert ("MissingPackageError", "pip install 'tarviz[table]'") == (error["type"], error["hint"])
        assert "none" == state["state"]
        assert "pip install 'tarviz[table]'" in state["note"]
        assert "MissingPackageError" == ask(plain, "facets")[0]["type"]

    def test_fields_are_completed(self, plain):
        assert [["json", "field"]] == ask(plain, "complete", text="has:j", at=5)[0]["items"]


def test_columns_are_read_for_a_filter_on_a_stream(tmp_path):
    import gzip

    path = tmp_path / "s.tar.gz"
    path.write_bytes(
        gzip.compress(tar(tmp_path / "s.tar", [(f"k{at}", {"png": png(), "cls": b"%d" % (at % 2)}) for at in range(900)]).read_bytes())
    )
    with contextlib.closing(Browser(path, cache=False, where="cls = 1")) as browser:
        settle(browser)

        assert 450 == len(browser.query)


def test_what_was_made_within_half_a_second_of_the_last_news_is_news_too(browser, monkeypatch):
    """A shard is done just after another; if nothing follows for a minute, a page shows it all the same."""
    now = [100.0]
    monkeypatch.setattr(questions, "time", SimpleNamespace(monotonic=lambda: now[0]))
    asked = questions.Questions(browser.shards.rows, ReadOptions())
    asked._progress(1, 9)
    first = asked.version
    now[0] += questions.TELL / 2
    asked._progress(2, 9)
    between = asked.version
    now[0] += questions.TELL

    assert (first, first + 1, first + 1) == (between, asked.version, asked.version)
