"""What can be written next: fields without a table, then columns, functions, tags and values."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")
pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")

from tarviz.table.table import Table
from tarviz.widgets.answers.completion import FUNCTIONS, MOST, completion
from tests.widgets.conftest import tar

FIELDS = ["cls", "jpg", "json", "seg.png", "txt"]
NAMES = ["cls", "jpg", "json", "txt", "seg.png"]  # what lies deeper comes later
ALL = [(name, "field") for name in FIELDS]


@pytest.mark.parametrize(
    ("text", "start", "items"),
    [
        ("has:", 4, ALL),
        ("has:j", 4, [("jpg", "field"), ("json", "field")]),
        ("cls = 1 and has:seg.", 16, [("seg.png", "field")]),
        ("has:none", 4, []),
        ("has(j", 4, [("jpg)", "field"), ("json)", "field")]),
        ("has('j", 5, [("jpg')", "field"), ("json')", "field")]),
        ("size( t", 6, [("txt)", "field")]),
        ("is:", 3, [("bad", "tag")]),
        ("tag:x", 4, []),
        ("", 0, [(name, "") for name in NAMES]),
        ("(", 1, [(name, "") for name in NAMES]),
        ("cls = 1 and ", 12, [(name, "") for name in NAMES]),
        ("cls = 1 ", 8, []),
        ("js", 0, [("json", "")]),
        ("JS", 0, [("json", "")]),
        ("json", 0, []),
        ("l", 0, [(name, FUNCTIONS[name]) for name in ("lower(", "length(", "len(", "like")] + [("cls", "")]),
        ("png", 0, [("seg.png", "")]),
        ("cls = ", 6, []),
    ],
)
def test_without_a_table_it_is_fields_and_functions(text, start, items):
    assert (start, items) == completion(text, len(text), FIELDS, None)


def test_only_what_is_before_the_cursor_counts():
    assert (4, [("jpg", "field"), ("json", "field")]) == completion("has:j and more", 5, FIELDS, None)


def test_a_label_is_a_name_alone():
    assert (0, [("json", "")]) == completion("js", 2, FIELDS, None, label=True)
    assert (0, [("cls", "")]) == completion("l", 1, FIELDS, None, label=True)
    assert (0, []) == completion("lower", 5, FIELDS, None, label=True)


def test_no_more_are_offered_than_a_list_shows():
    many = [f"f{number:02d}.txt" for number in range(40)]

    for text in ("has:", "f", ""):
        assert many[:12] == [name for name, _ in completion(text, len(text), many, None)[1]]
    assert 12 == MOST


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    tree = [{"name": name, "ok": at % 2 == 0, "w": at / 2, "n": at % 3} for at, name in enumerate(["cat", "cow", "dog", "Cat's"])]
    records = [(f"n{at}", {"cls": b"%d" % (at % 2), "json": json.dumps(one).encode()}) for at, one in enumerate(tree)]
    found = Table([tar(tmp_path_factory.mktemp("table") / "s.tar", records)])
    found.make([part for part in found.possible.values() if part.tier == "value"])
    return found


@pytest.mark.parametrize(
    ("text", "start", "items"),
    [
        ("json.name = ", 12, ["'Cat''s'", "'cat'", "'cow'", "'dog'"]),
        ("json.name = 'c", 12, ["'Cat''s'", "'cat'", "'cow'"]),
        ("json.name != co", 13, ["'cow'"]),
        ("json.name in ('cat', d", 21, ["'dog'"]),
        ("json.ok == ", 11, ["false", "true"]),
        ("json.ok = t", 10, ["true"]),
        ("json.n > ", 9, ["0", "1", "2"]),
        ("json.n > 1", 9, []),
        ("json.w = 0.", 9, ["0.5"]),
        ("json.none = ", 12, []),
    ],
)
def test_values_are_those_of_the_column_before(table, text, start, items):
    found = completion(text, len(text), FIELDS, table)

    assert (start, items) == (found[0], sorted(word for word, _ in found[1]))
    assert all(note.isdigit() for _, note in found[1])


def test_columns_have_their_type_and_parts_of_fields_come_last(table):
    found = completion("json.", 5, FIELDS, table)

    assert (0, {"json.name": "varchar", "json.ok": "boolean", "json.w": "double", "json.n": "bigint"}.items()) <= (
        0,
        dict(found[1]).items(),
    )
    assert ["json.bad", "json.size"] == sorted(name for name, _ in found[1][-2:])
    assert ("tag", "varchar") in completion("ta", 2, FIELDS, table)[1]
    assert ("tag", "varchar") not in completion("ta", 2, FIELDS, table, label=True)[1]
