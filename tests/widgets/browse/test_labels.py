"""The line below a tile: the usual class or caption where nobody chose one, and its text for each record."""

from __future__ import annotations

import json

import pytest

from tarviz.widgets.browse import labels
from tarviz.widgets.browse.controller import Browser
from tests.widgets.browse.test_controller import ask, settle
from tests.widgets.conftest import png, tar


def rows_of(tmp_path, records):
    browser = settle(Browser([tar(tmp_path / "s.tar", records)], cache=False))
    return browser, [browser.shards.rows.row(row) for row in range(len(records))]


@pytest.mark.parametrize(
    ("fields", "shown", "label"),
    [
        ({"png": png(), "cls": b"3", "txt": b"a cat"}, "png", "cls"),
        ({"png": png(), "cls": b" \n", "txt": b"a cat"}, "png", "txt"),
        ({"txt": b"a cat"}, "txt", ""),
        ({"png": png(), "txt": b"0 0.5 0.5 1e-1,2"}, "png", ""),
        ({"png": png(), "txt": b"12 cats"}, "png", "txt"),
        ({"png": png(), "json": json.dumps({"label": {"a": 1}, "caption": "a cat"}).encode()}, "png", "json.caption"),
        ({"png": png(), "json": json.dumps({"label": 0}).encode()}, "png", "json.label"),
        ({"png": png(), "json": b"no json"}, "png", ""),
        ({"png": png()}, "png", ""),
    ],
)
def test_the_first_usual_place_that_says_something_is_the_label(tmp_path, fields, shown, label):
    browser, rows = rows_of(tmp_path, [("r", fields)])

    assert label == labels.Labels(None, {}).of(rows, [shown])
    browser.close()


def test_a_label_is_settled_by_the_first_four_rows(tmp_path):
    records = [(f"r{number}", {"png": png()} | ({"cls": b"3"} if number > 3 else {})) for number in range(6)]
    browser, rows = rows_of(tmp_path, records)
    found = labels.Labels(None, {})

    assert ("", None) == (found.of([], []), found.chosen)
    assert ("", "") == (found.of(rows, ["png"] * 6), found.chosen)
    assert "" == found.of(rows[4:], ["png"] * 2)
    assert "cls" == labels.Labels(None, {}).of(rows[1:], ["png"] * 5)
    assert "json.x" == labels.Labels("json.x", {}).of(rows, ["png"] * 6)
    assert "" == labels.Labels("", {}).of(rows[4:], ["png"] * 2)
    browser.close()


def test_texts_are_cut_named_and_kept_until_their_bytes_are_others(tmp_path, monkeypatch):
    records = [("r0", {"cls": b"1", "txt": b"x" * 300}), ("r1", {"cls": b"2", "txt": b"y"})]
    browser, rows = rows_of(tmp_path, records)
    found = labels.Labels("cls", {1: "cat"})
    path = labels.field_path("cls")

    assert ["", "1 cat", "2"] == [
        found.text(rows[0], "", None, {}),
        found.text(rows[0], "cls", path, {"cls": b"1"}),
        found.text(rows[1], "cls", path, {"cls": b"2"}),
    ]
    assert "x" * 200 == found.text(rows[0], "txt", labels.field_path("txt"), {"txt": b"x" * 300})
    assert "007" == found.text(rows[1], "txt", labels.field_path("txt"), {"txt": b"007\n"})
    assert "1 cat" == found.text(rows[0], "cls", path, {"cls": b"9"}) == found.find(rows[0], "cls")
    found.forget()
    assert found.find(rows[0], "cls") is None
    monkeypatch.setattr(labels, "_KEPT", 1)
    for row, blob in zip(rows, (b"1", b"2"), strict=True):
        found.text(row, "cls", path, {"cls": blob})
    assert (None, "2") == (found.find(rows[0], "cls"), found.find(rows[1], "cls"))
    browser.close()


def test_a_page_may_ask_for_another_or_for_none(tmp_path):
    browser, _ = rows_of(tmp_path, [("r", {"png": png(), "cls": b"3", "txt": b"a cat"})])
    for asked, label, text in ((None, "cls", "3"), ("", "", ""), ("txt", "txt", "a cat")):
        found, _ = ask(browser, "fetch", query=browser.query.number, start=0, stop=1, label=asked)
        assert (label, text) == (found["label"], found["rows"][0]["label"])
    browser.close()
