"""Columns of several chunks or shards: the type that all of them fit into, and their values in it."""

from __future__ import annotations

import pyarrow as pa

from tarviz.table.making.arrow_types import merge, together

KINDS = {
    "null": pa.null(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "list": pa.list_(pa.int64()),
}
TOGETHER = {
    ("null", "bool"): "bool",
    ("null", "list"): "list",
    ("int32", "int64"): "double",
    ("int64", "float"): "double",
    ("float", "double"): "double",
    ("int64", "string"): "string",
    ("double", "string"): "string",
    ("bool", "int64"): "string",
    ("bool", "string"): "string",
}


def test_a_type_fits_itself():
    for kind in KINDS:
        assert KINDS[kind] == merge(KINDS[kind], KINDS[kind])


def test_numbers_become_numbers_and_what_else_differs_text():
    for one, other in TOGETHER:
        assert KINDS[TOGETHER[one, other]] == merge(KINDS[one], KINDS[other]) == merge(KINDS[other], KINDS[one])


def test_columns_become_one_of_that_type():
    whole, part, none, text = pa.array([1, None]), pa.array([2.5]), pa.nulls(2), pa.array(["x"])

    assert pa.array([1.0, None, 2.5, None, None]) == together([whole, part, none])
    assert pa.array(["1", None, "2.5", "x"]) == together([whole, part.cast(pa.string()), text])
    assert pa.array([1, None, 1, None]) == together([whole, whole])
    assert pa.array([None, None, 2.5]) == together([none, part])
