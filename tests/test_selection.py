"""Selections: plain Python in, the same structure out."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from tarviz import selection
from tarviz.model.errors import DataError, SchemaError, UsageError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Select, SelectDict, SelectJSON, SelectList
from tarviz.selection import SelectAll, parse, plain

RECORD = {"__key__": "train/1", "__shard__": "a.tar", "__index__": 4, "jpg": np.zeros(3), "cls": b"7", "json": b'{"a": [10, {"b": "x"}]}'}
SCHEMA = Schema(jpg=Feature("uint8", (3,)), cls=Feature("bytes"), json=Feature("bytes"))


class TestStructure:
    def test_what_is_picked_has_the_structure_asked_for(self) -> None:
        for select, expected in [
            ("cls", b"7"),
            (("cls", "__key__"), (b"7", "train/1")),
            (["cls", ("cls",)], [b"7", (b"7",)]),
            ((("cls", "cls"),), ((b"7", b"7"),)),
            ({"label": "cls", "place": ("__shard__", "__index__")}, {"label": b"7", "place": ("a.tar", 4)}),
            (Select("png;cls"), b"7"),
            (SelectJSON("json", "a"), [10, {"b": "x"}]),
            (SelectJSON("json", ["a", 0]), 10),
            (SelectJSON("json", ("a", 1, "b")), "x"),
            (SelectJSON("json"), {"a": [10, {"b": "x"}]}),
            (SelectList("cls", "cls"), [b"7", b"7"]),
            (SelectList(["cls", SelectJSON("json", ["a", -2])]), [b"7", 10]),
            (SelectDict(label="cls"), {"label": b"7"}),
            (SelectDict({"a b": ["cls"]}), {"a b": [b"7"]}),
        ]:
            node = parse(select)

            assert expected == node.pick(RECORD)
            assert node == pickle.loads(pickle.dumps(node)) == parse(plain(node))

    def test_none_is_the_whole_record_with_its_key(self) -> None:
        assert ["__key__", "jpg", "cls", "json"] == list(parse(None).pick(RECORD))
        assert Feature("str") == parse(None).infer(SCHEMA)["__key__"]
        assert parse(None).needs() is None

    @pytest.mark.parametrize("select", [(), [], {}, 3, "", Select, b"jpg"])
    def test_what_is_no_selection_is_refused(self, select: Any) -> None:
        with pytest.raises(UsageError):
            parse(select)

    def test_a_position_that_is_a_truth_value_is_refused(self) -> None:
        with pytest.raises(UsageError, match="names and positions"):
            SelectJSON("json", [True])

    def test_needs_are_the_fields_that_are_read(self) -> None:
        assert frozenset({"jpg", "png", "json", "cls"}) == parse(({"i": "jpg;png"}, [SelectJSON("json", 0)], "cls")).needs()
        assert parse(("cls", SelectAll())).needs() is None

    def test_features_come_in_the_same_structure(self) -> None:
        structure = parse({"x": "jpg", "y": ["cls", "__index__"], "z": SelectJSON("json", "a")}).infer(SCHEMA)

        assert {"x": SCHEMA["jpg"], "y": [Feature("bytes"), Feature("int64")], "z": Feature("object")} == structure

    def test_the_repr_of_json_is_python(self) -> None:
        node = SelectJSON("json", ["a\"'\\", 0, "ü"])

        assert node == eval(repr(node))


class TestErrors:
    def test_a_field_that_is_missing_is_named_with_the_record(self) -> None:
        with pytest.raises(SchemaError, match=r"asks for a field 'clz'; there are jpg, cls, json\. Did you mean 'cls'") as caught:
            parse(("jpg", "clz")).pick(RECORD)

        assert ("train/1", "a.tar") == (caught.value.key, caught.value.shard)

    def test_a_path_that_leads_nowhere_says_where_it_ends(self) -> None:
        for path, message in [
            ("b", "finds no 'b' at the top; there is an object with 'a'"),
            (["a", 5], r"finds no 5 at \['a'\]; there is a list of 2"),
            (["a", 0, "x"], "there is int"),
            (["a", "x"], "there is a list of 2"),
        ]:
            with pytest.raises(DataError, match=message) as caught:
                SelectJSON("json", path).pick(RECORD)

            assert "train/1" == caught.value.key
            assert "json" == caught.value.details["field"]

    @pytest.mark.parametrize("data", [b"{", b"\xff\xfe\x00", b"[" * 100_000, b"9" * 5000])
    def test_what_is_no_json_is_a_decoding_error(self, data: bytes) -> None:
        with pytest.raises(DataError) as caught:
            SelectJSON("json", "a").pick({**RECORD, "json": data})

        assert "E_DECODE" == caught.value.code

    def test_a_decoded_tree_is_walked_as_it_is(self) -> None:
        assert 3 == SelectJSON("json", "n").pick({"json": {"n": 3}})

    def test_an_image_is_no_json(self) -> None:
        with pytest.raises(SchemaError, match="expects JSON"):
            SelectJSON("jpg", "a").infer(SCHEMA)


class TestGraph:
    def test_lists_become_tuples(self) -> None:
        assert (b"7", {"a": (b"7",)}) == parse(["cls", {"a": ["cls"]}]).pick_tf(RECORD)

    def test_json_is_refused(self) -> None:
        with pytest.raises(SchemaError, match="graph"):
            parse((SelectJSON("json", "a"),)).pick_tf(RECORD)


def test_the_nodes_are_the_ones_of_the_module() -> None:
    assert selection.SelectJSON is SelectJSON
