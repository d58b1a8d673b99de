"""What every op has from its base: its text, the field it works on, what it needs, and errors with their place."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from tarviz.model.errors import ChainError, SchemaError, TarvizError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Chain, Decode, FieldOp, Keep, Resize
from tarviz.ops.base import missing, names_of, patterns, unpack
from tarviz.read import stream
from tarviz.testing.strategies import shard


@dataclass(frozen=True, slots=True)
class Scale(FieldOp):
    """Multiplies."""

    by: int = 2
    to: str = ""
    name: ClassVar[str] = "scale"

    def apply(self, value: Any, draw: Any = None) -> Any:
        return value * self.by

    def infer(self, feature: Feature) -> Feature:
        return feature


class TestArguments:
    def test_defaults_are_left_out_of_the_text_but_not_before_others(self) -> None:
        assert ["scale(a)", "scale(a, 3)", "scale(a, 2, x)"] == [str(op) for op in (Scale("a"), Scale("a", 3), Scale("a", 2, "x"))]

    def test_the_field_has_to_be_named(self) -> None:
        for wrong in ("", 3, None, Keep("jpg")):
            with pytest.raises(ChainError, match="scale needs the name of a field"):
                Scale(wrong)  # type: ignore[arg-type]

    def test_an_op_in_place_of_the_field_is_done_before(self) -> None:
        op = Scale(Resize(Decode("png"), 3), 5)  # type: ignore[arg-type]

        assert "decode(png)|resize(png, (3, 3))|scale(png, 5)" == "|".join(map(str, op.steps)) == str(Chain.of(op))
        assert op == pickle.loads(pickle.dumps(op))


class TestField:
    OP = Scale("png;jpg")

    def test_of_alternatives_the_first_that_is_there_is_meant(self) -> None:
        assert {"jpg": 2, "x": 1} == self.OP.run({"jpg": 1, "x": 1})
        assert {"jpg": 1, "png": 2} == self.OP.run({"jpg": 1, "png": 1})

    def test_a_name_that_holds_a_semicolon_comes_first(self) -> None:
        assert {"png;jpg": 2, "png": 1} == self.OP.run({"png;jpg": 1, "png": 1})

    def test_the_record_that_is_given_stays_as_it_is(self) -> None:
        record = {"png": 1}
        self.OP.run(record)

        assert {"png": 1} == record

    def test_the_schema_changes_in_that_field_alone(self) -> None:
        schema = Schema(jpg=Feature("uint8", (3,)), x=Feature("bytes"))

        assert schema == self.OP.run_schema(schema)
        with pytest.raises(SchemaError, match=r"scale\(png;jpg\) expects a field 'png;jpg'; the record has the fields x"):
            self.OP.run_schema(Schema(x=Feature("bytes")))

    def test_all_alternatives_have_to_be_read(self) -> None:
        assert frozenset({"png", "jpg", "x"}) == self.OP.needs(frozenset({"x"}))
        assert self.OP.needs(None) is None


class TestNames:
    def test_places_are_not_fields(self) -> None:
        assert ["a", "_b", "__url__"] == names_of(["__key__", "a", "_b", "__index__", "__url__"])

    def test_the_nearest_name_is_offered(self) -> None:
        error = missing("decode(jgp)", "jgp", ["__key__", "jpg", "cls"])

        assert "decode(jgp) expects a field 'jgp'; the record has the fields jpg, cls. Did you mean 'jpg'?" == error.message
        assert {"field": "jgp"} == error.details
        assert "the record has no fields" in missing("x", "a", ["__key__"]).message

    @pytest.mark.parametrize("wrong", [(), ("",), (3,), ("a", None)])
    def test_patterns_are_names(self, wrong: tuple[Any, ...]) -> None:
        assert ("a", "b.*") == patterns("keep", ("a", "b.*"))
        with pytest.raises(ChainError, match="keep expects names of fields"):
            patterns("keep", wrong)


class TestUnpack:
    def test_only_what_is_needed_is_copied(self, tmp_path: Any) -> None:
        (tmp_path / "a.tar").write_bytes(shard([("k", {"jpg": b"1", "cls": b"2"})]))
        (record,) = stream.records(tmp_path / "a.tar")

        places = {"__key__": "k", "__shard__": str(tmp_path / "a.tar"), "__index__": 0}
        assert places | {"jpg": b"1", "cls": b"2"} == unpack(record)
        assert places | {"cls": b"2"} == unpack(record, {"cls"})
        assert type(unpack(record)["jpg"]) is bytes


class TestForeignOps:
    def test_the_base_class_is_enough_to_write_one(self) -> None:
        class Negate(FieldOp):
            """Negates a uint8 image."""

            __slots__ = ()
            name = "negate"

            def apply(self, value: Any, draw: Any = None) -> Any:
                return 255 - value

            def infer(self, feature: Feature) -> Feature:
                return feature

        chain = Chain(Decode("png"), Negate("png"))

        assert "decode(png)|negate(png)" == str(chain)
        assert not chain[1].lowers
        assert 255 == chain[1:].run({"png": np.zeros((1, 1, 3), np.uint8)})["png"][0, 0, 0]

    def test_what_it_raises_comes_with_its_place(self) -> None:
        class Broken(FieldOp):
            """Fails."""

            __slots__ = ()
            name = "broken"

            def apply(self, value: Any, draw: Any = None) -> Any:
                raise ZeroDivisionError("by zero")

            def infer(self, feature: Feature) -> Feature:
                return feature

        with pytest.raises(TarvizError, match=r"broken\(png\) failed: ZeroDivisionError: by zero") as caught:
            Chain(Broken("png")).run({"__key__": "k", "__shard__": "s", "png": 1})

        assert "k" == caught.value.key
