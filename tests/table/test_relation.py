"""What a query gives: its rows in every form, run anew each time it is asked, with errors of ours."""

from __future__ import annotations

import re

import pytest

import tarviz
from tarviz.model.errors import UsageError
from tarviz.table.relation import Relation


@pytest.fixture
def table(make) -> tarviz.Table:
    return tarviz.table(make([(f"k{at}", {"cls": b"%d" % at, "txt": b"cat"}) for at in range(3)]))


def test_rows_in_every_form(table):
    found = table.sql("SELECT n, cls * 2 AS twice FROM records ORDER BY n")

    assert isinstance(found, Relation)
    rows = [(0, 0), (1, 2), (2, 4)]
    assert rows == found.fetchall() == list(found) == found.fetchall()
    assert {"n": [0, 1, 2], "twice": [0, 2, 4]} == found.to_arrow_table().to_pydict()
    assert (["n", "twice"], ["BIGINT", "BIGINT"], 3) == (found.columns, list(map(str, found.types)), len(found))
    assert ["n", "twice", "0", "0", "1", "2", "2", "4"] == [word for word in re.findall(r"\w+", repr(found)) if word != "int64"]


def test_what_is_asked_of_a_relation_gives_one_of_ours(table):
    found = table.sql("SELECT n, cls FROM records").filter("n > 0").order("n DESC")

    assert isinstance(found, Relation)
    assert [(2, 2), (1, 1)] == found.fetchall()
    assert [(2, 2)] == found.limit(1).fetchall()


def test_an_error_comes_in_our_words_when_the_rows_are_asked_for(table):
    found = table.sql("SELECT CAST(txt AS BIGINT) FROM records")

    for ask in (found.fetchall, found.to_arrow_table, lambda: list(found), lambda: repr(found)):
        with pytest.raises(UsageError, match="'cat' is no BIGINT"):
            ask()
    assert not hasattr(found, "nothing_of_that_name")
