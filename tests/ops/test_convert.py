"""Convert: scales as `tf.image.convert_image_dtype` does, bit by bit; numbers keep their value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import ChainError, DataError, SchemaError
from tarviz.model.types import Feature
from tarviz.ops import Convert
from tarviz.testing.ops import OpTests, noise


class TestConvert(OpTests):
    op = Convert("jpg", "float32")
    fails_on = {"jpg": b"bytes"}

    def test_the_largest_value_becomes_one(self) -> None:
        out = self.op.apply(np.array([[[0, 128, 255]]], np.uint8))

        np.testing.assert_array_equal(np.float32([0, 128 / 255, 1]), out.ravel())

    def test_every_value_of_a_byte_comes_back(self) -> None:
        image = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)

        np.testing.assert_array_equal(image, Convert("jpg", "uint8").apply(self.op.apply(image)))

    @pytest.mark.parametrize("dtype", [np.float32, np.dtype("float32"), "float32"])
    def test_a_dtype_may_be_numpys(self, dtype: Any) -> None:
        assert self.op == Convert("jpg", dtype)

    def test_a_dtype_may_be_tensorflows(self) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")

        assert self.op == Convert("jpg", tf.float32)

    @pytest.mark.parametrize("dtype", ["float31", "bytes", None, 3, "complex64", "bool"])
    def test_a_dtype_that_is_none_is_refused(self, dtype: Any) -> None:
        with pytest.raises(ChainError, match="float32"):
            Convert("jpg", dtype)

    def test_bytes_are_refused_with_the_cure(self) -> None:
        with pytest.raises(SchemaError, match=r"Put decode\(jpg\) before it"):
            self.op.infer(Feature("bytes"))


class TestConvertBack(OpTests):
    op = Convert("jpg", "uint8")
    accepts = Feature("float32", (None, None, 3))

    def values(self) -> Iterable[Any]:
        return [image * np.float32(1.4) - np.float32(0.2) for image in noise(self.accepts)]  # below 0 and above 1 as well

    def test_what_is_out_of_range_is_cut_off(self) -> None:
        out = self.op.apply(np.float32([[[-1, 2, np.nan, np.inf]]]))

        assert [0, 255, 0, 255] == out.ravel().tolist()


class TestConvertWider(OpTests):
    op = Convert("jpg", "uint16")


class TestConvertNarrower(OpTests):
    op = Convert("jpg", "uint8")
    accepts = Feature("uint16", (None, None, 3))


class TestConvertSigned(OpTests):
    op = Convert("jpg", "uint8")
    accepts = Feature("int32", (None, None, 3))

    def values(self) -> Iterable[Any]:
        return [image - (1 << 30) for image in noise(self.accepts)]


class TestConvertToSigned(OpTests):
    op = Convert("jpg", "int32")
    accepts = Feature("float32", (None, None, 3))


class TestConvertToInt64(OpTests):
    op = Convert("jpg", "int64")


class TestConvertDouble(OpTests):
    op = Convert("jpg", "float64")


class TestConvertHalf(OpTests):
    op = Convert("jpg", "float16")
    accepts = Feature("float32", (None, None, 3))


class TestConvertByteToHalf(OpTests):
    op = Convert("jpg", "float16")


class TestConvertNothing(OpTests):
    op = Convert("jpg", "uint8")


class TestConvertNumber(OpTests):
    op = Convert("cls", "int32")
    accepts = Feature("int64")
    fails_on = {"cls": np.int64(1 << 40)}

    def values(self) -> Iterable[Any]:
        return [np.int64(7), np.int64(-(1 << 31)), np.int64((1 << 31) - 1)]

    def test_a_number_keeps_its_value(self) -> None:
        assert np.float32(7) == Convert("cls", "float32").apply(np.int64(7))

    def test_out_of_range_is_an_error(self) -> None:
        with pytest.raises(DataError, match="range"):
            self.op.apply(np.int64(1 << 31))
