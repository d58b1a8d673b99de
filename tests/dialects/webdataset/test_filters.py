"""`webdataset.filters`: stages one by one: what they say of items they do not fit, what they write, what they leave."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarviz.dialects.webdataset as wds
from tarviz.dialects.webdataset import filters
from tarviz.dialects.webdataset.filters import default_collation_fn
from tarviz.model.errors import SchemaError, UsageError
from tests.conftest import each_case

SAMPLE = {"__key__": "k", "__url__": "a.tar", "x.jpg": 1, "png": 2, "cls": 3}


def run(stage: Any, *items: Any) -> list[Any]:
    return list(stage(iter(items)))


class TestRefusals:
    @each_case(
        ("stage", "item", "message"),
        [
            (wds.to_tuple("cls"), (1, 2), "to_tuple works on samples that are dicts, got tuple"),
            (wds.decode(), (1, 2), "decode works on samples that are dicts, got tuple"),
            (wds.map_dict(cls=int), (1, 2), "map_dict works on samples that are dicts, got tuple"),
            (wds.rename(a="cls"), (1, 2), "rename works on samples that are dicts, got tuple"),
            (wds.rename_keys(a="cls"), (1, 2), "rename_keys works on samples that are dicts, got tuple"),
            (wds.extract_keys("cls"), (1, 2), "extract_keys works on samples that are dicts, got tuple"),
            (wds.batched(2), 3, "a batch is made of tuples or dicts, got int"),
            (wds.unbatched(), np.zeros((2, 2)), "unbatched works on tuples and dicts of columns, got ndarray"),
            (wds.unbatched(), ([1, 2], {"a": 1, "b": 2}), "unbatched works on columns of one length, got list, dict"),
            (wds.unbatched(), ([1, 2], 3), "unbatched works on columns of one length, got list, int"),
            (wds.unlisted(), {"a": 1}, "unlisted works on lists, got dict"),
            (wds.map_tuple(str), {"a": 1}, "map_tuple works on tuples, got dict"),
            (wds.map_tuple(str, str), (1,), "there are 2 functions for 1 values"),
            (wds.map_dict(gone=int), SAMPLE, "the record has no field 'gone'; there are x.jpg, png, cls"),
            (wds.rename(a="gone;none"), SAMPLE, "the record has no field 'gone' or 'none'"),
            (wds.rename_keys(a="*g"), SAMPLE, "two fields become 'a'"),
            (wds.rename_keys(a="cls", b="gone", must_match=True), SAMPLE, "no field fits the pattern 'gone'; there are x.jpg, png, cls"),
            (wds.extract_keys("*g"), SAMPLE, r"x\.jpg, png all fit '\*g'"),
            (wds.extract_keys("gone;none"), SAMPLE, "the record has no field 'gone' or 'none'"),
            (wds.xdecode(), {"a/B.Cls": b"1"}, r'no pattern fits the field \'a/B.Cls\'.*"\*\.b\.cls", f'),
        ],
    )
    def test_an_item_that_does_not_fit_is_an_error(self, stage: Any, item: Any, message: str) -> None:
        with pytest.raises((SchemaError, UsageError), match=message) as caught:
            run(stage, item)
        if item is SAMPLE:
            assert ("a.tar", "k") == (caught.value.shard, caught.value.key)

    @each_case(
        ("make", "message"),
        [
            (lambda: wds.rename_keys(), "rename_keys expects pairs"),
            (lambda: wds.map_dict(a=3), r"map_dict\(a=…\) expects a function, got 3"),
            (lambda: wds.map_tuple(str, 3), "map_tuple expects a function, got 3"),
            (lambda: wds.select(None), "select expects a function"),
            (lambda: wds.batched(True), "batched expects a whole number from 1 on, got True"),
            (lambda: wds.batched(0.5), "batched expects"),
            (lambda: wds.shuffle(7.5), r"shuffle expects a whole number from 1 on, got 7\.5"),
            (lambda: wds.shuffle(7, initial=2.5), r"shuffle\(initial=…\) expects a whole number"),
            (lambda: wds.rsample(1.01), r"a probability from 0 to 1, got 1\.01"),
            (lambda: wds.rsample(-0.01), "from 0 to 1"),
            (lambda: wds.rsample("half"), "from 0 to 1"),
            (lambda: wds.to_tuple(""), "expected names of fields"),
            (lambda: wds.to_tuple(["a", 3]), "expected names of fields"),
            (lambda: wds.DataPipeline(range(1), 3), "3 is neither a source nor a stage"),
            (lambda: wds.DataPipeline(range(1)).append(3), "3 is neither a source nor a stage"),
        ],
    )
    def test_a_wrong_call_is_refused_at_once(self, make: Callable[[], Any], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            make()


class TestFields:
    def test_a_missing_one_is_an_error_or_what_stands_for_it(self) -> None:
        with pytest.raises(SchemaError, match="no field 'a' or 'b'; there are x"):
            wds.getfirst({"x": 1, "__key__": "k"}, ["a", "b"])
        assert 7 == wds.getfirst({}, "a", default=7, missing_is_error=False)

    def test_names_and_patterns_become_new_names(self) -> None:
        (kept,) = run(wds.rename(image="jpg;png", label="cls"), SAMPLE)
        (alone,) = run(wds.rename(image=["png"], keep=False), SAMPLE)
        (by_pattern,) = run(wds.rename_keys(image="*.jpg", label="c?s"), SAMPLE)
        (beside,) = run(wds.rename_keys(("a", "png"), ("b", "png"), keep_unselected=True, must_match=False), SAMPLE)
        (doubled,) = run(wds.rename_keys(a="*g", duplicate_is_error=False), SAMPLE)

        assert {"__key__": "k", "__url__": "a.tar", "x.jpg": 1, "image": 2, "label": 3} == kept
        assert {"image": 2} == alone
        assert {"image": 1, "label": 3} == by_pattern
        assert {"__key__": "k", "__url__": "a.tar", "x.jpg": 1, "b": 2, "cls": 3} == beside
        assert {"a": 1} == doubled

    def test_patterns_choose_them(self) -> None:
        assert [(1, 3)] == run(wds.extract_keys("*.jpg;*.jpeg", ".cls"), SAMPLE)
        assert [(3,)] == run(wds.extract_keys("gone", "cls", ignore_missing=True), SAMPLE)
        assert [(1,)] == run(wds.extract_keys("*g", duplicate_is_error=False), SAMPLE)

    def test_a_tuple_of_them_may_lack_one(self) -> None:
        assert [(None, 3)] == run(wds.to_tuple("gone", "cls", missing_is_error=False), SAMPLE)
        with pytest.raises(SchemaError, match="a value of gone cls is None"):
            run(wds.to_tuple("gone", "cls", missing_is_error=False, none_is_error=True), SAMPLE)
        assert [(None,)] == run(wds.to_tuple("a", none_is_error=False), {"a": None})

    def test_something_is_added_by_key(self) -> None:
        assert [{**SAMPLE, "n": 1}] == run(wds.associate({"k": {"n": 1}}), SAMPLE)
        assert [SAMPLE] == run(wds.associate({}), SAMPLE)
        assert [{**SAMPLE, "n": "kk"}] == run(wds.associate(lambda key: {"n": 2 * key}), SAMPLE)

    def test_functions_get_values_and_dicts_keep_their_key(self) -> None:
        assert [{"n": 1, "__key__": "k"}] == run(wds.map(lambda sample: {"n": 1}), SAMPLE)
        assert [{"n": 1, "__key__": "own"}] == run(wds.map(lambda sample: {"n": 1, "__key__": "own"}), SAMPLE)
        assert [{**SAMPLE, "cls": "3"}] == run(wds.map_dict(cls=str), SAMPLE)
        assert [("1", 2, 3)] == run(wds.map_tuple(str, None), (1, 2, 3))
        assert [("1", 2)] == run(wds.map_tuple(str), [1, 2])

    def test_values_go_through_the_functions_at_their_places(self) -> None:
        values = (1, 2, 3)

        assert ["1", 2, 3] == wds.transform_with(values, [str, None])
        assert values is wds.transform_with(values, []) is wds.transform_with(values, None)

    def test_files_are_decoded_by_pattern(self) -> None:
        sample = {"__key__": "k", "a.bin": b"\0", "b.txt": b"x", "c.Json": b"[1]", "d": b"?", "e": 5}

        (found,) = run(wds.xdecode(("*.json", lambda file: file.read(2)), ("d", False), e=lambda value: value), sample)
        (plain,) = run(wds.xdecode(("*.txt", lambda file: 1), defaults=[], must_decode=False), sample)

        assert {"__key__": "k", "a.bin": b"\0", "b.txt": "x", "c.Json": b"[1", "d": b"?", "e": 5} == found
        assert {**sample, "b.txt": 1} == plain


class TestBatches:
    def test_numbers_and_arrays_are_stacked_and_the_rest_is_listed(self) -> None:
        items = [(n, n / 2, np.full(2, n), b"x", {"a": n}, np.float32(n), True) for n in range(3)]
        made = default_collation_fn(items)

        assert [[0, 1, 2], [0, 0.5, 1], [[0, 0], [1, 1], [2, 2]]] == [each.tolist() for each in made[:3]]
        assert ([b"x"] * 3, [{"a": 0}, {"a": 1}, {"a": 2}], [0, 1, 2], [True] * 3) == (made[3], made[4], made[5], made[6].tolist())
        plain = default_collation_fn(items, combine_tensors=False, combine_scalars=False)
        assert [list, list, list] == [type(each) for each in plain[:3]]

    def test_dicts_have_to_be_alike(self) -> None:
        assert {"a": [1, 2]} == {name: value.tolist() for name, value in default_collation_fn([{"a": 1}, {"a": 2}]).items()}
        with pytest.raises(SchemaError, match="samples of one batch have different fields"):
            default_collation_fn([{"a": 1}, {"b": 2}])
        with pytest.raises(SchemaError, match=r"the values of 'a' in one batch have the shapes \[1\], \[2\], \[3\]\."):
            default_collation_fn([{"a": np.zeros(n)} for n in (2, 1, 4, 3)])

    @pytest.mark.torch
    def test_tensors_become_one(self) -> None:
        torch = pytest.importorskip("torch", reason="torch is not installed")
        (made,) = default_collation_fn([(torch.tensor([n]),) for n in range(3)])

        assert [[0], [1], [2]] == made.tolist()
        with pytest.raises(SchemaError, match="shapes"):
            default_collation_fn([(torch.zeros(1),), (torch.zeros(2),)])


class TestWritten:
    def test_info_shows_the_first_and_every_nth(self) -> None:
        out = io.StringIO()
        items = [{"__key__": str(n), "txt": "x" * 60} for n in range(7)]

        assert items == run(wds.info(n=1, every=3, width=5, stream=out, name="here"), *items)
        shown = [f"--- here\n__key__ '{n}'\ntxt 'xxxx\n" for n in (0, 2, 5)]
        assert "".join(shown) == out.getvalue()

    def test_a_form_of_ones_own_goes_to_standard_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        run(wds.info("{__key__}!"), *({"__key__": n} for n in range(5)))

        assert "0!\n1!\n2!\n" == capsys.readouterr().err

    def test_keys_are_logged_with_their_place(self, tmp_path: Path) -> None:
        log = str(tmp_path / "log")
        items: list[Any] = [{"__key__": "é\udcff", "__worker__": 1, "__rank__": 2}, (1, 2)]

        assert items == run(filters.log_keys(log), *items) == run(filters.log_keys(), *items)
        assert "0\t1\t2\té\udcff\n1\tNone\tNone\tNone\n" == Path(log).read_text("utf-8", "surrogateescape")
        run(filters.log_keys(log), *items)
        assert 4 == len(Path(log).read_bytes().splitlines())


def double(source: Any, times: int = 2) -> Any:
    return (item for item in source for _ in range(times))


def test_a_stage_of_ones_own_travels() -> None:
    stage = pickle.loads(pickle.dumps(wds.pipelinefilter(double)(times=3)))

    assert [1, 1, 1] == run(stage, 1)
    assert "double" == wds.pipelinefilter(double).__name__  # type: ignore[attr-defined]


def test_stages_that_run_at_once_have_an_underscore() -> None:
    assert [2, 3] == list(filters._map([1, 2], lambda n: n + 1))  # type: ignore[attr-defined]
    assert [1] == list(filters._select([1, 2], lambda n: n < 2))  # type: ignore[attr-defined]
    assert {1, 2, 3} == {*filters._shuffle([1, 2, 3], 2, 1)}  # type: ignore[attr-defined]


def test_errors_of_stages_are_told_to_handlers() -> None:
    told: list[Exception] = []

    def fails(item: int) -> int:
        if item % 2:
            raise ValueError(item)
        return item

    def go_on(error: Exception) -> bool:
        told.append(error)
        return True

    assert [0, 2] == run(wds.map(fails, handler=go_on), *range(4))
    assert [0] == run(wds.map(fails, handler=wds.ignore_and_stop), *range(4))
    assert [1, 3] == [error.args[0] for error in told]
