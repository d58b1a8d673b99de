"""Structures of JSON: merged, cut where no column can be, and what is said of them."""

from __future__ import annotations

import itertools

from tarviz.table.making.json_structure import MAX_LEVELS, MAX_PATHS, castable, fit_columns, has, integer, merge, notes, sql_type

NUMBERS = ["BIGINT", "LARGE", "HUGEINT", "DIGITS", "DOUBLE", "INEXACT"]
KINDS = ["NULL", "EMPTY", "BOOLEAN", *NUMBERS, "VARCHAR", "JSON", ["BIGINT"], ["VARCHAR"], {"a": "BIGINT"}, {"b": ["DOUBLE"]}]
TOGETHER = {
    ("BIGINT", "LARGE"): "LARGE",
    ("BIGINT", "DOUBLE"): "DOUBLE",
    ("LARGE", "DOUBLE"): "INEXACT",
    ("HUGEINT", "DOUBLE"): "INEXACT",
    ("DIGITS", "DOUBLE"): "INEXACT",
    ("DIGITS", "HUGEINT"): "DIGITS",
    ("DOUBLE", "INEXACT"): "INEXACT",
    ("BOOLEAN", "BIGINT"): "JSON",
    ("EMPTY", "VARCHAR"): "JSON",
    ("EMPTY", "EMPTY"): "EMPTY",
}


def test_kinds_of_one_path_become_one():
    for one, other in TOGETHER:
        assert TOGETHER[one, other] == merge(one, other) == merge(other, one)


def test_the_order_in_which_structures_come_does_not_matter():
    for one, other, third in itertools.product(KINDS, repeat=3):
        assert merge(one, other) == merge(other, one)
        assert merge(merge(one, other), third) == merge(one, merge(other, third)), (one, other, third)


def test_what_no_column_can_be_is_json():
    deep: object = "BIGINT"
    for _ in range(MAX_LEVELS):
        deep = [deep]

    assert deep == fit_columns(deep)
    assert "JSON" in sql_type(fit_columns([deep]))
    assert {"a": "JSON", "b": "BIGINT"} == fit_columns({"a": {"x": "BIGINT", "X": "BIGINT"}, "b": "BIGINT"})
    assert ["JSON"] == fit_columns([{"": "BIGINT"}])
    assert {"a": "JSON"} == fit_columns({"a": {"x\0": "BIGINT"}})
    many = {f"p{at}": "BIGINT" for at in range(MAX_PATHS)}
    assert many == fit_columns(many)
    assert "JSON" == fit_columns(many | {"one": "BIGINT"})
    assert 'STRUCT("a" BIGINT[], "b""c" VARCHAR, "d" JSON, "e" DOUBLE)' == sql_type(
        {"a": ["LARGE"], 'b"c': "DIGITS", "d": "EMPTY", "e": "INEXACT"}
    )


def test_what_is_to_be_said_of_a_structure():
    deep: object = "BIGINT"
    for _ in range(MAX_LEVELS + 1):
        deep = [deep]
    structure = {
        "fine": ["BIGINT"],
        "two": [{"x": "JSON"}],
        "huge": "HUGEINT",
        "digits": "DIGITS",
        "rounded": "INEXACT",
        "case": {"a": "BIGINT", "A": "JSON"},
        "deep": deep,
    }

    assert [
        "json.two[].x has values of two kinds: it is JSON",
        "json.huge has integers of more than 64 bits: it is HUGEINT",
        "json.digits has integers of more than 38 digits: it is text",
        "json.rounded has integers of 2^53 or more beside fractions: it is DOUBLE, which rounds them",
        "json.case has names that differ in case alone, or none: it is JSON",
        f"json.deep{'[]' * (MAX_LEVELS - 1)} is nested in more than 32 levels: it is JSON",
    ] == list(notes("json", structure))
    many = {f"p{at}": "JSON" for at in range(MAX_PATHS + 1)}
    assert ["json has 1,001 paths, more than 1,000: it is JSON"] == list(notes("json", many))
    assert [] == list(notes("json", {f"p{at}": "BIGINT" for at in range(MAX_PATHS)}))


def test_a_column_is_cast_or_read_again():
    for own, wanted, can in [
        ("BIGINT", "BIGINT", True),
        ("NULL", {"a": "BIGINT"}, True),
        ("BIGINT", "DOUBLE", True),
        ("LARGE", "INEXACT", True),
        ("LARGE", "HUGEINT", True),
        ("HUGEINT", "DOUBLE", False),
        ("HUGEINT", "DIGITS", False),
        ("DOUBLE", "INEXACT", True),
        ("DOUBLE", "JSON", False),
        ("BIGINT", "VARCHAR", False),
        ("BIGINT", "JSON", False),
        (["BIGINT"], ["DOUBLE"], True),
        (["HUGEINT"], ["DOUBLE"], False),
        ({"a": "BIGINT"}, {"a": "DOUBLE", "b": "JSON"}, True),
        ({"a": "BIGINT", "b": "BOOLEAN"}, {"a": "DOUBLE", "b": "JSON"}, False),
        ({"a": "BIGINT"}, "JSON", False),
    ]:
        assert can is castable(own, wanted)


def test_kinds_are_found_anywhere():
    structure = {"a": [{"b": "LARGE"}], "c": "DOUBLE"}

    assert [True, True, False, True] == [has(structure, *kinds) for kinds in (("LARGE",), ("DOUBLE",), ("BIGINT",), ("BIGINT", "DOUBLE"))]


def test_an_integer_is_of_the_least_kind_that_holds_it():
    edges = [2**53 - 1, 2**53, 2**63 - 1, 2**63, 10**38 - 1, 10**38]

    assert ["BIGINT", "LARGE", "LARGE", "HUGEINT", "HUGEINT", "DIGITS"] == [integer(each) for each in edges]
    assert ["BIGINT", "LARGE", "LARGE", "LARGE", "HUGEINT", "DIGITS"] == [integer(-each) for each in edges]
    assert "HUGEINT" == integer(-(2**63) - 1)
