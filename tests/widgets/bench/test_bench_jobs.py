"""What a bench runs: settings in words, how many records an item is, what iterables yield."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import TarvizWarning, UsageError
from tarviz.pipeline import Pipeline
from tarviz.widgets.bench.bench_jobs import count_of, label, mean_bytes, of_iterable, of_pipeline
from tarviz.widgets.bench.controller import BenchRun
from tests.widgets.conftest import tar


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({}, "as it is"),
        ({"workers": None, "batch": None}, "as it is"),
        ({"workers": 0, "batch": 8}, "0 workers × batch 8"),
        ({"workers": 1, "batch": None, "prefetch": 2}, "1 worker × prefetch 2"),
        ({"workers": 2}, "2 workers"),
    ],
)
def test_a_setting_in_words(setting: dict[str, Any], words: str):
    assert words == label(setting)


@pytest.mark.parametrize(
    ("item", "count"),
    [
        ([np.zeros((3, 1)), np.zeros(3)], 3),
        ([np.zeros((3, 1)), np.zeros(4)], 1),
        ([np.zeros((3, 1)), "text"], 1),
        (np.zeros((3, 1)), 1),
        ([np.zeros((3, 1))], 1),
        ([np.float64(1), np.float64(2)], 1),
        ({"a": np.zeros((0, 2)), "b": np.zeros(0)}, 1),
        ((memoryview(b"ab"), memoryview(b"cd")), 1),
    ],
)
def test_records_of_a_foreign_item(item: Any, count: int):
    assert count == count_of(item)


@pytest.mark.parametrize(("per_item", "counts"), [(None, [2, 2]), (5, [5, 5]), (len, [2, 2])])
def test_an_iterable_is_counted_as_is_asked(per_item: Any, counts: list[int]):
    items = [(np.zeros((2, 3)), np.zeros(2))] * 2

    assert [(count, 0) for count in counts] == list(of_iterable(items, per_item).start())
    assert [(count, 0) for count in counts] == list(of_iterable(lambda: iter(items), per_item).start())
    assert "list" == of_iterable(items, None).label

    def batches() -> Any:
        return items

    assert ("batches", "iterable", []) == ((trial := of_iterable(batches, None)).label, trial.kind, trial.groups())


def test_bytes_of_a_record_are_those_of_the_first_block_that_has_any(tmp_path: Path):
    empty = tar(tmp_path / "e.tar", [])
    full = tar(tmp_path / "f.tar", [("a", {"txt": b"12", "cls": b"1"}), ("b", {"txt": b"1234567"})])

    with pytest.warns(TarvizWarning, match="W_EMPTY"):
        assert 5.0 == mean_bytes(Pipeline([empty, full]))
    with pytest.warns(TarvizWarning, match="W_EMPTY"):
        assert 0.0 == mean_bytes(Pipeline([empty]))


def test_a_pipeline_run_eagerly_says_what_its_threads_do_once_it_runs(tmp_path: Path):
    shard = tar(tmp_path / "f.tar", [(f"k{at}", {"txt": b"12"}) for at in range(9)])
    setting = {"workers": None, "batch": 3, "prefetch": None}
    trial = of_pipeline(Pipeline(shard), "eager", setting, lambda: 1.0, lambda: 1.0)

    assert ("batch 3", "tarviz", setting, []) == (trial.label, trial.kind, trial.setting, trial.groups())
    assert [3, 3, 3] == [count for count, _ in itertools.islice(trial.start(), 3)]
    assert [("this thread", 1)] == [(group.name, group.threads) for group in trial.groups()]
    with pytest.raises(UsageError, match="prefetch is for runner='tf'"):
        of_pipeline(Pipeline(shard), "eager", setting | {"prefetch": 1}, lambda: 1.0, lambda: 1.0)


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"runner": "torch"}, "There is no runner 'torch' to measure"),
            ({"seconds": 0}, "seconds=0, warmup=0.5, repeat=1 cannot be measured"),
            ({"seconds": 86_400}, "cannot be measured"),
            ({"repeat": 0}, "repeat=0 cannot be measured"),
            ({"warmup": -1}, "warmup=-1"),
        ],
    )
    def test_what_cannot_be_measured(self, options: dict[str, Any], words: str):
        with pytest.raises(UsageError, match=words):
            BenchRun([1], **options)

    def test_peers_of_items_and_options_of_a_pipeline(self, tmp_path: Path):
        with pytest.raises(UsageError, match="Peers read shards"):
            BenchRun([1], vs=["webdataset"])
        pipeline = Pipeline(tar(tmp_path / "f.tar", [("a", {"txt": b"12"})]))
        for options in ({"chain": "flip(png)"}, {"select": "txt"}, {"strict": False}):
            with pytest.raises(UsageError, match="A Pipeline brings chain, selection and options of its own"):
                BenchRun(pipeline, **options)
        run = BenchRun(pipeline, count=1, batch=None, seconds=30)
        assert run.wait(60)
        assert 1 == run.result.rows[0].runs[0].total_records
