"""JSON payloads as columns: packed ones, lines, other encodings, what is bad and why."""

from __future__ import annotations

import gzip
import math

import pytest

import tarviz
from tarviz.table.making.json_columns import MAX_DEPTH, payload_column, typed_json


def read(*documents: bytes | None, ext: str = "json") -> tuple[list[object], list[bool | None]]:
    """What documents become, and which of them are bad; None where a record has none."""
    import pyarrow as pa

    column = payload_column(ext, [each or b"" for each in documents]).cast(pa.binary())
    found = typed_json(
        pa.array([None if each is None else value for each, value in zip(documents, column.to_pylist(), strict=True)], pa.binary())
    )
    return found.column.to_pylist(), found.bad.to_pylist()


@pytest.mark.parametrize(
    ("ext", "payload", "value"),
    [
        ("json.gz", gzip.compress(b'{"w": 1}', mtime=0), {"w": 1}),
        ("json.gz", gzip.compress(b'{"w"', mtime=0) + gzip.compress(b": 1}", mtime=0), {"w": 1}),
        ("json.gz", gzip.compress(b'{"w": 1}', mtime=0)[:-3], None),
        ("json.gz", b'{"w": 1}', None),
        ("json.gz", gzip.compress(b" " * (3 << 20), mtime=0), None),  # more than a thousand to one: a bomb
        ("jsonl", b'{"w": 1}\n\n {"w": 2}\r\n', [{"w": 1}, {"w": 2}]),
        ("ndjson", '\ufeff{"w": 1}\n'.encode("utf-16"), [{"w": 1}]),
        ("jsonl.gz", gzip.compress(b"1\n2\n", mtime=0), [1, 2]),
        ("jsonl", b"", []),
        ("jsonl", b"\xff\xfe\xff", None),
        ("geojson", b'{"w": 1}', {"w": 1}),
    ],
)
def test_packed_payloads_and_lines_are_read(make, ext, payload, value):
    table = tarviz.table(make([("a", {ext: payload}), ("b", {"cls": b"1"})]))
    found = table.sql(f'SELECT "{ext}", "{ext}.bad" FROM records ORDER BY n').fetchall()

    assert [(value, value is None), (None, None)] == found
    assert ({f"{ext}.bad": 1} if value is None else {}) == table.findings


def test_a_packed_text_is_unpacked(make):
    table = tarviz.table(make([("a", {"txt.gz": gzip.compress("Grüße".encode())}), ("b", {"txt.gz": b"no"})]))

    assert [("Grüße",), ("",)] == table.sql("SELECT txt.gz FROM records ORDER BY n").fetchall()


def test_a_document_is_read_or_bad():
    for document, value in [
        (b'{"a": 1}', {"a": 1}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ('{"a": 1}'.encode("utf-16"), {"a": 1}),
        ('{"a": 1}'.encode("utf-32-be"), {"a": 1}),
        (b'{"a":\r\n1}', {"a": 1}),
        (b'{"a": 1, "a": 2}', None),  # an object that is a struct has each name once
        (b'{"a": 1e999}', None),
        (b'{"a": 1' + b"0" * 400 + b"}", None),
        (b'{"a": 1' + b"0" * 309 + b"}", None),
        (b'{"a": 1} {"a": 2}', None),
        (b"", None),
        (b"\xff", None),
        (b'{"a": "\xff"}', None),
    ]:
        assert ([value, {"a": 7}, None], [value is None, False, None]) == read(document, b'{"a": 7}', None)


def test_what_is_no_number_is_read():
    (value, _), bad = read(b'{"a": NaN}', b'{"a": 7}')

    assert math.isnan(value["a"])
    assert [False, False] == bad


def test_a_name_given_twice_is_no_fault_where_the_object_is_not_typed():
    value, bad = read(b'{"a": 1, "A": 2, "a": 3}', b'{"A": 5}')

    assert [False, False] == bad
    assert ['{"a":1,"A":2,"a":3}', '{"A":5}'] == value


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_brackets_are_counted_but_not_those_in_texts(opening, closing):
    deep = [opening * depth + b"1" + closing * depth for depth in (MAX_DEPTH, MAX_DEPTH + 1)]

    assert [False, True] == read(*deep)[1]
    assert [False] == read(b'["' + b"[{\\\\" * 500 + b'"]')[1]


def test_integers_keep_all_their_digits():
    whole = [2**53 + 1, 2**63 - 1, -(2**63), 2**63, -(2**100)]

    assert ([{"a": each} for each in whole], [False] * 5) == read(*(b'{"a": %d}' % each for each in whole))
    assert [{"a": "1" + "0" * 38}, {"a": "7"}] == read(b'{"a": 1%s}' % (b"0" * 38), b'{"a": 7}')[0]
    assert [{"a": 9007199254740992.0}, {"a": 0.5}] == read(b'{"a": 9007199254740993}', b'{"a": 0.5}')[0]
    assert [{"a": [1, None]}, {"a": [None, 1]}] == read(b'{"a": [1, null]}', b'{"a": [null, 1]}')[0]


def test_what_is_empty_or_nothing_has_no_type_of_its_own():
    assert [{"a": {"b": 1}}, {"a": {"b": None}}] == read(b'{"a": {"b": 1}}', b'{"a": {}}')[0]
    assert [{"a": "{}"}, {"a": None}] == read(b'{"a": {}}', b'{"a": null}')[0]
    assert ["{}", "{}"] == read(b"{}", b"{}")[0]
