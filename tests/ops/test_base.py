"""What every op has from its base: its text, the field it works on, what it needs, and errors with their place."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image

from tarviz.model.errors import ChainError, SchemaError, TarvizError
from tarviz.model.types import Feature, Schema
from tarviz.ops import (
    CenterCrop,
    Chain,
    Clip,
    Convert,
    Decode,
    Encode,
    FieldOp,
    Flip,
    Keep,
    LogMel,
    RandomClip,
    Resize,
    Spectrogram,
)
from tarviz.ops.base import Op, feature_of, in_graph, missing, names_of, unpack
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


def test_an_op_that_says_nothing_of_graphs_stays_out_of_them() -> None:
    assert [False, False, True] == [in_graph(kind) for kind in (Op, Scale, Resize)]


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
        with pytest.raises(SchemaError, match=r"scale\(png;jpg\) expects a field 'png;jpg'; there are x"):
            self.OP.run_schema(Schema(x=Feature("bytes")))

    def test_all_alternatives_have_to_be_read(self) -> None:
        assert frozenset({"png", "jpg", "x"}) == self.OP.needs(frozenset({"x"}))
        assert self.OP.needs(None) is None


class TestNames:
    def test_places_are_not_fields(self) -> None:
        assert ["a", "_b", "__url__"] == names_of(["__key__", "a", "_b", "__index__", "__url__"])

    def test_the_nearest_name_is_offered(self) -> None:
        error = missing("decode(jgp)", "jgp", ["__key__", "jpg", "cls"])

        assert "decode(jgp) expects a field 'jgp'; there are jpg, cls. Did you mean 'jpg'?" == error.message
        assert {"op": "decode(jgp)", "field": "jgp"} == error.details
        assert "there are none" in missing("x", "a", ["__key__"]).message

    @pytest.mark.parametrize("wrong", [(), ("",), (3,), ("a", None)])
    def test_patterns_are_names(self, wrong: tuple[Any, ...]) -> None:
        assert ("a", "b.*") == Keep("a", "b.*").exts
        with pytest.raises(ChainError, match="keep expects names of fields"):
            Keep(*wrong)


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

    @pytest.mark.parametrize("text", ["decode(jpg)|{}", "decode(jpg)|resize(jpg, 6)|{}", "decode(jpg)|{}|resize(jpg, 6)"])
    @pytest.mark.parametrize("kind", [Resize, Flip, CenterCrop])
    def test_one_derived_from_ours_does_what_it_says_wherever_it_stands(self, text: str, kind: type[Any]) -> None:
        class Dark(kind):  # type: ignore[misc]
            """Black, of the same size."""

            __slots__ = ()

            def apply(self, value: Any, draw: Any = None) -> Any:
                return value * 0

        before, after = text.split("{}")
        op = Dark("jpg", "horizontal" if kind is Flip else 4)
        picture = io.BytesIO()
        Image.new("RGB", (8, 8), (90, 120, 200)).save(picture, "JPEG")
        made = Chain.of([part for part in (before.strip("|"), op, after.strip("|")) if part]).run({"jpg": picture.getvalue()})

        assert not made["jpg"].any()
        assert (False, True) == (op.lowers, kind(*op.arguments()[0]).lowers)

    def test_one_that_changes_what_ours_does_outside_of_a_graph_needs_a_graph_of_its_own(self) -> None:
        for op, eager, graph in [
            (Decode("jpg"), "apply", "apply_tf"),
            (Convert("jpg", "float32"), "apply", "apply_tf"),
            (Keep("jpg"), "apply_record", "apply_tf_record"),
        ]:
            outside = type("Odd", (type(op),), {"__slots__": (), eager: lambda self, value, draw=None: value})
            both = type("Odd", (outside,), {"__slots__": (), graph: lambda self, value, draw=None: value})

            assert (True, False, True) == tuple(kind(*op.arguments()[0], **op.arguments()[1]).lowers for kind in (type(op), outside, both))


WHOLE = "a whole number from 1 on"
NUMBERS: dict[str, tuple[Callable[[Any], Any], list[Any], list[Any], str]] = {
    "bands": (lambda n: LogMel("wav", bands=n), [1, 80], [0, None], WHOLE),
    "size": (lambda n: Spectrogram("wav", size=n), [1], [0, -1], WHOLE),
    "hop": (lambda n: LogMel("wav", hop=n), [1], [0], WHOLE),
    "frames": (lambda n: RandomClip("mp4", n), [1], [0, None], WHOLE),
    "rate": (lambda n: Clip("wav", rate=n), [1, None], [0], WHOLE),
    "seconds": (lambda n: Clip("wav", n), [1e-6, 3, 0.5], [0, -0.5, float("nan"), None], "a number above 0"),
    "p": (lambda n: Flip("jpg", p=n), [0, 1, 0.5], [-0.01, 1.01, None], "a number from 0 to 1"),
    "quality": (lambda n: Encode("jpg", quality=n), [1, 100], [0, 101, None], "a whole number from 1 to 100"),
    "page": (lambda n: Decode("tif", page=n), [0, 3], [-1], "a whole number from 0 on"),
    "every": (lambda n: Decode("mp4", every=n), [1, None], [0], WHOLE),
    "fps": (lambda n: Decode("mp4", fps=n), [0.1, 1, None], [0, -1], "a number above 0"),
    "start": (lambda n: Decode("mp4", start=n), [0, 0.5], [-0.1, None], "a number from 0 on"),
}


class TestNumbers:
    def test_one_that_an_op_cannot_take_is_refused_with_its_bounds(self) -> None:
        for name, (make, good, bad, bounds) in NUMBERS.items():
            for number in good:
                assert number == getattr(make(number), name)
            for number in [*bad, True, "1", *([1.0] if "whole" in bounds else [])]:
                with pytest.raises(ChainError) as caught:
                    make(number)
                assert caught.value.message.endswith(f" expects {name} as {bounds}, got {number!r}.")


class TestFeatures:
    def test_a_value_is_an_example_of_one(self) -> None:
        for value, expected in [
            (True, "bool"),
            (3, "int64"),
            (0.5, "float64"),
            ("x", "str"),
            (b"x", "bytes"),
            (memoryview(b"x"), "bytes"),
            (np.float32(1), "float32"),
            (np.zeros((2, 0), np.int8), "int8[2, 0]"),
            ({"a": 1}, "object"),
            (None, "object"),
        ]:
            assert expected == str(feature_of(value))

    def test_draws_are_shown_as_numbers_where_an_op_says_nothing_else(self) -> None:
        assert "0.125, 0.500" == Scale("a").describe_draw(np.array([0.125, 0.5]))
        assert not Scale("a").native(Feature("uint8"))


class TestOtherNames:
    def test_a_field_of_the_same_kind_is_named(self) -> None:
        for asked, there, hint in [
            ("jpg", ["jpeg", "png", "cls"], 'Where a picture has several endings name all of them: "jpg;jpeg;png".'),
            ("jpg;png", ["png", "webp"], 'Where a picture has several endings name all of them: "jpg;png;webp".'),
            ("seg.png", ["png", "seg.jpg"], 'Where a picture has several endings name all of them: "seg.png;seg.jpg".'),
            ("wav", ["flac", "mp4"], 'Where a picture has several endings name all of them: "wav;flac".'),
            ("json", ["jsn"], None),
            ("jpg", ["cls"], None),
        ]:
            assert hint == missing("decode", asked, there).hint

    def test_a_field_named_like_a_place_is_refused(self, tmp_path: Any) -> None:
        (tmp_path / "a.tar").write_bytes(shard([("k", {"__key__": b"1", "cls": b"2"})]))
        (record,) = stream.records(tmp_path / "a.tar")

        with pytest.raises(SchemaError, match="a field is named '__key__', which is where an op finds the record's own key") as caught:
            unpack(record)
        assert ("k", str(tmp_path / "a.tar")) == (caught.value.key, caught.value.shard)
        assert "cls" in unpack(record, {"cls"})
