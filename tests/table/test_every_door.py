"""One condition, asked at every door over random records: the same records, or the same refusal."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import tarviz
from tarviz.model.errors import UsageError
from tarviz.read.stream import ReadReport, blocks
from tarviz.table.conditions import is_search, parser
from tarviz.table.streamed import StreamCondition
from tarviz.testing.strategies import shard
from tarviz.widgets.browse.controller import Browser

NUMBERS = [0, 1, 3, -2, 2.5, 1.0, 0.1, 1e300, 9007199254740993, 9007199254740992, 2**63 - 1, -(2**63)]
TEXTS = ["", "cat", "3", "2.5", "Boat at sea", "true", "03", "it's", " 4 ", "1e2", "ünï", "a,b", "9007199254740993", "[1]", "null"]
SCALARS = st.sampled_from([*NUMBERS, *TEXTS, True, False, None])
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.sampled_from(["s", "x"]), SCALARS, max_size=2)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "flag", "t", "m"]), VALUES, max_size=5)
PAYLOADS = OBJECTS.map(lambda tree: json.dumps(tree).encode()) | st.sampled_from([b"{bad", b"7", b"null", b"[1, 2]", b'"cat"'])
CLASSES = st.sampled_from([b"3", b"4\n", b"03", b"2.5", b"cat", b"9007199254740993", b"", b"1e2", b"-1"])
RECORDS = st.lists(
    st.fixed_dictionaries(
        {"x": st.just(b"x")},
        optional={"json": PAYLOADS, "cls": CLASSES, "txt": st.sampled_from(TEXTS).map(str.encode), "seg.png": st.just(b"no picture")},
    ),
    min_size=1,
    max_size=5,
)

PATHS = st.sampled_from(["json.a", "json.b", "json.flag", "json.t", "json.m.s", "json.t[0]", "json.t[-1]", "json.a.x", "json.nowhere"])
NAMES = PATHS | st.sampled_from(["cls", "txt", "key", "size", "txt.size", "seg.png.width", "foo"])
TEXT_CONSTANTS = st.sampled_from(TEXTS).map(lambda text: "'" + text.replace("'", "''") + "'")
CONSTANTS = st.sampled_from([str(each) for each in NUMBERS]) | TEXT_CONSTANTS
COMPARES = st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "IS DISTINCT FROM"])


def _arithmetic(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    number = NAMES | st.sampled_from([str(each) for each in NUMBERS])
    return (
        st.builds("({} {} {})".format, number, st.sampled_from(["+", "-", "*", "/", "//", "%"]), number)
        | st.builds("abs({})".format, NAMES)
        | st.builds("length({})".format, NAMES)
        | st.builds("lower({})".format, NAMES)
        | st.builds("coalesce({}, {})".format, NAMES, inner)
        | st.builds("cast({} as {})".format, NAMES, st.sampled_from(["integer", "double", "varchar", "boolean"]))
        | st.builds("round({}, 1)".format, NAMES)
        | st.builds("{} || {}".format, NAMES, NAMES)
        | st.builds("json_type({})".format, NAMES)
        | st.builds("json_extract_string({}, '$.{}')".format, st.sampled_from(["json", "json.m"]), st.sampled_from(["a", "s"]))
        | st.builds("case when {} = 3 then {} else {} end".format, NAMES, NAMES, inner)
    )


ITEM_MADE = st.sampled_from(["x", "x + 1", "lower(x)", "x || '!'", "coalesce(x, 3)", "length(x)"])
ITEM_TESTS = (
    st.builds("{} {} {}".format, ITEM_MADE, COMPARES, CONSTANTS)
    | st.builds("x in ({}, {})".format, CONSTANTS, CONSTANTS)
    | st.sampled_from(["x", "not x", "x is null", "x = 'cat' or x > 2", "x like '%a%'", "x = true", "x > 1 and x < 3.5"])
)
ITEMS = (
    NAMES
    | st.builds("list_filter({}, lambda x: {})".format, NAMES, ITEM_TESTS)
    | st.builds("{}({})".format, st.sampled_from(["list_sort", "list_reverse", "list_distinct", "array_reverse_sort"]), NAMES)
)
ONE_OF_ITEMS = [
    *(f"list_{what}({{}})" for what in ("min", "max", "first", "last", "any_value", "sum", "avg", "median", "product", "count", "unique")),
    *("list_sort({})[1]", "list_reverse_sort({})[1]", "list_distinct({})[1]", "list_aggregate({}, 'max')", "list_bool_or({})"),
    *("list_position({}, 3)", "list_append({}, 1)[1]", "array_to_string({}, ',')", "list_slice({}, 1, 1)[1]", "list_extract({}, 1)"),
]
OF_LISTS = (
    st.builds(lambda made, items, op, side: f"{made.format(items)} {op} {side}", st.sampled_from(ONE_OF_ITEMS), ITEMS, COMPARES, CONSTANTS)
    | st.builds("{} {} [{}, {}]".format, NAMES, COMPARES, CONSTANTS, CONSTANTS)
    | st.builds("{}({}, [{}, {}])".format, st.sampled_from(["list_has_any", "list_has_all"]), ITEMS, CONSTANTS, CONSTANTS)
    | st.builds("list_max({}) {} list_min({})".format, ITEMS, COMPARES, ITEMS)
    | st.builds("list_sum({}) {} {}".format, ITEMS, COMPARES, NAMES)
    | st.builds("cast({} as {}[])[1] = 3".format, NAMES, st.sampled_from(["bigint", "double", "varchar"]))
)
SIDES = NAMES | CONSTANTS | _arithmetic(CONSTANTS)
LEAVES = (
    st.builds("{} {} {}".format, NAMES, COMPARES, SIDES)
    | st.builds("{} {} {}".format, SIDES, COMPARES, NAMES)
    | NAMES
    | st.builds("{} in ({}, {})".format, NAMES, CONSTANTS, CONSTANTS)
    | st.builds("{} between {} and {}".format, NAMES, CONSTANTS, CONSTANTS)
    | st.builds("{} is {}".format, NAMES, st.sampled_from(["null", "not null", "true", "not false"]))
    | st.builds("{} like {}".format, NAMES, st.sampled_from(["'%a%'", "'3%'", "'_at'"]))
    | st.builds("{} in {}".format, CONSTANTS, NAMES)
    | st.builds("{} = {}".format, NAMES, st.sampled_from(["true", "false", "null"]))
    | st.sampled_from(["has:json", "has:seg.png", "is:bad", "key:k1", "size(txt) > 2", "matches(txt, '^[a-z]+$')", "txt.startswith('B')"])
    | st.sampled_from(["boat", "cat", "not sharp", "dog and cat", "k1", "50% off", "boat at sea", '"at sea"', "0001", "k/1", "cls =", "("])
    | st.builds("{} {} {}".format, NAMES, st.sampled_from(["in", "not in"]), st.sampled_from(["[]", "()", "['cat', 3]"]))
    | st.builds("json {} {}".format, COMPARES, CONSTANTS)
    | st.builds("{}({}) {} {}".format, st.sampled_from(["int", "float", "typeof", "md5"]), NAMES, COMPARES, CONSTANTS)
    | st.builds("len(list_filter({}, lambda x: {})) > 0".format, NAMES, ITEM_TESTS)
    | st.builds("len(list_transform({}, lambda x: {})) > 1".format, NAMES, ITEM_MADE)
    | st.builds("hash({}) % 2 = 0".format, NAMES)
    | OF_LISTS
    | st.sampled_from(["is:dup", "cls > (select avg(size) from records)", "nofn(cls)", "max(cls) = 3", "is:bad or key = 'k0'"])
)
CONDITIONS = LEAVES | st.recursive(
    LEAVES,
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner) | st.builds("not ({})".format, inner),
    max_leaves=3,
)
REFUSED = "refused"


def answer(work: Any) -> Any:
    """What a door says; any error but a `UsageError` is none of its answers."""
    try:
        return work()
    except UsageError:
        return REFUSED


def streamed(path: Path, where: str, *, alone: bool) -> tuple[list[int], list[str]]:
    """The records that fit, all in one block or each in one of its own, and the names that none had."""
    condition, found = StreamCondition(where), []
    with contextlib.closing(blocks(path, report=ReadReport())) as run:
        for block in run:
            for part in [block.part(at, at + 1) for at in range(len(block))] if alone else [block]:
                found += [part.first + row for row in condition.fits(part).tolist()]
    return found, condition.lacking


def looks_for_words(where: str, table: Any) -> bool:
    with parser() as base:
        return is_search(base, where, table.possible)


def browsed(path: Path, where: str) -> list[int]:
    with contextlib.closing(Browser([str(path)], where=where, cache=False)) as browser:
        browser.wait(99, 60)
        if browser.query.error is not None:
            raise browser.query.error
        return [record.index for record in browser.records()]


def piped(path: Path, where: str) -> list[int]:
    """`records("-")`."""
    with pytest.MonkeyPatch.context() as patch, io.TextIOWrapper(path.open("rb")) as file:
        patch.setattr("sys.stdin", file)
        return [record.index for record in tarviz.records("-", where=where)]


def agree(records: list[dict[str, bytes]], conditions: list[str]) -> None:
    """Every condition at the doors that answer by themselves; the first of them also at those that hand it on."""
    content = [(f"k{at}", fields) for at, fields in enumerate(records)]
    with tempfile.TemporaryDirectory() as folder:
        path, parts = Path(folder, "a.tar"), [Path(folder, f"b-{at}.tar") for at in range(len(content))]
        path.write_bytes(shard(content))
        for part, one in zip(parts, content, strict=True):
            part.write_bytes(shard([one]))

        table, apart = tarviz.table(path), tarviz.table([str(part) for part in parts])
        for at, where in enumerate(conditions):
            expected = answer(lambda where=where: table.rows(where).n.tolist())
            note(f"{where}: {expected}")
            assert expected == answer(lambda where=where: apart.rows(where).shard.tolist())
            if expected != REFUSED and "[" not in where and ":" not in where and not looks_for_words(where, table):
                query = f"SELECT n FROM records WHERE ({where})"
                asked = answer(lambda query=query: sorted(n for (n,) in table.sql(query).fetchall()))
                assert expected == asked

            alone, together = (answer(lambda alone=alone, where=where: streamed(path, where, alone=alone)) for alone in (True, False))
            if together == REFUSED:
                assert alone == REFUSED == expected or "is:dup" in where or "select" in where
            else:
                assert alone[0] == together[0]
                assert together[1] if expected == REFUSED else expected == together[0]  # of a name that no record had, a stream says so
            if at == 0:
                handed_on(path, where, expected, REFUSED if together == REFUSED else together[0])


def handed_on(path: Path, where: str, expected: Any, of_stream: Any) -> None:
    assert expected == answer(lambda: [record.index for record in tarviz.records(path, where=where)])
    assert expected == answer(lambda: [int(key[1:]) for key in list(tarviz.index(path, where=where).keys())])
    assert expected == answer(lambda: [int(str(key)[1:]) for key in tarviz.Pipeline(str(path), where=where, select="__key__")])
    assert expected == answer(lambda: browsed(path, where))
    assert of_stream == answer(lambda: piped(path, where))
    found = answer(lambda: tarviz.first(path, where=where, field="x"))
    found = found if found == REFUSED else [index for index in [found.index] if index is not None]
    assert found in ([expected[:1]] if expected != REFUSED else [REFUSED, of_stream[:1]])  # it reads no further than to what it finds


HARD = settings(deadline=None, suppress_health_check=list(HealthCheck))
quiet = pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")  # a stream says what no record had


@quiet
@settings(HARD, max_examples=10)
@given(RECORDS, st.lists(CONDITIONS, min_size=3, max_size=3))
@pytest.mark.matrix
def test_every_door_says_the_same(records, conditions):
    agree(records, conditions)


@quiet
@pytest.mark.matrix
@settings(HARD, max_examples=25)
@given(RECORDS, st.lists(CONDITIONS, min_size=8, max_size=8))
def test_every_door_says_the_same_of_more(records, conditions):
    agree(records, conditions)


@quiet
@pytest.mark.slow
@settings(HARD, max_examples=200)
@given(RECORDS, st.lists(CONDITIONS, min_size=10, max_size=10))
def test_every_door_says_the_same_of_very_many(records, conditions):
    agree(records, conditions)
