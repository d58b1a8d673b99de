"""What lies at a path, by the types that columns turned out to have."""

from __future__ import annotations

import pytest

import tarviz
from tarviz.model.errors import UsageError

RECORDS = [
    ("a", {"json": b'{"l": [5, 6], "objs": [{"x": 1, "q\\"t": 2}], "s": {"In": {"deep": 3}}, "two": [1, "x"]}'}),
    ("b", {"json": '{"l": [7, 8], "objs": [], "s": {"In": {"deep": 4}}, "two": {"p": 9, "größe": 8}}'.encode()}),
]


@pytest.fixture
def table(make) -> tarviz.Table:
    return tarviz.table(make(RECORDS))


def test_a_path_of_a_condition_counts_from_0(table):
    for where, fits in [
        ("json.l[0] = 5", [0]),
        ("json.l[1] = 8", [1]),
        ("json.l[-1] = 6", [0]),
        ("json.l[2] is null", [0, 1]),
        ("json.objs[0].x = 1", [0]),
        ("json.objs[0]['q\"t'] = 2", [0]),
        ("json['s']['In'].deep = 4", [1]),
        ('json.s."In".deep = 3', [0]),
        ("json.two[0] = 1", [0]),
        ("json.two[1] = 'x'", [0]),
        ("json.two[-1] = 'x'", [0]),
        ("json.two.p = 9", [1]),
        ("json.two.größe = 8", [1]),
        ("index = 1", [1]),
    ]:
        assert fits == table.rows(where).n.tolist()


def test_a_path_of_a_query_counts_from_1_and_an_item_may_be_said_by_a_column(table):
    query = "SELECT json.l[1], json.l[0], json.l[-1], json.l[n], [5, 6][n], json.two[1], json.objs[1].x FROM records ORDER BY n"

    assert [(5, None, 6, None, None, "1", 1), (7, None, 8, 7, 5, None, None)] == table.sql(query).fetchall()


def test_a_path_that_no_record_has_is_named(table):
    for where, said in [
        ("json.nope = 1", r"no column json\.nope\."),
        ("json.s.nope = 1", r"no column json\.s\.nope\."),
        ("json.s.In.deep.er = 1", r"no column json\.s\.In\.deep\.er\."),
        ("json.objs[0].nope = 1", r"no column json\.objs\[\]\.nope\."),
        ("json.two.q.r = 1", r"no column json\.two\.q\.r\."),
        ("json.two[0].q = 1", r"no column json\.two\[\]\.q\."),
        ("json.l.nope = 1", r"no column json\.l\.nope\."),
        ("json.nope.nor.this = 1", r"no column json\.nope\.nor\.this\."),
    ]:
        with pytest.raises(UsageError, match=said):
            table.rows(where)


def test_items_of_json_that_has_no_names_are_asked_for_without_an_error(make):
    table = tarviz.table(make([("a", {"json": b"[1, 2]"}), ("b", {"json": b'{"x": 1}'})]))

    assert [0] == table.rows("json[0] = 1").n.tolist()
    assert [] == table.rows("json[7] = 1").n.tolist()
    assert [1] == table.rows("json.x = 1").n.tolist()
