"""Paths to one value of a record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.formats import field_path as field_path_module
from tarviz.formats.field_path import field_path
from tarviz.model.errors import UsageError
from tests.conftest import each_case

CAT = {
    "__key__": "train/cat",
    "cls": b"3\n",
    "seg.png": b"y" * 20,
    "a-b": b"x",
    "class": b"7",
    "score": b" 2.5e-1\n",
    "json": b'{"w": 500, "meta": {"src": "web"}, "boxes": [[1, 2], [3, 4]], "a b": 1.5, "class": "cat"}',
}


@each_case(
    ("text", "value"),
    [
        ("cls", 3),
        ("class", 7),
        ("score", 0.25),
        ("json.w", 500),
        ("json.meta.src", "web"),
        ("json['a b']", 1.5),
        ('json["meta"]["src"]', "web"),
        ("json.boxes[-1][0]", 3),
        ("json.boxes[9][0]", None),
        ("json.class", "cat"),
        ("field('a-b')", "x"),
        ("field(cls)", 3),
        ("seg.png", "y" * 20),
        ("size(seg.png)", 20),
        ("size(wav)", None),
        ("key", "train/cat"),
        ("wav.x", None),
    ],
)
def test_a_path_leads_to_its_value(text, value):
    assert value == field_path(text).value(CAT)


@each_case("text", ["", "cls == 3", "__import__('os')", "json[cls]", "size(jpg).x", "a b", "json.", "3"])
def test_what_is_no_path_is_refused(text):
    with pytest.raises(UsageError):
        field_path(text)


def test_fields_that_may_be_read_are_known_before():
    assert {"json", "json.w"} == field_path("json.w").needs
    assert frozenset() == field_path("size(jpg)").needs == field_path("key").needs


@given(st.binary(max_size=40))
def test_no_payload_is_an_error(payload):
    for text in ("json.w", "json[0]", "json", "json['a'].b"):
        field_path(text).value({"json": payload})


class Decoded(dict):
    """A record as a chain makes it: values, its key and shard as attributes."""

    key, shard, index, sizes = "k", "a.tar", 7, {"jpg": 99}


@each_case(
    ("text", "value"),
    [
        ("cls", 3),
        ("json.w[1]", 5),
        ("json.w.x", None),
        ("key", "k"),
        ("shard", "a.tar"),
        ("index", 7),
        ("size(jpg)", 99),
        ("size(cls)", None),
    ],
)
def test_values_of_a_chain_are_taken_as_they_are(text, value):
    assert value == field_path(text).value(Decoded(cls=3, json={"w": [4, 5]}, jpg=b"x"))


def test_a_quoted_name_may_hold_signs_of_any_kind():
    record = {"json": b'{"a\\"b": 1, "\\u00e9": 2, "\\\\q": 3}'}

    assert [1, 2, 3] == [field_path(text).value(record) for text in ('json["a\\"b"]', 'json["\\u00e9"]', 'json["\\q"]')]


def test_long_texts_are_no_numbers_and_large_documents_are_not_looked_into(monkeypatch):
    monkeypatch.setattr(field_path_module, "MAX_PAYLOAD", 10)

    assert [1111111111] * 2 == [field_path("a").value({"a": b"1" * digits}) for digits in (10, 11)]
    assert [1, None] == [field_path("json.a").value({"json": b'{"a":1}' + b" " * blanks}) for blanks in (3, 4)]


def test_a_number_has_four_hundred_digits_at_most():
    assert [int, str] == [type(field_path("a").value({"a": b"1" * digits})) for digits in (400, 401)]
