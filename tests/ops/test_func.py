"""Func: any Python function of the record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import ChainError, DataError, SchemaError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Chain, Decode, Encode, Func, parse_chain
from tarviz.testing.ops import OpTests


def add_mean(record: dict[str, Any]) -> dict[str, Any]:
    record["mean"] = record["x"].mean(dtype=np.float32)
    return record


def fail(record: dict[str, Any]) -> None:
    raise RuntimeError("no luck")


class TestFunc(OpTests):
    op = Func(add_mean, output_types={"mean": "float32"})

    def records(self) -> list[dict[str, Any]]:
        return [{"__key__": "a", "__shard__": "s", "__index__": 0, "x": np.arange(4.0), "cls": b"1"}]

    def schema(self) -> Schema:
        return Schema(x=Feature("float64", (4,)), cls=Feature("bytes"))

    def test_it_is_not_hidden_where_the_text_says_func(self) -> None:
        assert f'func("{__name__}:add_mean")' == str(self.op)

    def test_a_text_cannot_hold_one(self) -> None:
        with pytest.raises(ChainError, match="text cannot say"):
            parse_chain('func("os:system")')


class TestProbing:
    def test_without_types_one_record_is_tried(self) -> None:
        chain = Chain(Decode("cls"), Func(lambda record: record.update(double=2 * record["cls"], name="x")))
        schema = chain.schema(Schema(cls=Feature("bytes"), jpg=Feature("bytes")), lambda: {"__key__": "a", "cls": b"7", "jpg": b""})

        expected = Schema(cls=Feature("int64"), jpg=Feature("bytes"), double=Feature("int64"), name=Feature("str"))
        assert expected == schema

    def test_what_it_leaves_alone_keeps_its_schema(self) -> None:
        chain = Chain(Decode("png"), Func(lambda record: {**record, "n": 1}))
        png = Encode("png").apply(np.zeros((2, 3, 3), np.uint8))
        schema = chain.schema(Schema(png=Feature("bytes")), lambda: {"__key__": "a", "png": png})

        assert Feature("uint8", (None, None, 3)) == schema["png"]

    def test_with_types_nothing_is_run(self) -> None:
        chain = Chain(Func(fail, output_types={"x": np.float32}, output_shapes={"x": (None, 3)}))

        assert Feature("float32", (None, 3)) == chain.schema(Schema(a=Feature("bytes")))["x"]

    def test_tensorflow_types_are_taken(self) -> None:
        tf = pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")
        op = Func(fail, output_types={"x": tf.int32, "s": tf.string}, output_shapes={"x": tf.TensorShape([None, 2])})

        assert Schema(x=Feature("int32", (None, 2)), s=Feature("bytes")) == op.infer_record(Schema())


class TestFailures:
    def test_what_it_raises_comes_with_its_place(self) -> None:
        with pytest.raises(DataError, match=r"func.*fail.*RuntimeError: no luck") as caught:
            Chain(Func(fail)).run({"__key__": "k", "__shard__": "s"})

        assert ("k", "s", "E_OP") == (caught.value.key, caught.value.shard, caught.value.code)
        assert isinstance(caught.value.__cause__, RuntimeError)

    def test_none_means_the_record_it_was_given(self) -> None:
        assert {"a": 2} == Chain(Func(lambda record: record.update(a=2))).run({"a": 1})

    def test_anything_but_a_dict_is_an_error(self) -> None:
        with pytest.raises(SchemaError, match="returned int"):
            Chain(Func(lambda record: 3)).run({"a": 1})

    def test_the_callers_record_is_its_own(self) -> None:
        record = {"a": 1}
        Chain(Func(lambda record: record.clear())).run(record)

        assert {"a": 1} == record

    def test_places_stay(self) -> None:
        assert "k" == Chain(Func(lambda record: {"a": 1})).run({"__key__": "k"})["__key__"]

    @pytest.mark.parametrize(
        "make", [lambda: Func("f"), lambda: Func(fail, output_shapes={"a": ()}), lambda: Func(fail, output_types={"a": "float31"})]
    )
    def test_wrong_arguments_are_refused(self, make: Any) -> None:
        with pytest.raises(ChainError):
            make()


def test_a_shape_needs_its_type() -> None:
    op = Func(add_mean, output_types={"a": "int32"}, output_shapes={"b": ()})

    with pytest.raises(SchemaError, match="has a shape for 'b', but no type"):
        op.infer_record(Schema())


def test_types_of_text_and_objects_are_known_by_name() -> None:
    given = {"a": bytes, "b": str, "c": object, "d": bool, "e": "string", "f": np.dtype("int8")}
    made = Func(add_mean, output_types=given, output_shapes={"a": [2, None]}).infer_record(Schema())

    assert hash(Func(add_mean)) == hash(Func(add_mean, output_types=given, output_shapes={"a": [2, None]}))
    assert "a: bytes[2, ?], b: str, c: object, d: bool, e: bytes, f: int8" == str(made)


def test_a_function_without_a_name_shows_its_class() -> None:
    class Own:
        def __call__(self, record: dict[str, Any]) -> None:
            pass

    import functools

    assert str(Func(Own())).endswith('Own")')
    assert 'func("functools:partial")' == str(Func(functools.partial(add_mean)))
