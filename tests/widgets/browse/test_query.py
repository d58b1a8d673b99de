"""Which rows show, and in what order: held against a plain list, while shards are scanned and after, by the scan and by the table."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("duckdb", reason="a filter needs DuckDB: pip install 'tarviz[table]'")
pytest.importorskip("pyarrow", reason="a filter needs pyarrow: pip install 'tarviz[table]'")

from tarviz.model.errors import TarvizError, UsageError
from tarviz.widgets.browse import query as queries
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.browse.query import Query, ViewWish, find_row
from tarviz.widgets.browse.rows import row_id
from tests.conftest import wait_until
from tests.widgets.browse.test_controller import settle
from tests.widgets.conftest import tar

pytestmark = pytest.mark.filterwarnings("ignore:W_EMPTY")
COUNTS = (7, 0, 12, 5)
KEYS = {(shard, at): f"{'bca'[at % 3]}/{shard}{at:02d}" for shard, count in enumerate(COUNTS) for at in range(count)}
SIZES = {place: 1 + (place[0] * 31 + place[1] * 17) % 23 for place in KEYS}
ALL = [row_id(*place) for place in KEYS]
CHOSEN = tuple(row_id(*place) for place in [(2, 11), (0, 3), (2, 4), (9, 9), (0, 99), (3, 0)])


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("query")
    return [
        tar(
            folder / f"{shard}.tar",
            [(KEYS[shard, at], {"bin": bytes(SIZES[shard, at]), **({"cls": b"%d" % (at % 2)} if at % 4 else {})}) for at in range(count)],
        )
        for shard, count in enumerate(COUNTS)
    ]


@pytest.fixture(scope="module", params=[False, True], ids=["scan", "table"])
def browser(shards: list[Path], request: pytest.FixtureRequest):
    with contextlib.closing(settle(Browser(shards, cache=False))) as found:
        if request.param:
            assert found.shards.questions.table
        else:
            found.shards.questions.prepare = lambda **_: "none"
        yield found


def fits(row: int, where: str) -> bool:
    shard, at = row >> 32, row & 0xFFFFFFFF
    return {
        "": True,
        "has:cls": bool(at % 4),
        "not has:cls": not at % 4,
        "key like 'a/%'": KEYS[shard, at].startswith("a/"),
        "size(bin) > 9": SIZES[shard, at] > 9,
    }[where]


def expected(wish: ViewWish) -> list[int]:
    """The rows of a wish, by a plain list."""
    found = [row for row in ALL if all(fits(row, text) for text in (wish.where, *wish.also))]
    found = [row for row in found if wish.shard is None or row >> 32 == wish.shard]
    found = [row for row in found if wish.only is None or row in wish.only]
    found = [row for row in found if wish.area is None or row in wish.area.tolist()]
    found = [row for row in found if not wish.keys or KEYS[row >> 32, row & 0xFFFFFFFF] in wish.keys]
    place = [(row >> 32, row & 0xFFFFFFFF) for row in found]
    whole = [SIZES[each] + bool(each[1] % 4) for each in place]
    match wish.sort:
        case "key":
            order = sorted(range(len(found)), key=lambda at: KEYS[place[at]])
        case "size":
            order = sorted(range(len(found)), key=lambda at: -whole[at])
        case "random":
            order = np.random.default_rng(wish.seed).permutation(len(found)).tolist()
        case _:
            order = list(range(len(found)))
    return [found[at] for at in (order[::-1] if wish.descending else order)]


AREA = np.array(sorted(CHOSEN[:3]), np.int64)
WISHES = [
    {"where": where, "also": also, "sort": sort, "descending": descending, **narrow}
    for (where, also), (sort, descending), narrow in itertools.product(
        [("", ()), ("has:cls", ()), ("size(bin) > 9", ("key like 'a/%'",)), ("not has:cls", ())],
        [("order", False), ("order", True), ("key", False), ("key", True), ("random", False), ("random", True)],
        [
            {},
            {"shard": 2},
            {"only": CHOSEN},
            {"only": CHOSEN, "area": AREA},
            {"area": AREA, "shard": 0},
            {"keys": frozenset(["a/202", "b/000"])},
        ],
    )
]  # fmt: skip


@pytest.mark.parametrize("part", range(6))
def test_rows_are_those_of_a_plain_list_in_its_order(browser: Browser, part: int):
    for wish in WISHES[part::6]:
        asked = ViewWish(seed=3, **wish)
        query = Query(browser.shards.rows, asked, browser.shards.questions).start()
        wait_until(lambda query=query: query.done or query.wish.plain)

        assert (None, expected(asked)) == (query.error, query.ids(0, 99)), asked
        assert len(expected(asked)) == len(query)


def test_the_table_is_asked_for_what_takes_a_scan_long(browser: Browser, monkeypatch: pytest.MonkeyPatch):
    questions, asked = browser.shards.questions, []
    rows = questions.rows
    monkeypatch.setattr(questions, "rows", lambda *args, **more: (asked.append(True), rows(*args, **more))[1])
    by_table = [{"keys": frozenset(["a/202"])}, {"where": "has:cls"}, {"sort": "key"}, {"sort": "size", "shard": 2}]
    for wish in ({"shard": 2}, {"only": CHOSEN}, {"area": AREA}, {"descending": True}, *by_table):
        asked.clear()
        query = Query(browser.shards.rows, ViewWish(**wish), questions).start()
        wait_until(lambda query=query: query.done)

        assert [True] * (questions.ready and wish in by_table) == asked, wish


@pytest.mark.parametrize("descending", [False, True])
def test_by_size_the_largest_come_first(browser: Browser, descending: bool):
    query = Query(browser.shards.rows, ViewWish(sort="size", descending=descending), browser.shards.questions).start()
    wait_until(lambda: query.done)
    sizes = [sum(browser.shards.rows.row(row).sizes.values()) for row in query.ids(0, 99)]

    assert sorted(sizes, reverse=not descending) == sizes
    assert sorted(ALL) == sorted(query.ids(0, 99))


def test_by_a_label_that_is_none_they_lie_as_they_are(browser: Browser):
    query = Query(browser.shards.rows, ViewWish(sort="label"), browser.shards.questions).start()
    wait_until(lambda: query.done)

    assert ALL == query.ids(0, 99)


def test_where_a_row_shows_and_what_shows_at_a_place(browser: Browser):
    for wish in (ViewWish(), ViewWish(where="has:cls"), ViewWish(sort="key", descending=True)):
        query = Query(browser.shards.rows, wish, browser.shards.questions).start()
        wait_until(lambda query=query: query.done or query.wish.plain)
        rows = expected(wish)

        assert [rows.index(row) if row in rows else None for row in ALL] == [query.position(row) for row in ALL]
        for start, stop in ((0, 3), (5, 9), (8, 8), (20, 99), (99, 200)):
            assert rows[start:stop] == query.ids(start, stop)
        assert query.position(row_id(9, 0)) is None
        assert query.position(row_id(0, 7)) is None


def test_rows_of_many_records_are_taken_chunk_by_chunk(shards: list[Path], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(queries, "_CHUNK", 3)
    with contextlib.closing(settle(Browser(shards, cache=False))) as browser:
        browser.shards.questions.prepare = lambda **_: "none"
        for wish in (
            ViewWish(where="has:cls"),
            ViewWish(only=CHOSEN),
            ViewWish(where="has:cls", shard=2),
            ViewWish(keys=frozenset(KEYS.values())),
        ):
            query = Query(browser.shards.rows, wish, browser.shards.questions).start()
            wait_until(lambda query=query: query.done)

            assert expected(wish) == query.ids(0, 99)
            assert {ViewWish(where="has:cls"): 24, ViewWish(where="has:cls", shard=2): 12}.get(wish, query.checked) == query.checked


def test_as_many_are_found_as_there_are(tmp_path: Path):
    path = tar(tmp_path / "many.tar", [(f"k{at:05d}", {"a" if at % 3 else "b": b""}) for at in range(3100)])
    with contextlib.closing(settle(Browser(path, cache=False))) as browser:
        browser.shards.questions.prepare = lambda **_: "none"
        query = Query(browser.shards.rows, ViewWish(where="has:a"), browser.shards.questions).start()
        wait_until(lambda: query.done)

        assert [at for at in range(3100) if at % 3] == query.ids(0, 4000)


class TestWords:
    """What is looked for in texts is found in keys while shards are read."""

    def test_keys_show_before_all_is_read(self, shards: list[Path], monkeypatch: pytest.MonkeyPatch):
        with contextlib.closing(settle(Browser(shards, cache=False))) as browser:
            browser.shards.scan.close()
            rows = browser.shards.rows
            last = rows.shards[3]
            last.state, count, last.count = "scanning", last.count, 2
            query = Query(rows, ViewWish(where="A/2"), browser.shards.questions).start()
            wait_until(lambda: query.found == 4)

            assert (True, False, True, "A/2") == (query.by_keys, query.done, query.ordered, " ".join(query.words))
            assert [row_id(2, at) for at in (2, 5, 8, 11)] == query.ids(0, 9)
            wait_until(lambda: query.checked == 21)
            last.state, last.count = "done", count
            rows.touch(last)
            wait_until(lambda: query.done)
            assert not query.by_keys
            assert [row_id(2, at) for at in (2, 5, 8, 11)] == query.ids(0, 9)

    def test_rows_that_the_scan_has_not_come_to_show_when_it_has(self, shards: list[Path]):
        with contextlib.closing(settle(Browser(shards, cache=False))) as browser:
            browser.shards.scan.close()
            rows = browser.shards.rows
            last = rows.shards[3]
            last.state, count, last.count = "scanning", last.count, 2
            query = Query(rows, ViewWish(where="cls = 1"), browser.shards.questions).start()
            odd = [row for row in ALL if row & 1]
            wait_until(lambda: query.found == len(odd) - 1)

            assert (odd[:-1], False, False) == (query.ids(0, 99), query.done, query.by_keys)
            last.state, last.count = "done", count
            rows.touch(last)
            wait_until(lambda: query.done)
            assert odd == query.ids(0, 99)
            assert 24 == query.checked


class TestEnds:
    def test_what_goes_wrong_is_told_and_ends_it(self, shards: list[Path], monkeypatch: pytest.MonkeyPatch):
        def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError("a wheel came off")

        with contextlib.closing(settle(Browser(shards, cache=False))) as browser:
            monkeypatch.setattr(browser.shards.questions, "rows", fail)
            query = Query(browser.shards.rows, ViewWish(where="cls = 1"), browser.shards.questions).start()
            wait_until(lambda: query.done)

            assert isinstance(query.error, TarvizError)
            assert ("E_INTERNAL", "The search ended: RuntimeError: a wheel came off.") == (query.error.code, query.error.message)

    def test_one_that_was_stopped_keeps_what_it_found_and_has_no_error(self, shards: list[Path]):
        with contextlib.closing(settle(Browser(shards, cache=False))) as browser:
            browser.shards.scan.close()
            browser.shards.rows.shards[3].state = "scanning"
            query = Query(browser.shards.rows, ViewWish(where="has:cls"), browser.shards.questions).start()
            wait_until(lambda: query.found == 17)
            query.stop()
            wait_until(lambda: query.done)

            assert (None, 17) == (query.error, len(query.ids(0, 99)))


class TestFind:
    def test_a_key_a_part_of_it_a_number(self, browser: Browser):
        query = Query(browser.shards.rows, ViewWish(sort="key"), browser.shards.questions).start()
        wait_until(lambda: query.done)

        def find(text: str) -> int:
            return find_row(browser.shards.rows, query, text)

        assert row_id(2, 4) == find("c/204")
        assert row_id(0, 2) == find("a/")
        assert expected(ViewWish(sort="key"))[5] == find("#5") == find("# 5")
        for text in ("nobody", "", "#24", "#x"):
            with pytest.raises(UsageError, match=r"among 24\."):
                find(text)

    def test_part_of_a_key_is_found_in_every_shard(self, browser: Browser):
        assert row_id(3, 4) == find_row(browser.shards.rows, browser.query, "304")


def test_a_wish_says_what_it_asks():
    assert ("a", "b") == ViewWish(" a ", also=("", "b ")).conditions
    assert "" == ViewWish(" ").condition
    with pytest.raises(UsageError, match="There is no order 'colour'"):
        ViewWish(sort="colour")
    for wish in (
        {"where": "a"},
        {"also": ("a",)},
        {"sort": "key"},
        {"descending": True},
        {"shard": 0},
        {"only": ()},
        {"area": AREA},
        {"keys": frozenset("a")},
        {"objects": ()},
    ):
        assert not ViewWish(**wish).plain, wish
    assert ViewWish(seed=3, label="cls").plain
    assert [1, 3] == ViewWish(only=(3, 1, 3)).among.tolist()  # type: ignore[union-attr]
    assert ViewWish().among is None


@pytest.mark.parametrize("text", ["* = 1", "columns('(') = 1", "bin -> 'a' = 1", "columns('cls') = 1"])
def test_a_condition_of_a_field_that_no_scan_had_come_to_is_asked_of_the_table(
    shards: list[Path], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = queries.live
    monkeypatch.setattr(queries, "live", lambda text, fields: real(text, []))

    def found() -> str | list[int]:
        with contextlib.closing(Browser(shards, where=text, cache=False)) as browser:
            browser.wait(99, 60)
            wait_until(lambda: browser.query.done)
            assert isinstance(browser.query.error, UsageError | None)
            return browser.query.error.message if browser.query.error else browser.query.found_ids().tolist()

    early = found()
    monkeypatch.setattr(queries, "live", lambda text, fields: (None, ()))

    assert found() == early
