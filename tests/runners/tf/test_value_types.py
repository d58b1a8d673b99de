"""What tensors hold of Python values: which type fits, and the bytes that lists travel in."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.model.errors import SchemaError
from tarviz.runners.tf.value_types import Listed, as_array, observe, pack


def test_the_type_that_fits_all() -> None:
    for values, feature in [
        ([], None),
        ([None, None], None),
        ([1, None, 2], "int64"),
        ([1, 2.5], "float64"),
        ([True, False], "bool"),
        ([1, True], None),
        ([2**63, 1], "uint64"),
        ([2**63, -1.0], "float64"),
        ([2**64], None),
        ([-(2**63)], "int64"),
        ([-(2**63) - 1], None),
        (["a", "b"], "str"),
        (["a", b"b"], None),
        ([b"a"], "bytes"),
        ([{"a": 1}], None),
        ([np.float32(1), np.float32(2)], "float32"),
        ([np.int32(1), np.float32(2)], "float64"),
        ([[]], "float64[?]"),
        ([[1, 2]], "int64[?]"),
        ([[1, 2], [3, 4]], "int64[2]"),
        ([[1, 2], (3,)], "int64[?]"),
        ([[[1, 2], [3, 4]], [[5, 6]]], "int64[?, 2]"),
        ([[[1]], [[]]], "int64[1, ?]"),
        ([[1, [2]]], None),
        ([1, [2]], None),
        ([[[]], [1]], None),
    ]:
        found = observe(values)

        assert feature == (None if found is None else str(found))
        assert ("?" in str(feature)) == isinstance(found, Listed)


def test_numbers_become_an_array() -> None:
    for value, dtype in [
        (1, "int64"),
        (1.0, "int64"),
        ([1, 2.5], "float32"),
        (True, "bool"),
        ([], "int64"),
        ([], "bool"),
        ([[1], [2]], "uint8"),
        (255, "uint8"),
        ([2**63 + 1, 5], "uint64"),
        ([[2**64 - 1], [5]], "uint64"),
    ]:
        made = as_array(value, dtype)

        assert dtype == made.dtype
        np.testing.assert_array_equal(np.array(value, dtype), made)


def test_what_would_change_is_refused_and_named() -> None:
    for value, dtype, what in [
        (1.5, "int64", "float64"),
        (256, "uint8", "int64"),
        (-1, "uint8", "int64"),
        (True, "int64", "bool"),
        (1, "bool", "int64"),
        ("1", "int64", "str"),
        (2**64, "int64", "int"),
        (1e300, "int64", "float64"),
        ([2**63, -1.0], "uint64", "float64[?], 2 of them"),
        (None, "float64", "null"),
        ([1, [2]], "int64", "a list of values of different kinds"),
        ([1.5, 2], "int64", "float64[?], 2 of them"),
        ({"a": 1}, "int64", "dict"),
    ]:
        with pytest.raises(SchemaError) as caught:
            as_array(value, dtype)

        assert f"is {what}" == caught.value.message


def numbers(*values: int) -> bytes:
    return np.array(values, np.int64).tobytes()


def test_a_list_travels_as_its_values_and_the_lengths_of_each_axis() -> None:
    for value, dtype, shape, parts in [
        ([1, 2, 3], "int64", (None,), [numbers(1, 2, 3), numbers(3)]),
        ([], "int64", (None,), [b"", numbers(0)]),
        ([[1], [2, 3], []], "int64", (None, None), [numbers(1, 2, 3), numbers(3), numbers(1, 2, 0)]),
        ([[1, 2], [3, 4]], "int64", (None, 2), [numbers(1, 2, 3, 4), numbers(2)]),
        ([[1], [2]], "int64", (2, None), [numbers(1, 2), numbers(2), numbers(1, 1)]),
        (["a", "é", b"b"], "str", (None,), [b"a\xff\xc3\xa9\xffb\xff", numbers(3)]),
        (["\ud800"], "str", (None,), [b"\xed\xa0\x80\xff", numbers(1)]),
        (np.arange(6).reshape(2, 3), "int64", (None, None), [numbers(*range(6)), numbers(2), numbers(3, 3)]),
        (np.arange(6).reshape(2, 3), "int64", (None, 3), [numbers(*range(6)), numbers(2)]),
        (np.array(["a", "b"]), "str", (None,), [b"a\xffb\xff", numbers(2)]),
    ]:
        assert parts == pack(value, Listed(dtype, shape))


def test_what_does_not_fit_is_refused_and_named() -> None:
    for value, dtype, shape, what in [
        (5, "int64", (None,), "is int64"),
        (None, "int64", (None,), "is null"),
        ([1, 2], "int64", (None, None), "is int64[?], 2 of them"),
        ([[1, 2, 3]], "int64", (None, 2), "is int64[?, ?], 1 of them"),
        (["a"], "int64", (None,), "is str[?], 1 of them"),
        ([1], "str", (None,), "is int64[?], 1 of them"),
        ([["a", "b"]], "str", (None, 2), "is str[?, ?], 1 of them"),
        ([b"a\xff"], "bytes", (None,), "is a list of bytes that are not text"),
        (np.zeros((2, 3)), "int64", (None, None), "is float64[2, 3]"),
        (np.zeros(2), "float64", (None, None), "is float64[2]"),
        (np.zeros((2, 3)), "float64", (None, 2), "is float64[2, 3]"),
    ]:
        with pytest.raises(SchemaError) as caught:
            pack(value, Listed(dtype, shape))

        assert what == caught.value.message
