"""The label doctor: the matrix as it is printed, its cells as conditions, the mistakes by confidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tarviz
from tarviz.table import labels
from tarviz.table.labels import confusion

SEEN = [("10", 10, 0.9), ("10", 9, 0.6), ("9", 9, 0.8), ("9", 10, 0.99), ("it's", "it's", 0.5), ("10", None, 1), ("it's", 9, 0.1)]


@pytest.fixture
def path(make) -> Path:
    return make(
        [
            (f"k{at}", {"cls": truth.encode(), "json": json.dumps({"pred": said, "conf": sure}).encode()})
            for at, (truth, said, sure) in enumerate(SEEN)
        ]
    )


def test_the_matrix_is_printed(path):
    found = confusion(tarviz.table(path))

    assert (["9", "10", "it's"], [[1, 1, 0], [1, 1, 0], [1, 0, 1]]) == (found.labels, found.counts)
    assert str(found) == repr(found)
    assert str(found).splitlines() == [
        "          9    10  it's",
        "    9     1     1     0",
        "   10     1     1     0",
        " it's     1     0     1",
        "accuracy 0.5000: rows are cls, columns json.pred",
    ]


@pytest.mark.parametrize(("label", "count", "width"), [("a long one", 1, 10), ("b", 12_345_678, 8)])
def test_the_columns_are_as_wide_as_their_longest_word(path, label, count, width):
    lines = str(labels.Confusion(tarviz.table(path), "cls", "cls", [label, "c"], [[0, count], [3, 4]])).splitlines()[:3]

    assert [["", label, "c"], [label, "0", str(count)], ["c", "3", "4"]] == [
        [line[at : at + width].strip() for at in range(0, len(line), width + 1)] for line in lines
    ]
    assert {3 * width + 2} == {*map(len, lines)}


def test_a_cell_is_a_condition_and_the_surest_mistakes_come_first(path):
    table = tarviz.table(path)
    found = confusion(table)

    assert "cast(cls as varchar) = 'it''s' and cast(json.pred as varchar) = '9'" == found.cell("it's", "9")
    assert [6] == table.rows(found.cell("it's", "9")).n.tolist()
    assert [3, 1, 6] == found.mistakes("json.conf").n.tolist()
    assert [1, 3] == found.mistakes(count=2).n.tolist()


def test_a_part_of_the_records_has_a_matrix_of_its_own(path):
    table = tarviz.table(path)
    found = confusion(table, where="n < 3 or n > 5")

    assert (["9", "10", "it's"], [[1, 0, 0], [1, 1, 0], [1, 0, 0]]) == (found.labels, found.counts)
    assert "(n < 3 or n > 5) and cast(cls as varchar) = '9' and cast(json.pred as varchar) = '9'" == found.cell("9", "9")
    assert [1, 6] == found.mistakes().n.tolist()
    assert (0.0, []) == ((none := confusion(table, where="n > 99")).accuracy, none.labels)


def test_rare_labels_are_left_out_of_a_large_matrix(path, monkeypatch):
    monkeypatch.setattr(labels, "MAX_LABELS", 2)
    found = confusion(tarviz.table(path))

    assert (["9", "10"], [[1, 1], [1, 1]]) == (found.labels, found.counts)
