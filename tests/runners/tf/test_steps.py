"""Which ops go into a graph and which stay in Python, seen without a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import SchemaError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Chain, Func, SelectJSON
from tarviz.pipeline import Pipeline
from tarviz.runners.tf.steps import GraphStep, fields_read, leaves, refill, schemas, steps

FIELDS = Schema({ext: Feature("bytes") for ext in ("jpg", "cls", "json", "txt")})


def planned(chain: Any, select: Any = None) -> list[GraphStep]:
    pipeline = Pipeline("a.tar", chain, select=select)
    schema = pipeline.chain.schema(FIELDS)
    structure = pipeline.select.infer(schema)
    if any(isinstance(leaf, SelectJSON) for leaf in pipeline.select.leaves()):
        structure = Feature("int64")
    return steps(pipeline, FIELDS, structure, dict)


class TestSteps:
    def test_ops_with_a_lowering_are_one_step_in_the_graph(self) -> None:
        (step,) = planned("decode(jpg)|flip(jpg)|resize(jpg, (8, 8))|decode(cls)", ("jpg", "cls"))

        assert not step.python
        assert slice(0, 1) == step.draws

    def test_field_ops_in_python_take_their_field_only(self) -> None:
        graph, call, again = planned("decode(jpg)|rotate(jpg)|decode(txt)|resize(jpg, (8, 8))", ("jpg", "txt", "cls"))

        assert [False, True, False] == [graph.python, call.python, again.python]
        assert {"jpg", "txt"} == set(call.takes) == {name for name, _ in call.gives}
        assert not call.whole

    def test_a_tree_never_crosses_the_border(self) -> None:
        graph, call = planned("decode(jpg)|decode(json)|rename(label=json)", SelectJSON("label", "id"))

        assert not graph.python
        assert "decode(json)|rename(label=json)" == str(call.chain)
        assert call.select is not None

    @pytest.mark.parametrize("chain", ["decode(json)|decode(jpg)", "decode(jpg)|decode(json)"])
    def test_a_field_that_nobody_asks_for_is_not_made(self, chain: str) -> None:
        assert [()] == [step.gives for step in planned(chain, "jpg") if step.python]

    def test_json_is_picked_in_python(self) -> None:
        (call,) = planned(None, SelectJSON("json", "id"))

        assert call.python
        assert [3] == [int(value) for value in call.call({"__key__": "k", "__shard__": "s"}, [b'{"id": 3}'], np.empty(0))]

    def test_a_tree_is_no_tensor(self) -> None:
        with pytest.raises(SchemaError, match="no tensor"):
            planned("decode(json)", "json")

    def test_a_value_that_does_not_fit_is_told(self) -> None:
        def grow(record: dict[str, Any]) -> None:
            record["cls"] = np.zeros(len(record["cls"]), np.float32)

        (step,) = planned(Func(grow, output_types={"cls": "float32"}, output_shapes={"cls": (2,)}), "cls")
        places = {"__key__": "k7", "__shard__": "a.tar", "__index__": 7}
        values = [b"12" if name == "cls" else b"" for name in step.takes]

        assert step.whole
        assert (2,) == step.call(places, values, np.empty(0))[0].shape
        with pytest.raises(SchemaError, match=r"float32\[3\].*float32\[2\]") as caught:
            step.call(places, [b"123"] * len(values), np.empty(0))
        assert "k7" == caught.value.key


@pytest.mark.parametrize(("varies", "expected"), [(False, "x: float64[2, 3], y: int8[4]"), (True, "x: float64[?, ?], y: int8[4]")])
def test_what_no_op_types_may_be_of_other_sizes(varies: bool, expected: str) -> None:
    typed = Func(dict, output_types={"y": "int8"}, output_shapes={"y": (4,)})
    chain = Chain(Func(lambda record: record.update(x=np.zeros((2, 3)))), typed)

    assert expected == str(schemas(chain, Schema(), dict, varies=varies)[-1])


class TestFieldsRead:
    @pytest.mark.parametrize(
        ("chain", "select", "expected"),
        [
            (None, ("png;jpg", "cls"), {"jpg": ("png", "jpg"), "cls": ("cls",)}),
            ("decode(jpg;png)", ("jpg;png",), {"jpg": ("jpg", "png")}),
            ("decode(jpg;png)", ("jpg",), {"jpg": ("jpg",)}),
            ("decode(txt)", "cls", {"cls": ("cls",), "txt": ("txt",)}),
            ("rename(image=jpg)", ("image", "jpg;png"), {"jpg": ("jpg",)}),
            (None, ("png;jpg", "png;txt"), {"jpg": ("jpg",), "txt": ("txt",)}),
            ("keep(jpg, cls)", ("jpg;png",), {"jpg": ("jpg",), "cls": ("cls",)}),
            ("keep(txt, 'j*')", ("jpg;png",), {"jpg": ("jpg", "png"), "txt": ("txt",)}),
            (None, None, {ext: (ext,) for ext in FIELDS}),
        ],
    )
    def test_alternatives_are_one_field(self, chain: Any, select: Any, expected: dict[str, tuple[str, ...]]) -> None:
        pipeline = Pipeline("a.tar", chain, select=select)

        assert expected == fields_read(pipeline, FIELDS, pipeline.needs)


def test_structures_are_taken_apart_and_filled_again() -> None:
    structure = {"a": [1, (2,)], "b": 3}

    assert [1, 2, 3] == leaves(structure)
    assert {"a": ("x", ("y",)), "b": "z"} == refill(structure, ["x", "y", "z"])
