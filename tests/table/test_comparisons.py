"""The rule of comparison, condition by condition: what fits over values of every kind, asked of a table and of a stream."""

from __future__ import annotations

from pathlib import Path

import pytest

import tarviz
from tarviz.model.errors import UsageError
from tarviz.read.stream import blocks
from tarviz.table.streamed import StreamCondition

RECORDS = [
    {
        "cls": b"3",
        "txt": b"true",
        "json": b'{"v": 1, "r": 2.5, "b": true, "t": "3", "l": [1, "a"], "k": ["a", "b"], "s": {"x": 1}, "big": 9007199254740993}',
    },
    {"cls": b"03", "txt": b"0", "json": b'{"v": "x", "r": 3.0, "b": false, "t": "03.0", "l": [], "k": [], "big": 9007199254740992}'},
    {"cls": b"cat", "txt": b"", "json": b'{"v": [1, "x"], "t": "true", "l": "a", "k": ["c"]}'},
    {"json": b'{"v": null, "t": "2020-05-06"}'},
]

TRUTHS = {
    "json.v": [0],
    "not json.v": [],
    "json.b": [0],
    "not json.b": [1],
    "txt": [0],
    "not txt": [1],
    "cls": [0, 1],
    "json.r": [0, 1],
    "json.k": [],
    "cls + 1": [0, 1],
    "cls - 3": [],
    "lower(json.t)": [0, 1, 2],
    "json.v = true": [0],
    "json.t = true": [0, 1, 2],
    "json.v::boolean": [0],
    "cast(cls as bool)": [0, 1],
    "regexp_matches(json.t, '^0')": [1],
}
NULLS = {
    "json.v is null": [3],
    "json.v is not null": [0, 1, 2],
    "json.v = null": [3],
    "null != json.v": [0, 1, 2],
    "json.v is distinct from null": [0, 1, 2],
    "null is not distinct from json.v": [3],
    "json.v > null": [],
    "(cls + 1) is null": [2, 3],
    "(cls + 1) is not null": [0, 1],
    "lower(txt) is null": [3],
    "json.s is not null": [0],
    "cls is distinct from 3": [2, 3],
    "cls is not distinct from 3": [0, 1],
    "json.big is distinct from 9007199254740993": [1, 2, 3],
}
NUMBERS = {
    "cls = 3": [0, 1],
    "cls != 3": [],
    "json.t = 3": [0, 1],
    "json.t < 4": [0, 1],
    "json.r > 2.5": [1],
    "json.r >= 2.5": [0, 1],
    "json.big = 9007199254740993": [0],
    "json.big > 9007199254740992": [0],
    "json.big + 1 = 9007199254740994": [0],
    "json.big - 1 = 9007199254740991": [1],
    "json.big * 9007199254740993 * 9007199254740993 > 1": [0, 1],
    "-json.r = -2.5": [0],
    "abs(-cls) = 3": [0, 1],
    "json.r // 2 = 1": [0, 1],
    "cls // 2 = 1": [0, 1],
    "json.r % 2 = 0.5": [0],
    "7 / cls > 2.3": [0, 1],
    "7 / cls > 2.4": [],
    "int(json.r) = 2": [0],
    "int(json.r) = 3": [1],
    "int(json.r / 2) = 1": [0, 1],
    "float(cls) = 3.0": [0, 1],
    "json.b = 1": [],
    "json.b::int = 1": [0],
    "(cls = 3)::int = 1": [0, 1],
    "round(json.t) = 3": [0, 1],
    "(json.r + 1)::int = 4": [0, 1],
    "(json.big + 1)::hugeint = 9007199254740994": [0],
    "repeat(txt, cls) = 'truetruetrue'": [0],
    "year(json.t) = 2020": [3],
}
TEXTS = {
    "cls = '3'": [0, 1],
    "cls = '03'": [],
    "json.t = '3'": [0],
    "json.b = 'true'": [0],
    "json.v = 'x'": [1],
    "json.v = '1'": [0],
    "startswith(cls, '3')": [0, 1],
    "substr(cls, 1, 1) = 'c'": [2],
    "len(cls) = 1": [0, 1],
    "len(txt) = 0": [2],
    "txt like '%ru%'": [0],
    "cls || '!' = 'cat!'": [2],
    "(json.r / 2)::varchar = '1.25'": [0],
    "(cls + 1)::varchar = '4'": [0, 1],
    "json.r::varchar = '3.0'": [1],
    "json.r::varchar = '3'": [],
    "txt collate nocase = 'TRUE'": [0],
}
OF_TWO = {
    "json.r > json.v": [0],
    "json.v != json.t": [0, 1],
    "json.v = json.t": [],
    "cls = json.t": [0, 1],
    "json.r > cls": [],
    "json.r <= cls": [0, 1],
    "n < json.big": [0, 1],
}
CHOICES = {
    "json.t in ('true', 3)": [0, 1, 2],
    "json.t in ('true', '3')": [0, 2],
    "cls in (1, 3)": [0, 1],
    "cls not in (1, 3)": [],
    "n in (1, 2)": [1, 2],
    "json.r in (2.5, 3)": [0, 1],
    "json.r not in (2.5)": [1],
    "json.r between 2.5 and 2.9": [0],
    "json.r not between 2.5 and 2.9": [1],
    "cls between 3 and 3": [0, 1],
    "cls in [3, 'cat']": [0, 1, 2],
}
BRANCHES = {
    "case when cls = 3 then json.r else 'x' end = 'x'": [2, 3],
    "case when cls = 3 then cls end + 1 = 4": [0, 1],
    "case when cls = 3 then cls / 2 end = 1.5": [0, 1],
    "case when n > 1 then true end": [2, 3],
    "coalesce(json.r, 7) = 7": [2, 3],
    "coalesce(cls, 5) = 5": [2, 3],
    "coalesce(txt, 'none') = 'none'": [3],
    "greatest(json.r, 2.7) = 2.7": [0, 2, 3],
    "least(json.r, 2.7) = 2.5": [0],
    "greatest(json.r, size) = size": [0, 1, 2, 3],
    "nullif(cls, 3) is null": [0, 1, 2, 3],
}
LISTS = {
    "'a' in json.l": [0, 2],
    "1 in json.l": [0],
    "'a' in json.k": [0],
    "'c' in json.k": [2],
    "list_contains(json.k, 'b')": [0],
    "'ru' in txt": [0],
    "len([1, 2]) = 2": [0, 1, 2, 3],
    "len(json.l) = 2": [0],
    "len(json.l) = 1": [2],
    "len(json.l) = 0": [1],
    "len(json.k) = 2": [0],
    "len(list_filter(json.l, x -> x = 'a')) = 1": [0],
    "json.k[0] = 'a'": [0],
    "json.k[-1] = 'b'": [0],
    "json.k[1:1] = ['a']": [0],
    "array_to_string(json.l, '-') = '1-a'": [0],
    "array_to_string(txt, '-') is null": [0, 1, 2, 3],
    "list_reverse(json.k) = ['b', 'a']": [0],
    "as_text(json.k) = '[a, b]'": [0],
}
CONDITIONS = TRUTHS | NULLS | NUMBERS | TEXTS | OF_TWO | CHOICES | BRANCHES | LISTS
SUBQUERIES = {
    "cls in (select n + 3 from records where n = 0)": [0, 1],
    "cls in (select json.t from records)": [0, 1],
    "cls not in (select 7)": [0, 1],
    "cls = (select max(n) from records)": [0, 1],
    "json.t = (select min(json.t) from records)": [0, 1],
    "exists (select 1 from records r where r.cls = 77)": [],
}


@pytest.fixture
def path(make) -> Path:
    return make([(f"k{at}", fields) for at, fields in enumerate(RECORDS)])


def test_what_fits_of_a_table_and_of_a_stream(path):
    table, found = tarviz.table(path), {}
    for text in CONDITIONS:
        condition = StreamCondition(text)
        found[text] = [row + block.first for block in blocks(path) for row in condition.fits(block).tolist()]

    assert CONDITIONS == found
    assert CONDITIONS == {text: table.rows(text).n.tolist() for text in CONDITIONS}


def test_what_fits_of_a_question_about_all_records(path):
    table = tarviz.table(path)

    assert SUBQUERIES == {text: table.rows(text).n.tolist() for text in SUBQUERIES}


@pytest.mark.parametrize(("text", "said"), [("abs(1, 2) = 1", r"abs\(\) takes one argument"), ("int() = 1", r"int\(\) takes one argument")])
def test_arithmetic_of_one_value_takes_one(path, text, said):
    with pytest.raises(UsageError, match=said):
        tarviz.table(path).rows(text)
