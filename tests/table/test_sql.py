"""Queries and conditions as trees: their forms with a colon, their limits, functions that are none."""

from __future__ import annotations

import pytest

import tarviz
from tarviz.model.errors import UsageError
from tarviz.table import sql
from tarviz.table.streamed import StreamCondition


@pytest.fixture
def table(make) -> tarviz.Table:
    return tarviz.table(
        make([
            ("Cat/a", {"txt": b"a boat", "json": b'{"order": 1, "w": 2}', "seg.png": b"x"}),
            ("b", {"txt": b"Boat at sea", "json": b"{bad"}),
            ("c", {"cls": b"7"}),
        ])
    )  # fmt: skip


def test_forms_mean_the_same_in_a_condition_and_in_a_query(table):
    for where, keys in [
        ("has:json", ["Cat/a", "b"]),
        ("has(seg.png) and has:'txt'", ["Cat/a"]),
        ("has:nothing", []),
        ("not has:wav", ["Cat/a", "b", "c"]),
        ("size(txt) > 6", ["b"]),
        ("size('nothing') is null", ["Cat/a", "b", "c"]),
        ("field('cls') = 7", ["c"]),
        ("key:CAT/", ["Cat/a"]),
        ("is:bad", ["b"]),
        ("is:BAD", ["b"]),
        ("tag:bad", []),
        ("search('boat')", ["Cat/a", "b"]),
        ("search('boat sea')", ["b"]),
        ("search('\"a boat\"')", ["Cat/a"]),
        ("search('')", ["Cat/a", "b", "c"]),
        ("txt.upper() = 'A BOAT'", ["Cat/a"]),
        ("json.order = 1", ["Cat/a"]),
        ("records.json.w = 2", ["Cat/a"]),
    ]:
        assert keys == [key for (key,) in table.sql(f"SELECT key FROM records WHERE {where} ORDER BY n").fetchall()]
        assert keys == [["Cat/a", "b", "c"][n] for n in table.rows(where).n]


def test_what_a_condition_names_first_is_written_as_it_is_read(make):
    table = tarviz.table(make([("a", {"json": b'{"w": 1, "order": {"a.b": 2}}', "seg-map.png": b"x"})]))

    for where, first in [
        ('json.w = 1 and json.order."a.b" = 2', "json.w"),
        ('json.order."a.b" = json.w', 'json."order"."a.b"'),
        ('size("seg-map.png") > 0 or n = 0', '"seg-map.png.size"'),
        ("has:json", "json.size"),
        ("1 < 2", ""),
    ]:
        assert first == table.first_column(where)


def test_of_tags_a_stream_knows_that_json_is_bad(make):
    (block,) = tarviz.blocks(make([("a", {"json": b"{"}), ("b", {"json": b"{}"})]))

    assert [0] == StreamCondition("is:bad").fits(block).tolist()
    for text in ("is:dup", "tag:bad"):
        with pytest.raises(UsageError, match=text):
            StreamCondition(text).fits(block)


def test_length_is_limited(table):
    query = "SELECT 1 --"

    assert [(1,)] == table.sql(query.ljust(20 * sql.MAX_LENGTH, "x")).fetchall()
    with pytest.raises(UsageError, match="the query is too long"):
        table.sql(query.ljust(20 * sql.MAX_LENGTH + 1, "x"))
    where = "n = 1 --"
    assert [1] == table.rows(where.ljust(sql.MAX_LENGTH, "x")).n.tolist()
    with pytest.raises(UsageError, match="longer than 10000 characters"):
        table.rows(where.ljust(sql.MAX_LENGTH + 1, "x"))


def test_a_function_that_is_none_is_answered_with_the_nearest(table):
    for where, said in [
        ("lowerr(txt) = 'x'", r"no function lowerr\(\)\. Hint: Nearest: lower\(\)"),
        ("qqqqqqqq(txt) = 'x'", r"no function qqqqqqqq\(\)"),
        ("txt <+> 'x'", r"no operator <\+>"),
        ("has(txt, json)", r"no function has\(\)"),
    ]:
        with pytest.raises(UsageError, match=said) as error:
            table.rows(where)
        assert "E_QUERY" == error.value.code


def test_a_query_of_one_statement_that_selects(table):
    assert [(3,)] == table.sql("SELECT count(*) FROM records;").fetchall()
    for query, said in (
        ("SELECT 1; SELECT 2", "one statement"),
        ("DELETE FROM tags", "Only SELECT"),
        ("SELECT * FROM nope", "no table 'nope'"),
    ):
        with pytest.raises(UsageError, match=said):
            table.sql(query)
    with pytest.raises(UsageError, match="read_text"):
        table.sql("SELECT * FROM read_text('x')")
    assert [(2,)] == table.sql("SELECT count(*) FROM range(2)").fetchall()


def test_words_of_a_condition_are_words_of_a_query_and_of_an_order(table):
    assert [(4, 4.0)] == table.sql("SELECT int('3.7') + 1, float('4') FROM records WHERE int(n) = 0").fetchall()
    assert table.rows("", "-float(n)").n.tolist() == table.rows("", "-n").n.tolist()


def test_a_query_gives_names_of_its_own(table):
    query = "WITH t AS (SELECT n AS txt, key FROM records) SELECT r.n, txt + 1 FROM t r2 JOIN records r ON r.key = r2.key ORDER BY 1"

    with pytest.raises(UsageError):
        table.sql("SELECT nope FROM records")
    assert [(0, 1), (1, 2), (2, 3)] == table.sql(query.replace("txt", "mine")).fetchall()
    assert [("A BOAT",), ("BOAT AT SEA",), (None,)] == table.sql("SELECT upper(txt) AS txt FROM records ORDER BY n").fetchall()
