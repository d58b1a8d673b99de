"""npy: what NumPy writes is read in place, and nothing is allocated that is not there."""

from __future__ import annotations

import io

import numpy as np
import pytest

from tarviz.formats.npy import array_of
from tarviz.model.errors import DataError
from tests.conftest import each_case


def saved(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@each_case(
    "array",
    [
        np.arange(6, dtype=">i2").reshape(2, 3),
        np.zeros((3, 0), "f4"),
        np.array(2.5),
        np.asfortranarray(np.eye(4)[:, :3]),
        np.array(["a", "é"]),
    ],
)
def test_an_array_is_the_one_that_numpy_wrote(array):
    found = array_of(saved(array))

    assert (array.dtype, array.shape) == (found.dtype, found.shape)
    assert np.array_equal(array, found)


def test_an_array_is_a_view_on_its_bytes():
    data = bytearray(saved(np.zeros(3, "u1")))
    found = array_of(data)
    data[-1] = 7

    assert 7 == found[-1]


@each_case(
    ("data", "code"),
    [
        (saved(np.zeros(9))[:-1], "E_DECODE"),
        (saved(np.zeros(9))[:40], "E_DECODE"),
        (saved(np.array([{}], object)), "E_UNSAFE_DECODER"),
        (saved(np.zeros(9)).replace(b"(9,)", b"(-9,)"), "E_DECODE"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(data, code):
    with pytest.raises(DataError) as found:
        array_of(data)

    assert code == found.value.code
