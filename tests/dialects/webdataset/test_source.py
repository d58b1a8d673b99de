"""Which part of the shards a worker reads, and in which order; held against all that there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tarviz.dialects.webdataset as wds
from tarviz.dialects.webdataset.parts.places import WorkerPlace
from tarviz.dialects.webdataset.parts.source import PassProgress, Source, shares
from tarviz.model.errors import NotFoundError, UsageError
from tarviz.read.stream import ReadOptions
from tarviz.testing.strategies import numbered_records
from tests.conftest import each_case


@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(1, 6))
def test_all_workers_together_read_each_record_once(counts: list[int], workers: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tarviz.read.stream.index", lambda url, **_: range(counts[int(url)]))
        found = [shares([str(at) for at in range(len(counts))], worker, workers, ReadOptions()) for worker in range(workers)]
    read = [
        (int(url), record)
        for each in found
        for url, first, end in each
        for record in range(first, counts[int(url)] if end is None else end)
    ]

    assert [(at, record) for at, count in enumerate(counts) for record in range(count)] == sorted(read)
    sizes = [sum((counts[int(url)] if end is None else end) - first for url, first, end in each) for each in found]
    if len(counts) < workers:
        assert max(sizes) - min(sizes) <= 1
    for at, count in enumerate(counts):  # whoever has its last record reads to its end
        ends = [end for each in found for url, _, end in each if int(url) == at]
        assert not count or [None] == [end for end in ends if end is None or end >= count]


@pytest.fixture
def source(make: Callable[..., Path]) -> Source:
    """Four shards of three records."""
    urls = [str(make(numbered_records(3, payload=b"x", prefix=f"{at}/"), f"{at}.tar")) for at in range(4)]
    return Source(tuple(urls), nodesplitter=wds.split_by_node)


def keys(source: Source, seed: str = "s", **place: int) -> list[str]:
    return [sample["__key__"][0] for sample in source.run(PassProgress(), seed, WorkerPlace(**place), None)][::3]


class TestOrder:
    def test_ranks_and_workers_take_every_nth(self, source: Source) -> None:
        assert ["0", "1", "2", "3"] == keys(source)
        assert ["1", "3"] == keys(source, node=1, nodes=2)
        assert ["3"] == keys(source, node=1, nodes=2, worker=1, workers=2)
        assert ["0", "1", "2", "3"] == keys(replace(source, workersplitter=None), worker=1, workers=2)
        assert ["2", "3"] == keys(replace(source, workersplitter=lambda shards: list(shards)[2:]), worker=1, workers=2)

    def test_it_is_shuffled_by_seed_rank_and_worker(self, source: Source) -> None:
        shuffled = replace(source, shuffled=True)
        orders = {tuple(keys(shuffled, seed)) for seed in "abcdefgh"}

        assert len(orders) > 1
        assert all(["0", "1", "2", "3"] == sorted(order) for order in orders)
        assert keys(shuffled, "a") == keys(shuffled, "a")

    def test_a_rank_without_a_shard_is_an_error_unless_it_is_none(self, source: Source) -> None:
        with pytest.raises(UsageError, match=r"rank 5 of 6 has no shard: there are 4 of them"):
            keys(source, node=5, nodes=6)
        assert [] == keys(replace(source, empty_check=False), node=5, nodes=6)

    def test_several_ranks_have_to_say_how_they_split(self, source: Source) -> None:
        with pytest.raises(UsageError, match="this is node 0 of 2"):
            keys(replace(source, nodesplitter=wds.single_node_only), node=0, nodes=2)
        assert ["0", "1", "2", "3"] == keys(replace(source, nodesplitter=None), node=1, nodes=2)


class TestProgress:
    @each_case("taken", range(1, 12))
    def test_it_says_where_to_go_on(self, source: Source, taken: int) -> None:
        here, progress = WorkerPlace(), PassProgress()
        run = source.run(progress, "s", here, None)
        expected = [sample["__key__"] for sample in source.run(PassProgress(), "s", here, None)]
        first = [next(run)["__key__"] for _ in range(taken)]
        rest = source.run(PassProgress(progress.share, progress.record), "s", here, None)

        assert expected == first + [sample["__key__"] for sample in rest]
        assert ((taken - 1) // 3, (taken - 1) % 3 + 1) == (progress.share, progress.record)

    def test_what_was_read_is_reported(self, source: Source) -> None:
        progress = PassProgress()
        list(source.run(progress, "s", WorkerPlace(), None))

        assert (12, 4) == (progress.report.records, progress.report.shards)


@pytest.mark.filterwarnings("ignore:W_EMPTY")
class TestMissing:
    def test_a_shard_that_is_not_there_is_one_for_the_handler(self, source: Source, tmp_path: Path) -> None:
        urls = (source.urls[0], f"{tmp_path}/none-{{0..1}}.tar", source.urls[1])
        told: list[Any] = []

        def go_on(error: Exception) -> bool:
            told.append(error)
            return True

        with pytest.raises(NotFoundError):
            keys(replace(source, urls=urls))
        assert ["0", "1"] == keys(replace(source, urls=urls, handler=go_on))
        assert [NotFoundError, NotFoundError] == [type(error) for error in told]
        assert ["0"] == keys(replace(source, urls=urls, handler=wds.ignore_and_stop))

    def test_no_sample_at_all_is_an_error_of_a_lone_worker(self, source: Source, make: Callable[..., Path]) -> None:
        empty = replace(source, urls=(str(make([], "empty.tar")),), shards=replace(source.shards, options=ReadOptions(strict=False)))

        with pytest.raises(UsageError, match="there are no samples in"):
            keys(empty)
        assert [] == keys(replace(empty, empty_check=False))
        assert [] == keys(replace(empty, workersplitter=None), workers=2)

    def test_nothing_to_draw_ends(self, source: Source, make: Callable[..., Path]) -> None:
        empty = replace(source, urls=(str(make([], "empty.tar")),), resampled=True, empty_check=False)

        assert [] == keys(replace(empty, shards=replace(source.shards, options=ReadOptions(strict=False))))
