"""Conditions and keys asked of records while they come, block by block."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import tarviz
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


def test_streams_that_are_asked_at_once_see_their_own_records(make):
    paths = [make([(f"k{at}", {"json": b'{"a": %d}' % (at % (own + 2))}) for at in range(40)], f"{own}.tar") for own in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda path: asked(StreamCondition("json.a = 1"), path), paths * 4))

    assert [[[at for at in range(40) if at % (own + 2) == 1]] for own in range(4)] * 4 == found


KINDS = [
    b'{"a": true, "b": 2.5, "t": ["x"]}',
    b'{"a": "x", "b": "2.5", "t": "x"}',
    b'{"a": 1, "b": 3.5, "t": [1]}',
    b"[1]",
    b'{"a": null, "m": 1}',
]
OF_KINDS = {
    "json.a::int = 1": [0, 2],  # true is 1, as where all are true or false
    "json.b::int = 2": [0],  # 2.5 is 2 to DuckDB, and '2.5' is 3
    "json.b::int = 3": [1],
    "json->>'$.a' = '1'": [2],
    "json_extract_string(json, '$.a') = 'x'": [1],
    "json_type(json.a) = 'VARCHAR'": [1],
    "json_type(json) = 'ARRAY'": [3],
    "json_array_length(json.t) = 1": [0, 2],
    "json_valid(json.a)": [0, 1, 2],  # null is no value
    "(json->>'b')::double > 3": [2],
    "startswith(json.t, 'x')": [1],
    "json.a || json.t = 'xx'": [1],
    "json.a = ANY(['x', '1'])": [1, 2],
    "json.a collate nocase = 'X'": [1],
}


@pytest.mark.parametrize("where", OF_KINDS)
def test_a_record_answers_alone_as_among_those_of_other_kinds(make, where):
    path = make([(f"k{at}", {"json": document}) for at, document in enumerate(KINDS)])
    (block,), condition = blocks(path), StreamCondition(where)

    assert OF_KINDS[where] == tarviz.table(path).rows(where).n.tolist()
    assert OF_KINDS[where] == [at for at in range(len(KINDS)) if len(condition.fits(block.part(at, at + 1)))]


def test_a_name_that_none_had_is_said_where_each_lacks_another_part_of_it(make):
    condition = StreamCondition("json.m.s = 1")

    assert [[], [], []] == asked(
        condition, *(make([("k", {"json": each})], f"{at}.tar") for at, each in enumerate([b"{}", b'{"m": {}}', b'{"m": [1]}']))
    )
    assert ["json.m.s"] == condition.lacking
