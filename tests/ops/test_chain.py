"""Chains: text that reads back, errors that point, schemas before bytes, one traced pass."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tarviz.ops
from tarviz.model import plugins
from tarviz.model.errors import ChainError, SchemaError, TarvizError
from tarviz.model.types import Feature, Schema
from tarviz.ops import (
    CenterCrop,
    Chain,
    Convert,
    Decode,
    Drop,
    Encode,
    FieldOp,
    Flip,
    Func,
    Keep,
    Normalize,
    Op,
    RandomCrop,
    Rename,
    Resize,
    Rotate,
    draws,
    parse_chain,
)
from tarviz.ops.chain_text import parse_call, print_call

NAMES = st.one_of(
    st.sampled_from(
        ["jpg", "seg.png", "jpg;png", "class", "None", "True", "7z", "a b", "größe", "x-y", "if", "'", '"', "\\", "a'\"b", "|", "\n"]
    ),
    st.text(min_size=1, max_size=12).filter(lambda name: not name.startswith("__")),
)
NUMBERS = st.one_of(st.integers(-(10**30), 10**30), st.floats(allow_nan=False, allow_infinity=False))
SIZES = st.tuples(st.integers(1, 9999), st.integers(1, 9999))
OPS: st.SearchStrategy[Op] = st.one_of(
    st.builds(Decode, NAMES, channels=st.sampled_from([0, 1, 3, 4]), unsafe=st.lists(NAMES, max_size=2).map(tuple)),
    st.builds(Convert, NAMES, st.sampled_from(["float32", "uint8"])),
    st.builds(Resize, NAMES, SIZES),
    st.builds(CenterCrop, NAMES, SIZES),
    st.builds(RandomCrop, NAMES, SIZES),
    st.builds(Rotate, NAMES, st.floats(-720, 720)),
    st.builds(Flip, NAMES, st.sampled_from(["horizontal", "vertical"]), st.floats(0, 1)),
    st.builds(Normalize, NAMES, NUMBERS, st.floats(0.1, 9) | st.tuples(st.floats(0.1, 9))),
    st.builds(Encode, NAMES, st.just("png"), quality=st.integers(1, 100)),
    st.lists(NAMES, min_size=1, max_size=3).map(lambda names: Keep(*names)),
    st.lists(NAMES, min_size=1, max_size=3).map(lambda names: Drop(*names)),
    st.dictionaries(NAMES, st.sampled_from(["jpg", "jpg;png", "a b"]), min_size=1, max_size=3).map(Rename),
)
VALUES = st.recursive(
    st.one_of(NAMES, NUMBERS, st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
FIELDS = Schema(jpg=Feature("bytes"), cls=Feature("bytes"))


class TestText:
    @given(st.lists(OPS, max_size=4))
    def test_every_chain_reads_back(self, ops: list[Op]) -> None:
        chain = Chain(*ops)

        assert chain == parse_chain(str(chain))
        assert chain == pickle.loads(pickle.dumps(chain))
        assert chain == eval(repr(chain), {"Chain": Chain})

    @given(st.lists(VALUES, max_size=3), st.dictionaries(st.sampled_from(["a", "seg.png", "if"]), VALUES, max_size=2), st.booleans())
    def test_every_literal_reads_back(self, args: list[Any], keywords: dict[str, Any], quote: bool) -> None:
        call = parse_call(print_call("op", args, keywords, quote=quote))

        assert (args, keywords) == (call.args, call.keywords)

    @given(st.text(alphabet="decodresizjpg()[]{},:=|'\" \\1.3-+\n", max_size=40))
    def test_any_text_is_a_chain_or_a_chain_error(self, text: str) -> None:
        try:
            parse_chain(text)
        except ChainError as error:
            assert error.message

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("decode(jpg", r"expected ',' or '\)' inside decode\(…\), found the end of the text, at character 11"),
            ("decode jpg", r"expected '\(' behind 'decode'"),
            ("decode(jpg)|", "expected the name of an op, found the end"),
            ("decode(jpg) resize(jpg, 3)", r"expected '\|' or the end, found 'resize', at character 13"),
            ("decode('jpg)", "a string is not closed"),
            ("resize(jpg, (3, 3)", r"expected ',' or '\)' inside resize"),
            ("resize(jpg, (3, 3", r"'\(' is not closed"),
            ("decode(jpg, channels=1, 3)", "without a name stands after one with a name"),
            ("decode(jpg, channels=1, channels=3)", "channels is given twice"),
            ("decode(jpg, 3=1)", "only a name can stand before '='"),
            ("decode(/jpg)", "'/' cannot stand here"),
            ("resize(jpg, 1__0)", "cannot be read as a number"),
            ("keep({a: 1)", "expected ',' or '}'"),
            ("keep({a})", "expected ':' behind 'a'"),
            ("keep({(1,): 2})", "a key has to be a name or a number"),
            ("decode(" * 40, "inside each other"),
            ("decod(jpg)", "no op named 'decod', at character 1.*Did you mean decode"),
            ("decode(jpg)|CentreCrop(jpg, 3)", "no op named 'CentreCrop'.*The ops are center_crop, convert"),
            ("CenterCrop(jpg, 3)", "Did you mean center_crop"),
            ("resize(jpg)", r"missing a required argument: 'size'.*It is resize\(ext, size\)"),
            ("decode(jpg, chanels=3)", "unexpected keyword argument 'chanels'.*channels=3"),
            ("decode()", "missing a required argument"),
            ("decode(3)", "needs the name of a field, got 3"),
            ("resize(jpg, big)", "as .height, width. in pixels, got 'big'"),
        ],
    )
    def test_a_wrong_text_is_answered_with_place_and_cure(self, text: str, message: str) -> None:
        with pytest.raises(ChainError, match=message):
            parse_chain(text)

    def test_nothing_is_evaluated(self) -> None:
        for text in ("decode(__import__('os').getcwd())", "decode(open('x'))", "resize(jpg, 2**99)", "decode(f'{1}')"):
            with pytest.raises(ChainError):
                parse_chain(text)

    def test_white_space_does_not_matter(self) -> None:
        assert parse_chain("decode(jpg)|resize(jpg,(32,48))") == parse_chain("\n decode( jpg )\n| resize(jpg , (32, 48), )")

    def test_an_empty_text_is_the_empty_chain(self) -> None:
        assert Chain() == parse_chain("  ")


class TestMaking:
    def test_ops_inside_each_other_are_ops_in_a_row(self) -> None:
        chain = Chain(Decode("jpg"), Convert("jpg", "float32"), Resize("jpg", (224, 224)))

        assert chain == Resize(Convert(Decode("jpg"), "float32"), (224, 224)).chain  # type: ignore[arg-type]
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


def test_reading_a_chain_loads_no_framework() -> None:
    code = (
        "import sys; from tarviz.ops import Chain; Chain.of('decode(jpg)|resize(jpg, 3)'); "
        "print([name for name in ('tensorflow', 'torch', 'IPython') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == result.stdout.strip()
