"""Convert: scales as `tf.image.convert_image_dtype` does, bit by bit; numbers keep their value."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz
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


class TestInTheGraph:
    """Called as it is: what traces a graph runs another copy of the code."""

    @pytest.mark.parametrize(
        ("given", "kind", "dtype", "expected"), [(3, "int64", "int32", 3), (3, "int64", "float32", 3.0), (2.5, "float32", "int32", 2)]
    )
    def test_a_number_keeps_its_value(self, given: Any, kind: str, dtype: str, expected: Any) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        found = Convert("cls", dtype).apply_tf(tf.constant(given, kind))

        assert (expected, dtype) == (found.numpy(), found.dtype.name)

    def test_one_out_of_range_is_an_error(self) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of range"):
            Convert("cls", "int8").apply_tf(tf.constant(128, tf.int64))

    @pytest.mark.parametrize(
        ("given", "dtype"),
        [(np.ones((1, 1, 1), np.float32), "int64"), (np.full((1, 1, 1), 1 << 31, np.uint32), "uint8"), (np.ones((1, 1, 1)), "uint64")],
    )
    def test_pictures_that_tensorflow_converts_otherwise_are_converted_outside(self, tmp_path: Path, given: Any, dtype: str) -> None:
        pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        tarviz.write([{"npy": given}], tmp_path / "a.tar", progress=False)
        pipeline = tarviz.Pipeline(tmp_path / "a.tar", f"decode(npy)|convert(npy, {dtype})", select="npy")
        expected, found = next(iter(pipeline)), next(iter(pipeline.tf(graph=True))).numpy()

        assert (dtype, expected.item()) == (found.dtype.name, found.item())


class TestWholeNumbers:
    def test_they_are_scaled_and_cut_off(self) -> None:
        for given, dtype, expected in [
            (np.uint16([0, 255, 256, 65535]), "uint8", [0, 0, 1, 255]),
            (np.uint8([0, 1, 255]), "uint16", [0, 256, 65280]),
            (np.int8([-128, -1, 0, 127]), "uint8", [0, 0, 0, 254]),
            (np.uint8([0, 1, 2, 255]), "int8", [0, 0, 1, 127]),
            (np.int16([-32768, -256, 32767]), "int8", [-128, -1, 127]),
            (np.float64([-2, -1, 0.5, 1, 2, np.nan, np.inf, -np.inf]), "int8", [-128, -127, 63, 127, 127, 0, 127, -128]),
            (np.float32([0, 0.5, 1]), "uint16", [0, 32767, 65535]),
        ]:
            found = Convert("x", dtype).apply(given)

            assert (dtype, expected) == (found.dtype, found.tolist())

    def test_a_single_one_has_to_fit(self) -> None:
        for number in (-128, 127):
            assert number == Convert("x", "int8").apply(np.int64(number))
        for number in (-129, 128):
            with pytest.raises(DataError, match=rf"{number} is outside the range of int8"):
                Convert("x", "int8").apply(number)
