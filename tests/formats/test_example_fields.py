"""Features as fields and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example as case
from hypothesis import given
from hypothesis import strategies as st

from tarviz.formats import example, example_fields, npy
from tarviz.model.errors import DataError
from tests.conftest import each_case

FLOATS = st.floats(width=32, allow_nan=False)
VALUES: Any = st.one_of(
    st.tuples(st.just("bytes"), st.lists(st.binary(max_size=12) | st.sampled_from([b"\xff\xd8\xff.", b"text", b"\x89PNG\r\n\x1a\n."]))),
    st.tuples(st.just("int64"), st.lists(st.integers(-(2**63), 2**63 - 1))),
    st.tuples(st.just("float"), st.lists(FLOATS)),
    st.just((None, [])),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    [
        "image/encoded",
        "image.encoded",
        "a//b",
        "/",
        "",
        "%",
        "cls",
        "CLS",
        "jpg",
        "txt",
        "json",
        "npy",
        "features",
        "features.json",
        "__key__",
    ]
)
PNG = b"\x89PNG\r\n\x1a\n"


class TestThereAndBack:
    @given(st.dictionaries(NAMES, VALUES, max_size=6), st.sets(NAMES))
    @case({"features": ("bytes", [b"a", b"b"]), "features/json": ("bytes", [b"a"]), "features.json": ("bytes", [])}, set())
    @case({"cls": ("bytes", [b"7"]), "id": ("int64", [7]), "json": ("bytes", [b"{}"]), "npy": ("int64", [1])}, {"id"})
    def test_features_are_what_they_were(self, features, lists):
        made = example_fields.fields(features, lists, key="k")
        found = example.features(example_fields.restore({"__key__": "k", **made}))

        assert features == found
        assert len(features) + 1 == len(made) + (features.get("__key__") == ("bytes", [b"k"]))

    @given(st.dictionaries(NAMES, VALUES, max_size=6))
    def test_fields_are_extensions_in_lower_case(self, features):
        for ext in example_fields.fields(features):
            assert ext == ext.lower()
            assert "/" not in ext
            assert "\0" not in ext

    def test_tensorflow_parses_an_equal_message(self):
        tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")
        message = tf.train.Example()
        message.features.feature["a/b"].float_list.value.extend([0.1, float("inf"), -0.0])
        message.features.feature["é"].bytes_list.value.extend([b"\xff", "é".encode()])
        message.features.feature["none"].SetInParent()
        message.features.feature["empty"].int64_list.SetInParent()
        made = example_fields.fields(example.features(message.SerializeToString()))

        assert message == tf.train.Example.FromString(example_fields.restore(made))

    @pytest.mark.parametrize("data", [b"", b"\n\0"])
    def test_an_example_of_no_bytes_is_none_without_features(self, data):
        assert data == example_fields.restore(example_fields.fields(example.features(data) if data else None))


class TestFields:
    @each_case(
        ("payload", "ext"),
        [
            (b"\xff\xd8\xff\xe0", "x.jpg"),
            (PNG, "x.png"),
            (b"GIF89a", "x.gif"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "x.webp"),
            (b"BM\x10\0\0\0\0\0\0\0", "x.bmp"),
            (b"BM is a text", "x.txt"),
            (b"II*\0", "x.tif"),
            ("ä\n".encode(), "x.txt"),
            (b"", "x.txt"),
            (b"\0", "x.bin"),
            (b"\xff", "x.bin"),
        ],
    )
    def test_one_value_is_known_by_its_bytes(self, payload, ext):
        assert {ext, "features.json"} == set(example_fields.fields({"x": ("bytes", [payload])}))

    def test_numbers_are_arrays_of_one_dimension(self):
        made = example_fields.fields({"a/b": ("float", [0.5]), "n": ("int64", [1, 2])})

        assert ("float32", [0.5]) == (npy.array_of(made["a.b.npy"]).dtype.name, npy.array_of(made["a.b.npy"]).tolist())
        assert ("int64", [1, 2]) == (npy.array_of(made["n.npy"]).dtype.name, npy.array_of(made["n.npy"]).tolist())

    def test_texts_are_json(self):
        made = example_fields.fields({"t": ("bytes", ["ä".encode(), b"\xff"])})

        assert ["ä", {"base64": "/w=="}] == json.loads(made["t.json"])

    def test_what_is_a_list_elsewhere_is_one_with_one_value(self):
        assert "x.json" in example_fields.fields({"x": ("bytes", [b"a"])}, {"x"})
        assert "n.npy" in example_fields.fields({"n": ("int64", [1])}, {"n"})
        assert "n.cls" in example_fields.fields({"n": ("int64", [1])})


class TestRestored:
    MADE = example_fields.fields({"a/n": ("int64", [1, 2]), "a/cls": ("int64", [3]), "pic": ("bytes", [PNG])})

    def test_fields_that_are_gone_are_no_features(self):
        record = {ext: data for ext, data in self.MADE.items() if ext != "pic.png"}

        assert {"a/cls": [3], "a/n": [1, 2]} == example.decode(example_fields.restore(record))

    def test_fields_that_are_new_are_features_as_they_are(self):
        found = example.decode(example_fields.restore({"__key__": "k", **self.MADE, "cls": b"5", "seg.png": b"x"}))

        assert ([5], [b"x"]) == (found["cls"], found["seg.png"])
        assert "__key__" not in found

    def test_what_a_chain_decoded_is_taken_as_it_is(self):
        found = example.decode(example_fields.restore({**self.MADE, "a.n.npy": np.array([[4, 5]]), "pic.png": b"new"}))

        assert ([4, 5], [b"new"]) == (found["a/n"], found["pic"])

    @each_case(
        ("change", "member"),
        [
            ({"features.json": b"{"}, None),
            ({"features.json": b"[]"}, "features.json"),
            ({"a.cls.cls": b"x"}, "a.cls.cls"),
            ({"t.json": b'[{"base64": 1}]', "features.json": b'{"t.json": "t"}'}, "t.json"),
            ({"t.json": b'[{"base64": "Y Q=="}]', "features.json": b'{"t.json": "t"}'}, "t.json"),
        ],
    )
    def test_what_does_not_fit_is_named(self, change, member):
        with pytest.raises(DataError) as caught:
            example_fields.restore({**self.MADE, **change})

        assert ("E_DECODE", member) == (caught.value.code, caught.value.member)
