"""ten: what WebDataset wrote is read, what is read was written, damage is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tarviz.formats.tenbin import decode_buffer, encode_buffer
from tarviz.model.errors import DataError

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


@pytest.mark.parametrize("cut", [1, 20, 64, 100])
def test_a_field_that_is_cut_is_an_error(cut: int) -> None:
    with pytest.raises(DataError, match="ten field"):
        decode_buffer(encode_buffer([np.eye(3)])[:cut])
