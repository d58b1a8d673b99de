"""ten: what WebDataset wrote is read, what is read was written, damage is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tarviz.formats.tenbin import decode_buffer, encode_buffer
from tarviz.model.errors import DataError, UsageError
from tests.conftest import each_case

ARRAYS = st.lists(
    arrays.arrays(st.sampled_from(["<f4", "<i8", "|u1"]), arrays.array_shapes(min_dims=0, max_dims=3, min_side=0)), max_size=3
)


@given(ARRAYS)
def test_arrays_come_back(given: list[Any]) -> None:
    for before, after in zip(given, decode_buffer(encode_buffer(given)), strict=True):
        np.testing.assert_array_equal(before, after)


def test_bytes_are_those_of_webdataset() -> None:
    tenbin = pytest.importorskip("webdataset.tenbin", reason="webdataset is the oracle for .ten")
    given = [np.arange(6, dtype=np.int32).reshape(2, 3), np.eye(2)]

    assert bytes(tenbin.encode_buffer(given)) == encode_buffer(given)


@each_case("cut", [1, 20, 64, 100])
def test_a_field_that_is_cut_is_an_error(cut: int) -> None:
    with pytest.raises(DataError, match="ten field"):
        decode_buffer(encode_buffer([np.eye(3)])[:cut])


def test_every_byte_has_its_place() -> None:
    header = b"~TenBin~" + (32).to_bytes(8, "little") + b"i2\0\0\0\0\0\0name\0\0\0\0" + bytes([1]) + bytes(7) + bytes([3]) + bytes(7)
    data = b"~TenBin~" + (6).to_bytes(8, "little") + b"\1\0\2\0\3\0"

    made = encode_buffer([np.array([1, 2, 3], "<i2")], ["name"])

    assert header + bytes(32) + data + bytes(58) == made
    assert ([[1, 2, 3]], ["name"]) == ([array.tolist() for array in decode_buffer(made)], decode_buffer(made, infos=True)[1])


def test_names_are_given_in_turn() -> None:
    assert ["a", "b", "a"] == decode_buffer(encode_buffer([np.eye(1)] * 3, ["a", "b"]), infos=True)[1]


@pytest.mark.parametrize("given", [np.eye(2), [np.array(["text"])], [np.zeros((1,) * 10)]], ids=["no list", "no numbers", "ten dimensions"])
def test_what_it_cannot_hold_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="ten holds"):
        encode_buffer(given)


def test_a_name_has_eight_letters_at_most() -> None:
    assert ["12345678"] == decode_buffer(encode_buffer([np.zeros((1,) * 9)], ["12345678"]), infos=True)[1]
    with pytest.raises(UsageError, match="ten holds"):
        encode_buffer([np.eye(2)], ["123456789"])


def test_a_shape_that_its_bytes_do_not_fill_is_an_error() -> None:
    made = bytearray(encode_buffer([np.zeros(3, "<i2")]))
    made[16 + 24] = 4

    with pytest.raises(DataError, match=r"an array i2\[4\] of the ten field has 6 bytes"):
        decode_buffer(made)


def test_no_dimension_is_below_zero() -> None:
    made = bytearray(encode_buffer([np.zeros((2, 1, 1), "<i1")]))
    made[16 + 32 : 16 + 48] = np.array([-1, -1], "<i8").tobytes()

    with pytest.raises(DataError, match="a header of the ten field cannot be read"):
        decode_buffer(made)
