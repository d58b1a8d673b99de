"""What the record pane asks: the record with a panel, what lies over its picture, and a payload as it is played."""

from __future__ import annotations

import json

import pytest

from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.browse.record_pane.record_answers import media
from tests.widgets.browse.test_controller import ask, settle
from tests.widgets.conftest import png, tar

BOXES = json.dumps({"boxes": [[1, 2, 5, 6]], "labels": ["cat"]}).encode()


@pytest.fixture
def browser(tmp_path):
    records = [
        ("r0", {"png": png(), "json": BOXES, "cls": b"1", "txt": b"a cat"}),
        ("r1", {"png": b"no picture", "json": BOXES}),
        ("r2", {"wav": b"RIFF" + bytes(96)}),
    ]
    found = settle(Browser([tar(tmp_path / "s.tar", records)], cache=False, label="cls", classes=["dog", "cat"]))
    yield found
    found.close()


def test_a_record_comes_with_its_field_its_card_and_what_lies_over_its_picture(browser):
    message, buffers = ask(browser, "record", row=0)

    assert ("png", ["cls", "txt", "json"]) == (message["ext"], [item["ext"] for item in message["card"]["items"]])
    assert ["cat"] == list(message["colours"])
    assert message["over"]
    assert bytes(buffers[0]).startswith(b"\x89PNG")


def test_one_field_comes_alone(browser):
    message, _ = ask(browser, "record", row=0, ext="cls")

    assert ("cls", False, False) == (message["ext"], "card" in message, "over" in message)
    assert "cat" in json.dumps(message["panel"])
    assert "png" == ask(browser, "record", row=0, ext="none")[0]["ext"]


def test_a_picture_that_is_none_has_nothing_over_it(browser):
    message, _ = ask(browser, "record", row=1)

    assert ("png", "over" in message) == (message["ext"], False)


@pytest.mark.parametrize("path", ["", "0", "0/", "0/none", "9/png", "x/png", "-1/png", f"{1 << 40}/png"])
def test_what_is_no_payload_is_not_played(browser, path):
    assert media(browser.shards.rows, path) is None


def test_a_payload_is_read_where_it_is_played(browser):
    found = media(browser.shards.rows, "2/wav")

    assert ("audio/wav", 100, b"IFF") == (found.mime, found.size, found.read(1, 3))


def test_a_part_is_four_mebibytes_at_most(tmp_path):
    blob = bytes(range(256)) * (17 << 10)
    browser = settle(Browser([tar(tmp_path / "s.tar", [("r", {"bin": blob})])], cache=False))

    message, (data,) = ask(browser, "part", row=0, ext="bin", length=len(blob))
    assert ({"start": 0, "size": len(blob)}, blob[: 4 << 20]) == (message, bytes(data))
    assert blob[5 : 5 + (1 << 20)] == bytes(ask(browser, "part", row=0, ext="bin", start=5)[1][0])
    browser.close()


def test_columns_are_those_of_the_first_rows(tmp_path):
    records = [(f"n{at:02d}", {"txt" if at < 24 else "cls": b"x"}) for at in range(30)]
    browser = settle(Browser([tar(tmp_path / "s.tar", records)], cache=False))

    assert ["txt"] == ask(browser, "columns")[0]["columns"]
    browser.close()
