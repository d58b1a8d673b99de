"""JSON whose values are of two kinds, or that has no type at all: its items, its unions, and the paths that no record has."""

from __future__ import annotations

import contextlib
import re

import pytest

import tarviz
from tarviz.model.errors import UsageError
from tarviz.read.stream import ReadReport, blocks
from tarviz.table.streamed import StreamCondition

ITEMS_OF_TWO_KINDS = [
    ("select x from (select unnest(json.l) x from records) where x > 1", [("2",), ('"3"',)]),
    ("select x from (select unnest(json.v) x from records) where x = 'b'", [('"b"',)]),
    ("select * from (select unnest([json.v]) x from records) where x = 'x'", [('"x"',)]),
    ("select x from records, unnest(json.v) t(x) where x = 2", [("2",)]),
    ("select unnest from records, unnest(json.l) where unnest = 'x'", [('"x"',)]),
    ("select list_filter(json.l, v -> v > 1) from records order by n", [(["2"],), ([],), (['"3"'],)]),
    ("select list_filter(json.v, lambda v: v = 'b') from records order by n", [(None,), (None,), (['"b"'],)]),
    ("select list_transform(json.l, v -> v + 1) from records order by n", [([2.0, 3.0, None],), ([],), ([4.0],)]),
    ("select [v + 1 for v in json.l if v > 1] from records order by n", [([3.0],), ([],), ([4.0],)]),
    ("select x from (select unnest(list_filter(json.l, v -> v > 1)) x from records) where x = '3'", [('"3"',)]),
    ("select n from records where len(list_filter(json.v, v -> v = 'b')) = 1", [(2,)]),
    ("select json.l[3] from records order by n", [('"x"',), (None,), (None,)]),
    ("select n from records where json.l[0] = 'x' or json.v[0] = 'b'", []),
    ("select json.v[2] from records order by n", [(None,), (None,), ("b",)]),
    ("select json.v from records union all select 'a'", [("1",), ('"x"',), ('[2,"b"]',), ('"a"',)]),
    ("select x from (select json.v x from records union all select 'a') where x = 'a'", [('"a"',)]),
    ("select x from (select json.v x from records union all select 7) where x > 3", [("7",)]),
    ("select x from (select key x from records union select json.v x from records) where x = 'k0'", [('"k0"',)]),
    ("select x + 1 from (select json.v x from records union all select 7 x)", [(2.0,), (None,), (None,), (8.0,)]),
    ("with t as (select json.v x from records union all select 7) select x from t where x = 'x' or x > 3", [('"x"',), ("7",)]),
    ("select x from (select json.v x from records except select 1) where x = 'x'", [('"x"',)]),
    ("select coalesce(json.v, 5) + 1 from records", [(2.0,), (6.0,), (6.0,)]),
    ("select case when n > 1 then json.v else 'c' end from records", [("c",), ("c",), (None,)]),
    ("select greatest(json.v, 2) from records", [(2.0,), (2.0,), (2.0,)]),
    ("select nullif(json.v, 'x') from records", [("1",), (None,), (None,)]),
]


@pytest.fixture
def items_of_two_kinds(make) -> tarviz.Table:
    values = [b'{"v": 1, "l": [1, 2, "x"]}', b'{"v": "x", "l": []}', b'{"v": [2, "b"], "l": ["3"]}']
    return tarviz.table(make([(f"k{at}", {"json": value}) for at, value in enumerate(values)]))


def test_items_and_unions_of_values_of_two_kinds_are_compared_by_the_rule(items_of_two_kinds):
    for query, rows in ITEMS_OF_TWO_KINDS:
        assert items_of_two_kinds.sql(query).fetchall() == rows


def test_a_lambda_of_a_condition_compares_by_the_rule(items_of_two_kinds):
    for where, fits in [
        ("len(list_filter(json.l, v -> v > 1)) > 0", [0, 2]),
        ("len(list_filter(json.v, lambda v: v = 'b')) = 1", [2]),
        ("list_transform(json.l, v -> v + 1) = [4]", [2]),
        ("len(list_filter(json.l, v -> v = 3)) > 0", [2]),
        ("json.l[-1] = 3", [2]),
    ]:
        assert fits == items_of_two_kinds.rows(where).n.tolist()


def test_parts_of_a_union_have_as_many_columns(items_of_two_kinds):
    for query in ("select json.v, n from records union all select 7", "select 7 from records union all select json.v, n from records"):
        with pytest.raises(UsageError, match=r"(?i)same number of"):
            items_of_two_kinds.sql(query).fetchall()


REFUSED = [  # and what the hint says, which works
    (
        "select unnest(json.l) + 1 from records",
        "select x + 1 from (select unnest(json.l) as x from records)",
        [(2.0,), (3.0,), (None,), (4.0,)],
    ),
    ("select list_sum(json.v) from records", "select sum(json.v + 0) from records", [(1.0,)]),
    ("select [json.v, 'b'] from records where n = 1", "select [(json.v ->> '$'), 'b'] from records where n = 1", [(["x", "b"],)]),
]


@pytest.mark.parametrize(("query", "instead", "rows"), REFUSED)
def test_what_the_rule_does_not_reach_is_refused_with_a_way_that_works(items_of_two_kinds, query, instead, rows):
    with pytest.raises(UsageError, match=r"json\.v \+ 0.*->> '\$'.*SELECT x \+ 1 FROM"):
        items_of_two_kinds.sql(query).fetchall()
    assert rows == items_of_two_kinds.sql(instead).fetchall()


UNTYPED = {
    "names": [b'{"a": 1, "A": 2, "list": [{"x": 1}], "m": {"deep": 1}}', b'{"a": null}'],
    "paths": [b'{"a": 1, "list": [{"x": 1}], "m": {"deep": 1}, %s}' % b", ".join(b'"p%d": 1' % at for at in range(1001))],
    "kinds": [b'{"a": 1, "list": [{"x": 1}], "m": {"deep": 1}}', b"[]"],
}


@pytest.mark.parametrize("why", UNTYPED)
def test_a_path_that_no_record_has_is_an_error_in_untyped_json_too(make, why):
    path = make([(f"k{at}", {"json": value}) for at, value in enumerate(UNTYPED[why])])
    table = tarviz.table(path)
    wrong = {"json.mm": "json.m", "json.m.deeep": "json.m.deep", "json.list[0].xy": "json.list[0].x", "json.list[3].y": "json.list"}

    for name, near in wrong.items():
        for ask in (
            lambda name=name: table.rows(f"{name} = 1"),
            lambda name=name: table.rows(order=name),
            lambda name=name: table.facets(name),
            lambda name=name: table.sql(f"SELECT {name} FROM records"),
            lambda name=name: list(tarviz.records(path, where=f"{name} is null")),
        ):
            with pytest.raises(
                UsageError, match=f"no column {re.escape(re.sub('[0-9]', '', name))}.*" + ("" if why == "kinds" else re.escape(near))
            ):
                ask()
    assert [0] == table.rows("json.a = 1").n.tolist() == table.rows("json.m.deep = 1 and json.list[0].x = 1").n.tolist()
    assert [] == table.rows("json.list[7].x = 1").n.tolist()
    assert [0] == table.rows(order="json.list[0].x").n.tolist()[:1]


@pytest.mark.parametrize("why", UNTYPED)
def test_a_path_that_no_record_of_a_stream_has_is_said_of_untyped_json_too(make, why):
    path = make([(f"k{at}", {"json": value}) for at, value in enumerate(UNTYPED[why])])
    for where, lacking in (("json.mm = 1", ["json.mm"]), ("json.m.deep = 1", []), ("json.list[5].x = 1 or json.m.x = 1", ["json.m.x"])):
        condition, report = StreamCondition(where), ReadReport()
        with contextlib.closing(blocks(path, report=report)) as run:
            for block in run:
                condition.fits(block)
        assert lacking == condition.lacking


def test_records_are_joined_by_values_of_one_type_as_they_are_stored_and_by_the_rule_else(items_of_two_kinds):
    for condition, pairs in [
        ("a.json.v = b.json.v", [(0, 0), (1, 1), (2, 2)]),  # as they are stored, whatever they are
        ("a.n = b.json.v", [(1, 0)]),
        ("a.key = b.key", [(0, 0), (1, 1), (2, 2)]),
        ("a.json.v = b.json.l[1]", [(0, 0)]),
    ]:
        assert pairs == items_of_two_kinds.sql(f"SELECT a.n, b.n FROM records a JOIN records b ON {condition} ORDER BY 1, 2").fetchall()


def test_what_a_query_gives_is_called_as_it_is_written(items_of_two_kinds):
    found = items_of_two_kinds.sql("SELECT json.v = 'x', json.v AS mine, json.v, json.l[1], n + 1, key FROM records")

    assert ["(\"json\".v = 'x')", "mine", "v", '"json".l[1]', "(n + 1)", "key"] == found.columns
    assert [
        (False, "1", "1", "1", 1, "k0"),
        (True, '"x"', '"x"', None, 2, "k1"),
        (None, '[2,"b"]', '[2,"b"]', '"3"', 3, "k2"),
    ] == found.fetchall()
