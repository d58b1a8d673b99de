"""Why a filter fits nothing: each part of it, and what its column holds."""

from __future__ import annotations

import json

import pytest

import tarviz
from tarviz.table.why import Reason, reasons


@pytest.fixture
def table(make) -> tarviz.Table:
    texts = ["cat", "dog"]
    values = [{"w": at, "one": 1, "none": None, "far": 10**9 + at, "list": [at]} for at in range(30)]
    return tarviz.table(
        make([
            (f"k{at:02}", {"cls": b"%d" % (at % 10), "txt": texts[at % 2].encode(), "json": json.dumps(value).encode()})
            for at, value in enumerate(values)
        ])
    )  # fmt: skip


def test_each_condition_alone_and_what_fits_without_it(table):
    assert [
        Reason("cls = 77", 0, 0, "cls is one of 0, 1, 2, 3, 4, 5, 6, 7 and 2 more"),
        Reason("json.w > 99", 0, 0, "json.w is 0 … 29"),
        Reason("n < 5", 5, 0),
        Reason("txt = 'cat'", 15, 0),
    ] == reasons(table, ["txt = 'cat' and cls = 77", "json.w > 99 and n < 5"])
    assert [Reason("cls = 3", 3, 5), Reason("n < 5", 5, 3)] == reasons(table, ["cls = 3 and n < 5"])
    assert [] == reasons(table, [])


def test_what_the_column_of_a_condition_holds(table):
    for where, said in [
        ("txt = 'cot'", "txt has 'cat'"),
        ("txt = 'zzzz'", "txt is one of cat, dog"),
        ("json.one = 5", "json.one is 1"),
        ("json.none = 1", "no record has json.none"),
        ("json.far = 1", "json.far is 1e+09 … 1e+09"),
        ("key = 'k77'", ""),
        ("1 = 2", ""),
        ("size(wav) > 1", ""),
        ("nothing that is said", ""),
    ]:
        assert [Reason(where, 0, 30, said)] == reasons(table, [where])


def test_an_or_is_one_condition_and_of_very_many_the_first_are_looked_at(table):
    assert [Reason("cls = 77 or txt = 'x'", 0, 30, "cls is one of 0, 1, 2, 3, 4, 5, 6, 7 and 2 more")] == reasons(
        table, ["cls = 77 or txt = 'x'"]
    )
    assert [f"n >= {at}" for at in range(12)] == sorted(
        (reason.text for reason in reasons(table, [f"n >= {at}" for at in range(14)])), key=lambda text: int(text[5:])
    )


def test_a_part_that_cannot_be_read_alone_is_left_in_its_whole(table):
    text = "txt = $$cat and dog$$"

    assert [Reason(text, 0, 30, "txt is one of cat, dog")] == reasons(table, [text])
