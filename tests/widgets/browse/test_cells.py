"""The table of a browser: columns as paths, usual ones first, and a cell for every value."""

from __future__ import annotations

import json

import pytest

from tarviz.model.errors import UsageError
from tarviz.widgets.browse import cells
from tarviz.widgets.browse.controller import Browser
from tests.widgets.browse.test_controller import ask, settle
from tests.widgets.conftest import png, tar

TREE = {
    "label": "cat",
    "w": 2.5,
    "a b": 1,
    "_x": True,
    "none": None,
    "deep": {"a": {"b": {"c": 1, "d": {"e": 1}}}},
    "list": ["é"],
    "far": float("nan"),
    "large": 10**400,
}


@pytest.fixture
def browser(tmp_path):
    records = [
        ("r0", {"png": png(), "txt": b"x" * 400, "cls": b"3", "json": json.dumps(TREE).encode(), "a-b": b"12", "key": b"k"}),
        ("r1", {"txt": b"short\nline", "json": b"no json", "new.json": b"[1, 2]"}),
        ("r2", {"bad.json": b"[" * 100_000, "z.json": b'{"last": 1}'}),
    ]
    found = settle(Browser([tar(tmp_path / "s.tar", records)], cache=False))
    yield found
    found.close()


def rows(browser, *ids):
    return [browser.shards.rows.row(row) for row in ids or (0, 1, 2)]


def test_columns_are_those_that_a_cell_can_hold_the_usual_ones_first(browser):
    found = cells.columns(rows(browser))

    assert ["cls", "json.label", "txt"] == found[:3]
    assert {"json.w", 'json["a b"]', 'json["_x"]', "json.none", "json.deep.a.b.c", "json.far", "json.large"} <= set(found)
    assert not [name for name in found if name.startswith(("json.deep.a.b.d", "json.list"))]
    assert "z.json.last" in found  # behind two that are no JSON
    assert 'size(field("a-b"))' in found
    assert 'size(field("key"))' in found
    assert "size(png)" in found
    assert found == sorted(found, key=lambda name: name.startswith("size("))


def test_no_more_are_offered_than_a_table_holds(tmp_path):
    tree = json.dumps({f"n{number}": number for number in range(100)}).encode()
    browser = settle(Browser([tar(tmp_path / "many.tar", [("r", {"json": tree, "cls": b"1"})])], cache=False))

    assert ["cls", *(f"json.n{number}" for number in range(cells.MOST - 1))] == ask(browser, "columns")[0]["columns"]
    assert 40 == cells.MOST
    browser.close()


def test_a_shard_that_is_gone_hides_no_column_of_another(tmp_path):
    shards = [tar(tmp_path / f"{name}.tar", [(name, {"json": b'{"%s": 1}' % name.encode()})]) for name in "ab"]
    browser = settle(Browser(shards, cache=False))
    shards[0].unlink()

    assert ["json.b"] == cells.columns(rows(browser, *browser.shards.rows.ids(0, 2)))
    browser.close()


def test_a_cell_is_a_value_that_a_page_can_hold(browser):
    asked = ["cls", "txt", "json.w", 'json["_x"]', "json.none", "json.list", "json.far", "json.large", "size(png)"]

    found = cells.cells(rows(browser), asked)

    assert ["3", 3][isinstance(found[0][0], int)] == found[0][0]
    assert ["x" * 300 + "…", 2.5, True, None, '["é"]', "NaN", str(10**400)[:300] + "…", len(png())] == found[0][1:]
    assert [None, "short\nline", *[None] * 7] == found[1]
    assert [None] * 9 == found[2]


def test_what_is_no_column_is_refused(browser):
    with pytest.raises(UsageError):
        cells.cells(rows(browser), ["cls ="])


def test_a_page_gets_two_hundred_rows_at_once_and_none_of_an_old_search(tmp_path):
    browser = settle(
        Browser([tar(tmp_path / "s.tar", [(f"n{number:03d}", {"cls": b"%d" % number}) for number in range(210)])], cache=False)
    )
    number = browser.query.number

    found, _ = ask(browser, "cells", query=number, start=5, stop=10**6, columns=["cls"])
    assert (number, True, 5, 200) == (found["query"], found["ordered"], found["start"], len(found["rows"]))
    assert ["n005", "n204"] == [found["rows"][at]["key"] for at in (0, -1)]
    found, _ = ask(browser, "cells", query=number, start=2, stop=4, columns=["index"] * (cells.MOST + 1))
    assert [[2] * cells.MOST, [3] * cells.MOST] == [row["cells"] for row in found["rows"]]
    old = number + 1
    assert {"query": old, "start": 2, "rows": [], "stale": True} == ask(browser, "cells", query=old, start=2, stop=4, columns=["cls"])[0]
    browser.close()
