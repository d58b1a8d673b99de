"""Fractions made and normalized part by part: as the ops one by one make them, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.ops.chains import Chain
from tests.ops.joints.conftest import same


class TestScaling:
    @given(
        st.integers(0, 40),
        st.integers(0, 40),
        st.sampled_from((1, 2, 3, 4)),
        st.sampled_from(("uint8", "uint16", "uint32", "int16", "float32")),
        st.sampled_from(("float16", "float32", "float64")),
        st.sampled_from(("0.5, 0.25", "[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]", "[0.5], 2")),
        st.booleans(),
    )
    def test_as_one_by_one(self, height: int, width: int, channels: int, given_: str, dtype: str, numbers: str, whole: bool) -> None:
        image = (np.random.default_rng(height).random((height, width, channels)) * 250).astype(given_)
        chain = Chain.of(f"convert(x, {dtype})|normalize(x, {numbers})")
        before = image.copy()

        same(chain, {"__key__": "a", "x": image if whole else image[:, ::-1]})

        np.testing.assert_array_equal(image, before)

    def test_in_parts_that_do_not_come_out_even(self) -> None:
        image = np.random.default_rng(0).integers(0, 256, (501, 433, 3), np.uint8)

        same(Chain.of("convert(x, float32)|normalize(x, [0.1, 0.2, 0.3], [1, 2, 3])"), {"__key__": "a", "x": image})

    @pytest.mark.parametrize("value", [b"bytes", 7, np.uint8(3), np.zeros(4, np.uint8)], ids=("bytes", "int", "number", "one side"))
    def test_what_is_no_image_goes_one_by_one(self, value: Any) -> None:
        same(Chain.of("convert(x, float32)|normalize(x, 0.5, 0.25)"), {"__key__": "a", "x": value})

    @pytest.mark.parametrize(
        "text",
        [
            "convert(x, float32)|normalize(x, [1, 2], [1, 1])",  # two numbers for three channels
            "convert(x, uint16)|normalize(x, 1, 1)",
            "convert(x, float32)|normalize(y, 1, 1)",
            "convert(x;y, float32)|normalize(x;y, 1, 1)",
            "normalize(x, 1, 1)|convert(x, float32)",
            "convert(x, float32)",
        ],
    )
    def test_others_go_one_by_one_with_their_errors(self, text: str) -> None:
        image = np.zeros((2, 3, 3), np.uint8)

        same(Chain.of(text), {"__key__": "a", "x": image, "y": image.astype(np.float32)})

    def test_room_that_does_not_fit_is_left_alone(self) -> None:
        chain, image = Chain.of("convert(x, float32)|normalize(x, 0, 1)"), np.full((2, 3, 3), 255, np.uint8)
        rooms = [np.zeros((2, 3, 4), np.float32), np.zeros((2, 3, 3)), np.zeros((2, 3, 6), np.float32)[:, :, ::2]]
        for room in rooms:
            made = chain.run({"__key__": "a", "x": image}, room={"x": room})["x"]
            assert not np.shares_memory(made, room)
            assert (1.0, 0.0) == (made.min(), room.max())
