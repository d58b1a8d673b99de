"""Paths inside columns: those that hold values, as a condition writes them, and those inside JSON fields."""

from __future__ import annotations

import duckdb
import pytest

from tarviz.table.paths import inside, leaves


def kind(text: str):
    return duckdb.sql(f"SELECT NULL::{text} AS x").types[0]


def test_the_leaves_of_a_struct_are_what_holds_values_below_it():
    found = leaves("json", kind('STRUCT(a BIGINT, "order" STRUCT(b VARCHAR[], "c d" DOUBLE), l STRUCT(x BIGINT)[])'))

    assert [
        ("json.a", "BIGINT"),
        ('json."order".b', "VARCHAR[]"),
        ('json."order"."c d"', "DOUBLE"),
        ("json.l", "STRUCT(x BIGINT)[]"),
    ] == [(text, str(each)) for text, each in found]
    assert [("cls", "BIGINT")] == [(text, str(each)) for text, each in leaves("cls", kind("BIGINT"))]


@pytest.mark.parametrize(("most", "count"), [(1, 1), (2, 2), (9, 3)])
def test_of_very_many_names_the_first_are_taken(most, count):
    found = [text for text, _ in leaves("j", kind("STRUCT(a BIGINT, b BIGINT, c BIGINT)"), most)]

    assert ["j.a", "j.b", "j.c"][:count] == found


def test_paths_inside_json_come_level_by_level_through_lists_too():
    structures = {
        "json": {"a": "BIGINT", "l": [{"x": "JSON", "y": [["BIGINT"]]}], "s": {"t": {"u": "NULL"}}},
        "geojson": ["DOUBLE"],
        "b.json": "JSON",
    }

    assert ["json.a", "json.l", "json.s", "json.s.t", "json.l[0].x", "json.l[0].y", "json.s.t.u"] == inside(structures)
    assert [] == inside({})


def test_beyond_so_many_paths_no_deeper_level_is_looked_at():
    structures = {"json": {"a": {"b": {"c": "BIGINT"}}, "d": {"e": "BIGINT"}}}

    assert ["json.a", "json.d"] == inside(structures, most=2)
    assert ["json.a", "json.d", "json.a.b", "json.d.e"] == inside(structures, most=3)
    assert ["json.a", "json.d", "json.a.b", "json.d.e", "json.a.b.c"] == inside(structures, most=9)
