"""Conditions and keys asked of records while they come, block by block."""

from __future__ import annotations

from tarviz.read.report import ReadReport
from tarviz.read.stream import blocks
from tarviz.table.streamed import StreamCondition


def asked(condition: StreamCondition, *paths) -> list[list[int]]:
    return [condition.fits(block).tolist() for path in paths for block in blocks(path)]


def test_keys_are_looked_for_and_those_of_no_record_are_said(make):
    path = make([(f"k{at}", {"cls": b"%d" % at}) for at in range(4)])
    alone, both, report = StreamCondition("", ["k1", "k3", "x"]), StreamCondition("cls < 3", ["k1", "k3"]), ReadReport()

    assert [[1, 3]] == asked(alone, path)
    assert [[1]] == asked(both, path)
    assert [[0, 1, 2, 3]] == asked(StreamCondition(" "), path)
    for condition in (alone, both):
        condition.end(report, "-")
    assert {"W_NO_KEY": 1} == report.counts()


def test_fields_that_come_later_count_from_then_on(make):
    first = make([("a", {"cls": b"1"}), ("b", {"cls": b"2"})], "a.tar")
    other = make([("c", {"cls": b"2", "json": b'{"w": 3}'}), ("d", {"json": b'{"w": 1}'})], "b.tar")
    condition, report = StreamCondition("json.w > 2 or cls = 1"), ReadReport()

    assert [[0], [0]] == asked(condition, first, other)
    assert ([], 4) == (condition.lacking, condition.seen)
    condition = StreamCondition("json.w > 2 or json.x = 1")
    assert [[], [0]] == asked(condition, first, other)
    assert ["json.x"] == condition.lacking
    condition.end(report, "-")
    assert {"W_NO_COLUMN": 1} == report.counts()
