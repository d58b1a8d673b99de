"""Chains: ops in a row, schemas before bytes, one traced pass."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tarviz.ops
from tarviz import selection
from tarviz.model import plugins
from tarviz.model.errors import ChainError, DataError, SchemaError, TarvizError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Chain, Convert, Decode, Encode, Flip, Func, Resize, Rotate, draws, parse_chain
from tarviz.ops.chains import class_of, plugin_of

OPTIONS = """\
augment: carry=(), visible=0.0
carry: visible=0.0
center_crop: carry=(), visible=0.0
clip: rate=None
decode: channels=3, orient=False, least=None, dtype=None, page=0, rate=None, mono=False, frames=None, every=None, fps=None, start=0, \
seconds=None, sound=False, unsafe=()
encode: quality=90
flip: carry=(), visible=0.0
func: output_types=None, output_shapes=None
log_mel: rate=None, bands=80, size=400, hop=160, low=0.0, high=None
random_crop: carry=(), visible=0.0
rename: keep=False
resize: carry=(), visible=0.0
rotate: carry=(), visible=0.0
spectrogram: rate=None, size=400, hop=160"""
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

    def test_selections_stand_there_too(self) -> None:
        assert {name: getattr(selection, name) for name in ("Select", "SelectDict", "SelectJSON", "SelectList")} == {
            name: getattr(tarviz.ops, name) for name in dir(tarviz.ops) if name.startswith("Select")
        }

    def test_options_have_names_and_their_defaults_stay(self) -> None:
        options = []
        for name in plugins.names("ops"):
            parts = inspect.signature(class_of(name)).parameters.values()
            if own := [str(part.replace(annotation=part.empty)) for part in parts if part.kind is part.KEYWORD_ONLY]:
                options.append(f"{name}: {', '.join(own)}")

        assert OPTIONS == "\n".join(options)

    def test_the_door_knows_no_other_names(self) -> None:
        assert not hasattr(tarviz.ops, "Blur")
        assert not hasattr(tarviz.ops, "resize_images")


class TestSchema:
    def test_it_is_known_before_a_byte_is_decoded(self) -> None:
        schema = parse_chain("decode(jpg)|resize(jpg, (32, 48))|convert(jpg, float32)|decode(cls)|rename(x=jpg)").schema(FIELDS)

        assert Schema(x=Feature("float32", (32, 48, 3)), cls=Feature("int64")) == schema
        assert ["cls", "x"] == list(schema)

    def test_a_chain_that_does_not_fit_says_where_and_what_to_do(self) -> None:
        for text, message in [
            ("resize(jpg, 3)", r"resize\(jpg, \(3, 3\)\) expects an image \[h, w, c\], got bytes\. Put decode\(jpg\) before it"),
            ("decode(cls)|resize(cls, 3)", "got int64"),
            ("decode(jgp)", "there are jpg, cls. Did you mean 'jpg'"),
            ("keep(cls)|decode(jpg)", "there are cls"),
            ("decode(jpg)|normalize(jpg, 0, 1)", r"Put convert\(jpg, float32\) before it"),
            ("decode(jpg)|encode(jpg)|resize(jpg, 3)", "got bytes"),
            ("decode(jpg)|resize(jpg, 8)|random_crop(jpg, 9)", "at least 9 x 9"),
        ]:
            with pytest.raises(SchemaError, match=message):
                parse_chain(text).schema(FIELDS)

    def test_an_untyped_func_without_a_record_is_an_error(self) -> None:
        with pytest.raises(SchemaError, match="output_types"):
            Chain(Func(dict)).schema(FIELDS)

    def test_it_knows_what_has_to_be_read(self) -> None:
        for text, wanted, needed in [
            ("decode(jpg)", None, None),
            ("decode(jpg)", {"cls"}, {"jpg", "cls"}),
            ("decode(jpg)|keep(jpg)", None, {"jpg"}),
            ("rename(image=jpg;png)|decode(image)", {"image", "__key__"}, {"jpg", "png"}),
            ("drop(json)", {"cls"}, {"cls"}),
            ("drop(json)", None, None),
            ("keep(image)|rename(image=jpg)", None, {"image"}),
        ]:
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


class TestPlugins:
    def test_a_package_elsewhere_may_name_its_class(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plugins, "load", lambda group, name: Flip)

        assert Flip is class_of("any")

    def test_a_module_without_an_op_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = ModuleType("own")
        found.Flip = Flip  # type: ignore[attr-defined]  # of another module
        monkeypatch.setattr(plugins, "load", lambda group, name: found)

        with pytest.raises(ChainError, match="own holds no op"):
            class_of("any")

    @pytest.mark.parametrize(
        ("name", "plugin"), [("CenterCrop", "center_crop"), ("Flip", "flip"), ("flip", None), ("Blur", None), ("", None)]
    )
    def test_classes_are_named_as_their_files(self, name: str, plugin: str | None) -> None:
        assert plugin == plugin_of(name)

    def test_a_call_that_cannot_be_says_how_it_is_written(self) -> None:
        for text, message, hint in [
            (
                "CenterCrop(jpg, 3)",
                "there is no op named 'CenterCrop', at character 1: →CenterCrop(jpg, 3)",
                "Did you mean center_crop? The ops",
            ),
            (
                "decode(jpg)|rezise(jpg)",
                "there is no op named 'rezise', at character 13: decode(jpg)|→rezise(jpg)",
                "Did you mean resize? The ops",
            ),
            ("xyz(jpg)", "there is no op named 'xyz', at character 1: →xyz(jpg)", "The ops are augment, carry"),
            (
                "flip(jpg, q=1)",
                "flip: got an unexpected keyword argument 'q', at character 1: →flip(jpg, q=1)",
                "It is flip(ext, direction='horizontal', p=0.5, carry=(), visible=0.0).",
            ),
            ("flip(jpg, up)", "flip expects the direction horizontal or vertical, got 'up'.", "It is flip(ext"),
            ("drop()", "drop expects names of fields, got none.", "For example drop(jpg, cls)."),
        ]:
            with pytest.raises(ChainError) as caught:
                parse_chain(text)
            assert message in caught.value.message
            assert hint in str(caught.value.hint)


class TestRuns:
    def test_steps_are_told_when_they_are_done(self) -> None:
        done: list[tuple[int, int]] = []
        chain = parse_chain("convert(a, float32)|normalize(a, 0, 1)|drop(b)")
        chain.run({"a": np.zeros((2, 2, 3), np.uint8), "b": b""}, done=lambda *step: done.append(step))

        assert [(0, 2), (2, 3)] == done

    def test_values_are_written_where_there_is_room(self) -> None:
        chain = parse_chain("convert(a, float32)|normalize(a, 0.5, 1)")
        room = np.zeros((2, 2, 3), np.float32)

        assert {"a"} == chain.in_place
        assert chain == parse_chain(str(chain))  # though it has looked by now at what is done together
        assert room is chain.run({"a": np.zeros((2, 2, 3), np.uint8)}, room={"a": room})["a"]
        assert -0.5 == room[0, 0, 0]
        assert frozenset() == parse_chain("convert(a, float32)|normalize(a, 0, 1)|flip(a)").in_place == parse_chain("flip(a)").in_place

    def test_each_op_has_its_own_columns_of_the_draws(self) -> None:
        chain = parse_chain("flip(a)|resize(a, 3)|random_crop(a, 2)|rotate(a)")

        assert (slice(0, 1), slice(1, 1), slice(1, 3), slice(3, 4)) == chain.draw_slices
        assert 4 == chain.draws

    def test_an_error_of_ours_says_the_op_once_and_how_it_may_be_skipped(self) -> None:
        with pytest.raises(DataError) as caught:
            parse_chain("decode(cls)").run({"__key__": "k", "__shard__": "s", "cls": b"x"})
        assert "decode(cls): 'x' is not a whole number." == caught.value.message
        assert ('on_error="skip" leaves such records out.', "k", "s", "decode(cls)") == (
            caught.value.hint,
            caught.value.key,
            caught.value.shard,
            caught.value.details["op"],
        )
        with pytest.raises(SchemaError) as other:
            parse_chain("flip(a)").run({"a": b"x"})
        assert other.value.message.startswith("flip(a) expects an image [h, w, c], got bytes.")
        assert other.value.hint is None

    def test_a_schema_behind_an_untyped_op_is_that_of_one_record(self) -> None:
        chain = parse_chain("decode(png, channels=0)|flip(png)")
        png = Encode("png").apply(np.zeros((2, 3, 4), np.uint8))

        assert "png: uint8[?, ?, ?], x: bytes" == str(
            chain.schema(Schema(png=Feature("bytes"), x=Feature("bytes")), lambda: {"png": png, "x": b""})
        )

    def test_fields_that_an_op_has_set_are_named(self) -> None:
        chain = Chain.of(["rename(b=a)", Func(lambda record: {**record, "n": 1}), "drop(n)"])
        steps = list(chain.trace({"__key__": "k", "a": b"x"}))

        assert [("b",), ("n",), ()] == [step.fields for step in steps]
        assert [b"x", 1, None] == [step.value for step in steps]
        assert [Feature("bytes"), Feature("int64"), None] == [step.feature for step in steps]
