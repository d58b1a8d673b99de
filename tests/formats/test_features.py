"""The features of an Example: which kind a field has, its values, its bytes on the wire."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.formats import features
from tarviz.model.errors import DataError, SchemaError, UsageError
from tests.conftest import each_case


class TestKinds:
    def test_classes_are_numbers_and_all_else_bytes_unless_types_say_otherwise(self):
        assert ["int64", "int64", "bytes"] == [features.kind_of(field) for field in ("cls", "index", "jpg")]
        assert ["bytes", "float"] == [features.kind_of(field, {"cls": "bytes", "emb": "float"}) for field in ("cls", "emb")]

    def test_a_kind_that_does_not_exist_is_refused(self):
        with pytest.raises(UsageError, match="gives 'cls' the kind 'int32'"):
            features.kind_of("cls", {"cls": "int32"})

    def test_features_stand_in_the_order_that_tensorflow_writes(self):
        assert ["a", "cls2", "cls", "jpg", "ü"] == sorted(["ü", "jpg", "cls", "cls2", "a"], key=features.order)

    def test_a_name_that_is_not_utf8_cannot_name_one(self):
        with pytest.raises(SchemaError, match="not UTF-8"):
            features.name_of("\udcff")


class TestIntegers:
    @given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["%d", " %d\n", "%+d", "\t%d "]))
    def test_any_int64_is_read(self, value: int, form: str):
        assert value == features.parse_integer((form % value).encode(), "cls")

    @each_case(
        "text", [b"", b"1.0", b"1 2", b"0x1", b"one", b"--1", b"1_0", "１".encode(), b"9223372036854775808", b"-9223372036854775809"]
    )
    def test_what_is_none_is_refused(self, text: bytes):
        with pytest.raises(DataError, match=r"E_DECODE.*field 'cls'"):
            features.parse_integer(text, "cls")

    def test_a_megabyte_of_zeros_is_one_number_in_one_pass(self):
        assert 7 == features.parse_integer(b"0" * (1 << 20) + b"7", "cls")


class TestFloats:
    @given(st.lists(st.floats(allow_nan=False), max_size=5))
    def test_numbers_between_white_space_are_read(self, values: list[float]):
        assert values == features.parse_floats(" \n".join(map(repr, values)).encode(), "emb")

    def test_so_are_nan_and_infinity(self):
        nan, inf = features.parse_floats(b"NaN -inf", "emb")

        assert math.isnan(nan)
        assert -math.inf == inf

    @each_case("text", [b"1,5", b"0x1p3", b"1e", b"infinity", b"1_0", b"1" * 401])
    def test_other_words_are_refused(self, text: bytes):
        with pytest.raises(DataError, match="field 'emb'"):
            features.parse_floats(text, "emb")


class TestValues:
    @each_case(
        ("value", "types", "expected"),
        [
            (b"7", None, features.feature("int64", [7])),
            ("7", None, features.feature("int64", [7])),
            (b"7", {"cls": "bytes"}, features.feature("bytes", [b"7"])),
            (b"7 8", {"cls": "float"}, features.feature("float", [7, 8])),
            (True, None, features.feature("int64", [1])),
            (np.array([[1, 2], [3, 4]], np.int16), None, features.feature("int64", [1, 2, 3, 4])),
            (np.float64(0.5), None, features.feature("float", [0.5])),
            ([1, 2.5], None, features.feature("float", [1, 2.5])),
            (["a", b"b"], None, features.feature("bytes", [b"a", b"b"])),
            (np.array(["a", "bc"]), None, features.feature("bytes", [b"a", b"bc"])),
            ([], None, features.feature("int64", [])),
            (5, {"cls": "float"}, features.feature("float", [5])),
        ],
    )
    def test_a_value_is_of_the_kind_it_has_or_that_is_asked_for(self, value: Any, types: Any, expected: bytes):
        assert expected == features.field_feature("cls", value, types)

    @each_case(
        ("value", "types"),
        [
            (None, None),
            ({"a": 1}, None),
            ([[1], [2, 3]], None),
            ([b"a"], {"cls": "int64"}),
            (np.zeros(3), {"cls": "int64"}),
            (np.zeros(3, np.int64), {"cls": "bytes"}),
            (np.zeros((2, 2), np.uint8), None),
            (np.zeros(2, np.complex64), None),
            (object(), None),
        ],
    )
    def test_what_no_feature_can_hold_is_refused_with_the_field(self, value: Any, types: Any):
        with pytest.raises(SchemaError, match="field 'cls' holds"):
            features.field_feature("cls", value, types)

    @pytest.mark.parametrize(
        ("shape", "said", "hint"), [((2, 2, 3), "an image", "put encode(mp4)"), ((4, 2, 2, 3), "more than", "give types")]
    )
    def test_the_next_step_for_an_image_is_none_for_a_film(self, shape: Any, said: str, hint: str):
        with pytest.raises(SchemaError, match=said) as caught:
            features.field_feature("mp4", np.zeros(shape, np.uint8))

        assert str(caught.value.hint).startswith(hint)
        assert features.field_feature("mp4", np.zeros(shape, np.uint8), {"mp4": "int64"})

    @pytest.mark.parametrize("value", [2**63, np.array([2**63], np.uint64), -(2**63) - 1])
    def test_an_integer_beyond_int64_is_refused(self, value: Any):
        with pytest.raises(DataError, match="does not fit int64"):
            features.field_feature("cls", value)


@given(st.integers(0, 2**64 - 1))
def test_a_varint_holds_seven_bits_a_byte_lowest_first(number: int):
    made = features.varint(number)

    assert number == sum((byte & 127) << 7 * at for at, byte in enumerate(made))
    assert [True] * (len(made) - 1) + [False] == [bool(byte & 128) for byte in made]
    assert len(made) == max(-(-number.bit_length() // 7), 1)
