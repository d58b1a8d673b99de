"""Chains: ops in a row, schemas before bytes, one traced pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tarviz.ops
from tarviz.model import plugins
from tarviz.model.errors import ChainError, SchemaError, TarvizError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Chain, Convert, Decode, Flip, Func, Resize, Rotate, draws, parse_chain

FIELDS = Schema(jpg=Feature("bytes"), cls=Feature("bytes"))


class TestMaking:
    def test_ops_inside_each_other_are_ops_in_a_row(self) -> None:
        chain = Chain(Decode("jpg"), Convert("jpg", "float32"), Resize("jpg", (224, 224)))

        assert chain == Chain.of(Resize(Convert(Decode("jpg"), "float32"), (224, 224)))  # type: ignore[arg-type]
        assert chain == parse_chain("resize(convert(decode(jpg), float32), (224, 224))")
        assert chain == Chain.of(Resize(Convert(Decode("jpg"), "float32"), (224, 224)))  # type: ignore[arg-type]

    def test_texts_ops_and_chains_mix(self) -> None:
        expected = parse_chain("decode(jpg)|flip(jpg)|rotate(jpg)|keep(jpg)")

        assert expected == Chain.of(["decode(jpg)|flip(jpg)", Rotate("jpg"), parse_chain("keep(jpg)")])
        assert expected == Chain.of(expected)
        assert Chain() == Chain.of(None) == Chain.of([])

    @pytest.mark.parametrize("source", [3, [3], [Decode], object()])
    def test_anything_else_is_refused(self, source: Any) -> None:
        with pytest.raises(ChainError):
            Chain.of(source)

    def test_it_is_a_sequence(self) -> None:
        chain = parse_chain("decode(jpg)|flip(jpg)|rotate(jpg)")

        assert 3 == len(chain)
        assert parse_chain("flip(jpg)|rotate(jpg)") == chain[1:]
        assert Flip("jpg") == chain[1]

    def test_every_file_is_an_op_of_its_name(self) -> None:
        for name in plugins.names("ops"):
            class_name = "".join(part.capitalize() for part in name.split("_"))

            assert name == getattr(tarviz.ops, class_name).name
            assert class_name in tarviz.ops.__all__

    def test_the_door_knows_no_other_names(self) -> None:
        assert not hasattr(tarviz.ops, "Blur")
        assert not hasattr(tarviz.ops, "resize_images")


class TestSchema:
    def test_it_is_known_before_a_byte_is_decoded(self) -> None:
        schema = parse_chain("decode(jpg)|resize(jpg, (32, 48))|convert(jpg, float32)|decode(cls)|rename(x=jpg)").schema(FIELDS)

        assert Schema(x=Feature("float32", (32, 48, 3)), cls=Feature("int64")) == schema
        assert ["cls", "x"] == list(schema)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("resize(jpg, 3)", r"resize\(jpg, \(3, 3\)\) expects an image \[h, w, c\], got bytes\. Put decode\(jpg\) before it"),
            ("decode(cls)|resize(cls, 3)", "got int64"),
            ("decode(jgp)", "has the fields jpg, cls. Did you mean 'jpg'"),
            ("keep(cls)|decode(jpg)", "has the fields cls"),
            ("decode(jpg)|normalize(jpg, 0, 1)", r"Put convert\(jpg, float32\) before it"),
            ("decode(jpg)|encode(jpg)|resize(jpg, 3)", "got bytes"),
            ("decode(jpg)|resize(jpg, 8)|random_crop(jpg, 9)", "at least 9 x 9"),
        ],
    )
    def test_a_chain_that_does_not_fit_says_where_and_what_to_do(self, text: str, message: str) -> None:
        with pytest.raises(SchemaError, match=message):
            parse_chain(text).schema(FIELDS)

    def test_an_untyped_func_without_a_record_is_an_error(self) -> None:
        with pytest.raises(SchemaError, match="output_types"):
            Chain(Func(dict)).schema(FIELDS)

    @pytest.mark.parametrize(
        ("text", "wanted", "needed"),
        [
            ("decode(jpg)", None, None),
            ("decode(jpg)", {"cls"}, {"jpg", "cls"}),
            ("decode(jpg)|keep(jpg)", None, {"jpg"}),
            ("rename(image=jpg;png)|decode(image)", {"image", "__key__"}, {"jpg", "png"}),
            ("drop(json)", {"cls"}, {"cls"}),
            ("drop(json)", None, None),
            ("keep(image)|rename(image=jpg)", None, {"image"}),
        ],
    )
    def test_it_knows_what_has_to_be_read(self, text: str, wanted: set[str] | None, needed: set[str] | None) -> None:
        assert needed == parse_chain(text).needs(wanted)

    def test_a_func_needs_everything(self) -> None:
        assert Chain(Func(dict)).needs({"cls"}) is None


class TestTrace:
    CHAIN = parse_chain("flip(a)|resize(a, (4, 4))|rotate(a)|keep(a)")

    def record(self) -> dict[str, Any]:
        return {"__key__": "k", "__shard__": "s", "a": np.arange(192, dtype=np.uint8).reshape(8, 8, 3), "b": b""}

    def test_the_last_step_is_what_run_gives(self) -> None:
        steps = list(self.CHAIN.trace(self.record(), seed=5, epoch=1))
        expected = self.CHAIN.run(self.record(), draws(self.CHAIN, [b"k"], 5, 1)[0])

        assert ["flip", "resize", "rotate", "keep"] == [step.op.name for step in steps]
        np.testing.assert_array_equal(expected["a"], steps[-1].record["a"])
        assert steps[0].drawn in ("flipped", "not flipped")
        assert steps[2].drawn.startswith("turned by")
        assert Feature("uint8", (4, 4, 3)) == steps[1].feature
        assert all(step.seconds >= 0 and step.error is None for step in steps)
        assert steps[3].value is None

    def test_another_seed_draws_anew(self) -> None:
        drawn = {tuple(step.drawn for step in self.CHAIN.trace(self.record(), seed=seed)) for seed in range(5)}

        assert len(drawn) > 1

    def test_an_op_that_fails_is_the_last_step_and_keeps_its_error(self) -> None:
        steps = list(parse_chain("flip(a)|decode(b)|rotate(a)").trace(self.record()))

        assert ["flip", "decode"] == [step.op.name for step in steps]
        assert isinstance(steps[-1].error, TarvizError)
        assert "k" == steps[-1].error.key
