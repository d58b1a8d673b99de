from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz.formats import example, tfrecord
from tarviz.model.errors import DataError, LimitError, SchemaError, UsageError
from tests.conftest import each_case

CORPORA = Path(__file__).parents[1] / "data" / "corpora"


def tf_example(fields: dict[str, Any]) -> Any:
    """TensorFlow's Example of name → list, the kind told by the first value."""
    tf = pytest.importorskip("tensorflow")
    kinds = {bytes: ("bytes_list", tf.train.BytesList), int: ("int64_list", tf.train.Int64List), float: ("float_list", tf.train.FloatList)}
    made = {}
    for name, values in fields.items():
        field, kind = kinds[type(values[0])]
        made[name] = tf.train.Feature(**{field: kind(value=values)})
    return tf.train.Example(features=tf.train.Features(feature=made))


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
FLOATS = st.floats(width=32, allow_nan=False)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
PAYLOADS = st.binary(max_size=300) | st.sampled_from([b"a" * 127, b"b" * 128, b"c" * 16384, b"\0" * 20000])
FIELDS = st.dictionaries(st.sampled_from(["png", "jpg", "cls2", "txt", "seg.png"]), PAYLOADS)
VALUES = st.one_of(
    st.lists(st.binary(max_size=40), min_size=1, max_size=4),
    st.lists(INTEGERS, min_size=1, max_size=40),
    st.lists(FLOATS, min_size=1, max_size=6),
)


class TestEncode:
    def test_a_record_becomes_features_sorted_by_name_with_the_key_in_it(self):
        data = example.encode({"__key__": "k0", "png": b"abc", "cls": b"7", "__shard__": "a.tar", "__index__": 3})

        assert {"__key__": [b"k0"], "cls": [7], "png": [b"abc"]} == example.decode(data)
        assert ["__key__", "cls", "png"] == list(example.decode(data))

    def test_without_key(self):
        assert {"txt": [b"x"]} == example.decode(example.encode({"__key__": "k0", "txt": b"x"}, key=False))

    @given(st.dictionaries(NAMES.filter(lambda name: not name.startswith("__")), VALUES, max_size=6))
    def test_decode_gives_back_what_was_encoded(self, fields):
        assert fields == example.decode(example.encode(fields))

    @given(st.dictionaries(NAMES.filter(lambda name: not name.startswith("__")), VALUES, max_size=6))
    @settings(max_examples=60, deadline=None)
    def test_the_bytes_are_those_of_tensorflow(self, fields):
        expected = tf_example(fields)

        data = example.encode(fields)

        assert expected.SerializeToString(deterministic=True) == data or not fields

    def test_class_fields_are_integers_and_the_rest_bytes(self):
        record = {"cls": b" 7\n", "cls2": b"-1", "class": b"0", "index": b"+12", "id": b"007", "txt": b"7"}
        expected = {"cls": [7], "cls2": [-1], "class": [0], "index": [12], "id": [7], "txt": [b"7"]}

        assert expected == example.decode(example.encode(record))

    def test_types_win_over_the_rules_and_the_rules_hold_for_the_rest(self):
        data = example.encode({"cls": b"7", "id": b"8", "emb": b"1.5 -2e3 nan"}, {"cls": "bytes", "emb": "float"})

        found = example.decode(data)

        assert [b"7"] == found["cls"]
        assert [8] == found["id"]
        assert [1.5, -2000.0] == found["emb"][:2]
        assert math.isnan(found["emb"][2])

    def test_an_unknown_kind_is_refused_with_those_that_exist(self):
        with pytest.raises(UsageError, match="bytes, int64, float"):
            example.encode({"cls": b"7"}, {"cls": "int32"})

    @each_case("text", [b"cat", b"", b" ", b"1_0", b"1 2", b"0x10", b"1.0", b"7\0", "७".encode(), b"--1", b"9" * 10_000])
    def test_what_is_no_integer_is_an_error_that_names_field_record_and_shard(self, text):
        with pytest.raises(DataError, match="'cls'") as caught:
            example.encode({"__key__": "k7", "__shard__": "a.tar", "cls": text})

        assert ("E_DECODE", "k7", "a.tar") == (caught.value.code, caught.value.key, caught.value.shard)

    @pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0])
    def test_integers_reach_from_end_to_end_of_int64(self, value):
        assert [value] == example.decode(example.encode({"cls": b"%d" % value}))["cls"]

    @pytest.mark.parametrize("text", [b"9223372036854775808", b"-9223372036854775809"])
    def test_integers_beyond_int64_are_refused(self, text):
        with pytest.raises(DataError, match="int64"):
            example.encode({"cls": text})

    def test_a_megabyte_of_zeros_is_refused_at_once(self):
        with pytest.raises(DataError):
            example.encode({"cls": b"0" * 1_000_000 + b"x"})

    def test_decoded_values_become_lists_of_their_kind(self):
        record = {
            "ints": np.arange(4, dtype=np.int32).reshape(2, 2),
            "floats": np.float64([0.5, 1.5]),
            "half": np.float16(0.5),
            "flag": np.array([True, False]),
            "scalar": 3,
            "real": 0.25,
            "text": "größe",
            "words": ["a", b"b"],
            "names": np.array(["x", "yy"]),
            "image": np.zeros((2, 2, 3), np.float32),
            "empty": np.zeros(0, np.float32),
        }

        found = example.decode(example.encode(record))

        assert [0, 1, 2, 3] == found["ints"]
        assert [0.5, 1.5] == found["floats"]
        assert [0.5] == found["half"]
        assert [1, 0] == found["flag"]
        assert [3] == found["scalar"]
        assert [0.25] == found["real"]
        assert ["größe".encode()] == found["text"]
        assert [b"a", b"b"] == found["words"]
        assert [b"x", b"yy"] == found["names"]
        assert [0.0] * 12 == found["image"]
        assert [] == found["empty"]

    def test_integers_become_floats_where_types_says_so(self):
        assert [3.0] == example.decode(example.encode({"x": 3}, {"x": "float"}))["x"]

    def test_a_uint8_image_asks_for_an_encode_op(self):
        with pytest.raises(SchemaError, match=r"encode\(jpg\)"):
            example.encode({"jpg": np.zeros((4, 4, 3), np.uint8)})

    @each_case("value", [None, {"a": 1}, [[1, 2], [3]], [None], object(), np.complex64(1), [1, {}]])
    def test_a_value_no_feature_can_hold_is_refused_by_name(self, value):
        with pytest.raises(SchemaError, match="'json'"):
            example.encode({"json": value})

    @each_case(
        ("value", "kind"), [(np.float32([1]), "int64"), (np.int32([1]), "bytes"), ([b"x"], "float"), (["x"], "int64"), (1.5, "int64")]
    )
    def test_a_value_of_another_kind_than_types_says_is_refused(self, value, kind):
        with pytest.raises(SchemaError, match="'x'"):
            example.encode({"x": value}, {"x": kind})

    @each_case("value", [2**63, np.array([2**63], np.uint64), [2**64], 2**70])
    def test_numbers_beyond_int64_are_refused(self, value):
        with pytest.raises((DataError, SchemaError), match="'x'"):
            example.encode({"x": value})

    def test_a_name_that_is_no_utf8_is_refused_with_the_cure(self):
        with pytest.raises(SchemaError, match="rename"):
            example.encode({"j\udcffpg": b"x"})

    def test_an_example_beyond_2_gib_is_refused(self, monkeypatch):
        monkeypatch.setattr("tarviz.formats.features.LARGEST", 1000)

        with pytest.raises(LimitError, match="protobuf"):
            example.encode({"x": b"0" * 990})


class TestDecode:
    def test_lists_may_be_packed_or_not(self):
        unpacked = b"\x1a\x04\x08\x01\x08\x02"
        floats = b"\x12\x0a\x0d\x00\x00\x80\x3f\x0d\x00\x00\x00\x40"
        mixed = b"\x0a\x28" + b"\x01" * 40 + b"\x08\x02" + b"\x0a\x01\x03"

        assert {"a": [1, 2]} == example.decode(_example(b"a", unpacked))
        assert {"a": [1] * 40 + [2, 3]} == example.decode(_example(b"a", b"\x1a" + bytes([len(mixed)]) + mixed))
        assert {"a": [1.0, 2.0]} == example.decode(_example(b"a", floats))

    def test_of_a_repeated_name_the_last_counts(self):
        one, two = _example(b"a", b"\x1a\x03\n\x01\x01"), _example(b"a", b"\x1a\x03\n\x01\x02")

        assert {"a": [2]} == example.decode(one + two)

    def test_lists_of_one_kind_join_and_another_kind_replaces(self):
        one, two, three = b"\x1a\x03\n\x01\x01", b"\x1a\x03\n\x01\x02", b"\n\x03\n\x01x"

        assert {"a": [1, 2]} == example.decode(_example(b"a", one + two))
        assert {"a": [b"x"]} == example.decode(_example(b"a", one + three))

    def test_empty_things_are_empty(self):
        assert {} == example.decode(b"")
        assert {} == example.decode(b"\n\x00")
        assert {"": (None, [])} == example.features(b"\n\x02\n\x00")
        assert {"a": ("float", [])} == example.features(_example(b"a", b"\x12\x00"))

    @pytest.mark.parametrize("values", [list(range(300)), [-1] * 20, [2**63 - 1, -(2**63), 0, 127, 128] * 5])
    def test_long_lists_are_the_same_as_short_ones(self, values):
        assert {"a": values} == example.decode(example.encode({"a": values}))

    @each_case(
        ("data", "offset"),
        [
            (b"\xff\xff\xff\xff garbage", 0),
            (b"\x12\x00", 0),
            (b"\n\x05\n", 0),
            (b"\n", 1),
            (b"\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 1),
            (b"\n\x03\n\x01\xff", 4),
            (b"\n\x05\n\x03\n\x01\xff", 6),
            (b"\n\x02\x08\x01", 2),
        ],
    )
    def test_garbage_is_bad_and_says_where(self, data, offset):
        with pytest.raises(DataError) as caught:
            example.decode(data)

        assert ("E_BAD_EXAMPLE", offset) == (caught.value.code, caught.value.offset)

    @each_case(
        "feature",
        [
            b"\x12\x05\n\x03abc",
            b"\x12\x03\x0dab",
            b"\x1a\x03\n\x01\xff",
            b"\x1a\x0c\n\x0a" + b"\xff" * 9 + b"\x02",
            b"\x1a\x02\x10\x01",
            b"\x1a\x2a\n\x28" + b"\x01" * 39 + b"\x81",
            b"\x1a\x2a\n\x28" + b"\x81" * 39 + b"\x01",
            b"\x22\x00",
        ],
    )
    def test_lists_that_are_no_lists_are_bad(self, feature):
        with pytest.raises(DataError) as caught:
            example.decode(_example(b"a", feature))

        assert "E_BAD_EXAMPLE" == caught.value.code

    @given(st.binary(max_size=60))
    def test_any_bytes_decode_or_are_bad(self, data):
        try:
            found = example.decode(data)
        except DataError as error:
            assert "E_BAD_EXAMPLE" == error.code
        else:
            assert all(isinstance(name, str) and isinstance(values, list | np.ndarray) for name, values in found.items())

    @given(st.data())
    def test_a_damaged_example_decodes_or_is_bad(self, data):
        whole = bytearray(example.encode({"__key__": "k", "cls": 5, "png": b"abcdef", "emb": np.arange(9, dtype=np.float32)}))
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
        cut = whole[: data.draw(st.integers(0, len(whole)))]
        try:
            found = example.decode(cut)
        except DataError as error:
            assert "E_BAD_EXAMPLE" == error.code
        else:
            assert sum(len(name.encode("utf-8", "surrogateescape")) for name in found) <= len(cut)

    @given(st.dictionaries(NAMES, VALUES, max_size=5))
    @settings(max_examples=40, deadline=None)
    def test_what_tensorflow_writes_in_any_order_is_read(self, fields):
        data = tf_example(fields).SerializeToString()

        assert fields == example.decode(data)

    def test_another_kind_than_types_says_is_a_schema_error_that_names_the_field(self):
        with pytest.raises(SchemaError, match="'id' is a bytes list, not int64") as caught:
            example.decode(example.encode({"id": b"x"}, {"id": "bytes"}), {"id": "int64"})

        assert "E_SCHEMA" == caught.value.code

    def test_a_missing_feature_is_a_schema_error(self):
        with pytest.raises(SchemaError, match="'cls' is missing"):
            example.decode(b"", {"cls": "int64"})


def _example(name: bytes, feature: bytes) -> bytes:
    entry = b"\n" + bytes([len(name)]) + name + b"\x12" + bytes([len(feature)]) + feature
    entries = b"\n" + bytes([len(entry)]) + entry
    return b"\n" + bytes([len(entries)]) + entries


class TestAnchors:
    """What the earlier systems wrote is read the same."""

    def test_features_equal_those_tensorflow_found(self):
        expected = json.loads((CORPORA / "examples.json").read_text())
        there = {name: entry for name, entry in expected.items() if "examples" in entry and (CORPORA / name).exists()}

        assert len(there) == len(expected)
        for name, entry in there.items():
            with (CORPORA / name).open("rb") as file:
                found = [example.features(data) for data in tfrecord.read(file)]
            for wanted, features in zip(entry["examples"], found, strict=False):
                assert {field: (kind.removesuffix("_list"), len(values)) for field, (kind, values, *_) in wanted.items()} == {
                    field: (kind, len(values)) for field, (kind, values) in features.items()
                }, name
                for field, (kind, values, *_) in wanted.items():
                    if kind == "bytes_list":
                        assert [size for size, *_ in values] == [len(value) for value in features[field][1]]
                    else:
                        assert values == features[field][1][: len(values)]
