"""Pipelines: a value that prints and reads back, and knows its schema before anything is decoded."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import ChainError, DataError, NotFoundError, SchemaError, UsageError
from tarviz.model.types import Feature, Schema
from tarviz.ops import Decode, Func, Resize, SelectDict, SelectJSON
from tarviz.pipeline import Pipeline
from tarviz.read import stream
from tarviz.read.mixes import mix
from tarviz.selection import parse
from tarviz.testing.strategies import shard

CHAIN = "decode(jpg)|resize(jpg, (32, 48))"


class TestValue:
    def test_text_and_ops_say_the_same(self) -> None:
        expected = Pipeline("a.tar", CHAIN, select=("jpg", "cls"))

        assert expected == Pipeline("a.tar", [Decode("jpg"), Resize("jpg", (32, 48))], select=("jpg", "cls"))
        assert expected == Pipeline(Path("a.tar"), Resize(Decode("jpg"), (32, 48)), select=parse(("jpg", "cls")))  # type: ignore[arg-type]
        assert hash(expected) == hash(expected.with_seed(0))
        assert expected != expected.with_seed(1)

    @pytest.mark.parametrize(
        "pipeline",
        [
            Pipeline("train-{0000..0003}.tar"),
            Pipeline(["a.tar", "b.tar"], CHAIN, select=("jpg", {"label": "cls"}), seed=3),
            Pipeline("a.tar", 'decode("a b")|rotate("a b", -1.5)', select=SelectDict(x=SelectJSON("json", ["a", 0, 'q"']))),
            Pipeline('a"b.tar', None, select=["jpg"], strict=False, on_error="skip", block_size=4096, group="shard", key_split="last-dot"),
        ],
    )
    def test_it_prints_pickles_and_reads_back(self, pipeline: Pipeline) -> None:
        assert pipeline == Pipeline.of(repr(pipeline))
        assert pipeline == eval(repr(pipeline), {"Pipeline": Pipeline, "SelectJSON": SelectJSON})
        assert pipeline == pickle.loads(pickle.dumps(pipeline))

    @given(st.lists(st.text(), min_size=1, max_size=3), st.text(min_size=1), st.integers())
    def test_any_url_and_field_reads_back(self, urls: list[str], field: str, seed: int) -> None:
        pipeline = Pipeline(urls, [Decode(field)], select=(field, [field]), seed=seed)

        assert pipeline == Pipeline.of(repr(pipeline))

    def test_it_prints_as_it_is_written(self) -> None:
        text = 'Pipeline("train-{0..3}.tar", "decode(jpg)|resize(jpg, (32, 32))", select=("jpg", "cls"), seed=3, strict=False)'

        assert text == repr(Pipeline.of(text))

    @pytest.mark.parametrize("text", ["Dataset('a')", "Pipeline('a', select=Open('x'))", "Pipeline('a'", "decode(jpg)|decode(jpg)"])
    def test_another_text_is_refused(self, text: str) -> None:
        with pytest.raises(ChainError):
            Pipeline.of(text)

    def test_changes_make_a_new_one(self) -> None:
        pipeline = Pipeline("a.tar", CHAIN, select="jpg", seed=1, strict=False)
        changed = pipeline.with_urls(["b.tar"]).with_chain("decode(png)").with_select(("png",)).with_seed(2)

        assert Pipeline("b.tar", "decode(png)", select=("png",), seed=2, strict=False) == changed
        assert Pipeline("a.tar", CHAIN, select="jpg", seed=1, strict=False) == pipeline

    def test_an_option_that_does_not_exist_is_refused(self) -> None:
        with pytest.raises(UsageError, match=r"no option 'stric'.*strict"):
            Pipeline("a.tar", stric=True)  # type: ignore[call-arg]
        with pytest.raises(UsageError, match="on_error='ignore' is not one of raise, skip"):
            Pipeline("a.tar", on_error="ignore")  # type: ignore[arg-type]

    def test_it_knows_what_has_to_be_read(self) -> None:
        assert frozenset({"jpg", "cls"}) == Pipeline("a.tar", CHAIN, select=("jpg", "cls")).needs
        assert Pipeline("a.tar", CHAIN).needs is None


class TestSchema:
    def test_it_has_the_structure_of_the_selection(self, digits: Path) -> None:
        url = str(digits / "train-0000.tar")

        expected = (Feature("uint8", (32, 48, 3)), {"y": Feature("int64")})
        assert expected == Pipeline(url, "decode(png)|resize(png, (32, 48))|decode(cls)", select=("png", {"y": "cls"})).schema()
        assert Schema(__key__=Feature("str"), png=Feature("bytes"), cls=Feature("bytes")) == Pipeline(url).schema()

    def test_nothing_is_decoded(self, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Decode, "apply", None)

        assert Feature("uint8", (None, None, 3)) == Pipeline(str(digits / "train-0000.tar"), "decode(png)", select="png").schema()

    def test_a_wrong_chain_fails_at_once_and_names_the_cure(self, digits: Path) -> None:
        with pytest.raises(SchemaError, match=r"Put decode\(png\) before it") as caught:
            Pipeline(str(digits / "train-0000.tar"), "resize(png, 3)").schema()
        assert str(digits / "train-0000.tar") == caught.value.shard

        with pytest.raises(SchemaError, match="Did you mean 'png'"):
            Pipeline(str(digits / "train-0000.tar"), "decode(pgn)").schema()

    def test_a_func_is_tried_on_one_record(self, digits: Path) -> None:
        calls = []

        def mean(record: dict[str, Any]) -> None:
            calls.append(record["__key__"])
            record["mean"] = record["png"].mean(axis=(0, 1))

        schema = Pipeline(str(digits / "train-0000.tar"), [Decode("png"), Func(mean)], select=("png", "mean")).schema()

        assert (Feature("uint8", (None, None, 3)), Feature("float64", (3,))) == schema
        assert ["train/n00000000"] == calls

    def test_a_value_inside_json_is_looked_up_in_one_record(self, photos: Path) -> None:
        url = str(photos / "photos-0000.tar")
        record = next(iter(stream.records(url)))
        name = next(iter(parse(SelectJSON("json")).pick(record)))

        schema = Pipeline(url, select=("cls", SelectJSON("json", name))).schema()

        assert Feature("bytes") == schema[0]
        assert "object" != schema[1].dtype

    def test_where_damage_is_passed_over_it_is_tried_on_a_record_that_is_whole(self, make: Callable[..., Path]) -> None:
        url = make([("a", {"cls": b"x"}), ("b", {"cls": b"2"}), ("c", {"cls": b"3"})])
        chain = [Decode("cls"), Func(lambda record: {**record, "two": np.zeros(record["cls"])})]
        plan = Pipeline(url, chain, on_error="skip").plan()

        assert ("b", Feature("float64", (2,))) == (plan.first.key, plan.record["two"])
        with pytest.raises(DataError):
            Pipeline(url, chain).plan()

    def test_no_shard_and_no_record_are_errors(self, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError):
            Pipeline(str(tmp_path / "none.tar")).schema()
        (tmp_path / "empty.tar").write_bytes(bytes(10240))
        with pytest.warns(match="W_EMPTY"), pytest.raises(UsageError, match="no records"):
            Pipeline(str(tmp_path / "empty.tar")).schema()


class TestLength:
    def test_it_is_known_when_an_index_is(self, digits: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("TARVIZ_CACHE_DIR", str(tmp_path))
        pipeline = Pipeline(str(digits / "train-{0000..0003}.tar"))
        with pytest.raises(TypeError, match=r"tarviz\.index"):
            len(pipeline)
        assert pipeline
        assert pipeline.count() is None

        stream.index(str(digits / "train-{0000..0003}.tar"))

        assert 1500 == len(pipeline) == len(list(pipeline))

    @pytest.mark.parametrize(
        ("options", "how"),
        [
            ({"on_error": "skip"}, r"tarviz\.index"),
            ({"group": "shard"}, r"tarviz\.index"),
            ({"where": "cls < 3"}, r"len\(pipeline\.eager\(\)\)"),
            ({"keys": ["a"]}, r"len\(pipeline\.eager\(\)\)"),
        ],
    )
    def test_it_is_not_where_records_may_be_left_out(self, make: Callable[..., Path], options: dict[str, Any], how: str) -> None:
        url = make([("a", {"cls": b"1"}), ("b", {"cls": b"2"})])
        stream.index(str(url))

        assert 2 == len(Pipeline(url))
        assert Pipeline(mix({str(url): 1.0})).count() is None
        with pytest.raises(TypeError, match=how):
            len(Pipeline(url, **options))

    def test_it_is_not_of_a_shard_that_is_damaged_or_of_standard_input(self, make: Callable[..., Path]) -> None:
        data = shard([("a", {"cls": b"1"}), ("b", {"cls": b"2"})])
        url = make(data[:1024] + bytes([data[1024] ^ 0x55]) + data[1025:])
        stream.index(str(url))

        assert Pipeline(url).count() is None
        assert Pipeline("-").count() is None


class TestRunners:
    def test_iterating_it_is_eager_and_works_twice(self, digits: Path) -> None:
        pipeline = Pipeline(str(digits / "test-0000.tar"), "decode(png)|flip(png)|decode(cls)", select=("png", "cls"))
        first, second = list(pipeline), list(pipeline)

        assert 297 == len(first)
        for (x, y), (again_x, again_y) in zip(first, second, strict=True):
            np.testing.assert_array_equal(x, again_x)
            assert y == again_y

    def test_a_mix_goes_through_those_that_draw(self, make: Callable[..., Path]) -> None:
        pipeline = Pipeline(mix({str(make([("a", {"cls": b"1"})])): 1.0}))

        for runner, options in (("indexed", {}), ("tf", {"engine": "tf-service"})):
            with pytest.raises(UsageError, match=r"a mix of sources goes through eager, tf, torch"):
                pipeline.run(runner, **options)
        assert 1 == len(list(pipeline))

    def test_a_runner_that_does_not_exist_is_refused(self) -> None:
        with pytest.raises(UsageError, match=r"runners has nothing named 'eagre'. Hint: Did you mean 'eager'"):
            Pipeline("a.tar").run("eagre")
