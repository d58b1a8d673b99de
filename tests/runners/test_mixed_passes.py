"""Mixed pipelines in every runner: the same records in the same order, shared out, and resumed behind any of them."""

from __future__ import annotations

import io
import itertools
import json
import tarfile
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tarviz
from tarviz.model.errors import UsageError
from tarviz.pipeline import Pipeline
from tarviz.read.mixes import Stop
from tarviz.read.stream import ReadReport
from tarviz.runners.plans import ReaderPlan, Trail
from tarviz.runners.shares import ShareReader
from tarviz.runners.walk import Walk

pytestmark = pytest.mark.filterwarnings("ignore:W_EMPTY")

SIZES = {"a": [9, 4, 7], "b": [12], "c": [3, 0, 3]}
BASE = 100_000
WEIGHTS = {"a": 0.5, "b": 0.3, "c": 0.2}


def mixed(folder: Path, sizes: dict[str, list[int]] = SIZES, *, stop: Stop = "longest", suffix: str = "tar", **options: Any) -> Pipeline:
    """Sources of shards of so many records; `cls` counts from 0 in the first, from 100,000 in the second."""
    for number, (source, shards) in enumerate(sizes.items()):
        numbers = itertools.count(BASE * number)
        for at, size in enumerate(shards):
            with tarfile.open(folder / f"{source}-{at}.{suffix}", "w:gz" if suffix.endswith("gz") else "w") as tar:
                for each in itertools.islice(numbers, size):
                    info = tarfile.TarInfo(f"r{each:06d}.cls")
                    info.size = len(data := b"%d" % each)
                    tar.addfile(info, io.BytesIO(data))
    weights = {folder / f"{source}-*.{suffix}": WEIGHTS[source] for source in sizes}
    return Pipeline(tarviz.mix(weights, stop=stop), "decode(cls)", select="cls", seed=3, **options)


def whole(sizes: dict[str, list[int]] = SIZES) -> list[int]:
    return [BASE * number + each for number, shards in enumerate(sizes.values()) for each in range(sum(shards))]


def read(pipeline: Pipeline, reader: ShareReader, epoch: int, **share: Any) -> list[int]:
    plan = ReaderPlan(pipeline, reader, **share)
    walk = Walk(pipeline, shuffle=plan.shuffle)
    return [int(value) for _, value in walk.values(plan, epoch, ReadReport(), Trail())]


class TestAPass:
    @pytest.mark.parametrize("stop", ["first", "longest"])
    def test_is_another_in_every_epoch_and_follows_from_its_number(self, tmp_path: Path, stop: Stop) -> None:
        run = mixed(tmp_path, stop=stop).eager()
        first, second = list(run), list(run)
        run.set_epoch(0)

        assert first == list(run)
        assert first != second

    @pytest.mark.matrix
    def test_has_shares_by_weight(self, tmp_path: Path) -> None:
        pipeline = mixed(tmp_path, {"a": [5500], "b": [3500], "c": [2500]}, stop="first")
        for shuffle in (0, 500):
            found = list(itertools.islice(pipeline.eager(shuffle=shuffle), 10_000))
            share = np.bincount(np.array(found) // BASE) / 10_000

            assert 10_000 == len(set(found))
            assert np.abs(share - list(WEIGHTS.values())).max() < 0.01

    @pytest.mark.parametrize("stop", ["first", "longest"])
    @pytest.mark.parametrize("options", [{}, {"shuffle": 8}, {"repeat": 3}, {"rank": 1, "world_size": 2}, {"batch": 4}], ids=str)
    def test_has_the_length_that_it_says(self, tmp_path: Path, stop: Stop, options: dict[str, Any]) -> None:
        run = mixed(tmp_path, stop=stop).eager(**options)
        for _ in range(3):
            assert len(run) == len(list(run))

    def test_is_of_no_known_length_where_shards_are_compressed(self, tmp_path: Path) -> None:
        pipeline = mixed(tmp_path, suffix="tar.gz")
        tarviz.index(pipeline.urls)

        with pytest.raises(TypeError, match="not known"):
            len(pipeline.eager())
        with pytest.raises(TypeError, match="not known"):
            len(pipeline)

    def test_takes_what_a_condition_chooses(self, tmp_path: Path) -> None:
        found = list(mixed(tmp_path, where="cls % 2 = 1").eager())

        assert {number for number in whole() if number % 2} == set(found)

    @pytest.mark.parametrize("runner", ["indexed", "ray_data", "engine", "convert"])
    def test_is_refused_where_nothing_is_drawn(self, tmp_path: Path, runner: str) -> None:
        pipeline = mixed(tmp_path)
        runs = {"engine": lambda: pipeline.tf(engine="tf-service"), "convert": lambda: pipeline.convert(tmp_path / "out.tfrecord")}

        with pytest.raises(UsageError, match="a mix of sources"):
            runs.get(runner, lambda: pipeline.run(runner))()


class TestReaders:
    @given(
        st.fixed_dictionaries({each: st.lists(st.integers(0, 9), min_size=1, max_size=4) for each in "abc"}),
        st.integers(1, 3),
        st.integers(1, 3),
        st.sampled_from([{}, {"shuffle": 5}, {"reshare": True}, {"reshare": True, "shuffle": 40}]),
        st.sampled_from(["first", "longest"]),
    )
    @pytest.mark.matrix
    def test_share_every_source(self, sizes: dict[str, list[int]], world: int, workers: int, share: dict[str, Any], stop: Stop) -> None:
        """None twice; with `longest` none lost, and none twice before all of the reader's share of the source have come."""
        sizes = {each: shards if sum(shards) >= 3 else [3] for each, shards in sizes.items()}  # one record a rank
        with tempfile.TemporaryDirectory() as folder:
            pipeline = mixed(Path(folder), sizes, stop=stop)
            for epoch in range(2):
                found: list[list[int]] = []
                for reader in (ShareReader(rank, world, worker, workers) for rank in range(world) for worker in range(workers)):
                    with suppress(UsageError):  # a rank whose shards are all empty
                        found.append(read(pipeline, reader, epoch, **share))
                distinct = sorted(itertools.chain.from_iterable(map(set, found)))

                assert len(distinct) == len(set(distinct))
                assert set(distinct) <= set(whole(sizes))
                if stop == "first":
                    assert len(distinct) == sum(map(len, found))
                else:
                    assert whole(sizes) == distinct
                    for numbers in found:
                        for source in range(3):
                            times = Counter(number for number in numbers if number // BASE == source).values()
                            assert max(times, default=0) - min(times, default=0) <= 1

    def test_of_even_ranks_have_as_many(self, tmp_path: Path) -> None:
        for stop in ("first", "longest"):
            pipeline = mixed(tmp_path, stop=stop)
            lengths = {len(read(pipeline, ShareReader(rank, 3, 0, 1), 1, even=True)) for rank in range(3)}

            assert 1 == len(lengths)


class TestResuming:
    @pytest.mark.parametrize(
        ("stop", "suffix", "options"),
        list(
            itertools.product(
                ["first", "longest"], ["tar", "tar.gz"], [{}, {"shuffle": 7}, {"shuffle": 90}, {"reshare": True, "repeat": 2}]
            )
        ),
        ids=str,
    )
    @pytest.mark.matrix
    def test_goes_on_behind_any_record(self, tmp_path: Path, stop: Stop, suffix: str, options: dict[str, Any]) -> None:
        pipeline = mixed(tmp_path, stop=stop, suffix=suffix)
        expected = list(pipeline.eager(**options))
        for cut in range(len(expected) + 1):
            run = pipeline.eager(**options)
            head = list(itertools.islice(run, cut))
            again = pipeline.eager(**options)
            again.load_state_dict(json.loads(json.dumps(run.state_dict())))

            assert expected == head + list(again), cut

    @pytest.mark.matrix
    def test_does_not_read_again_what_it_read(self, tmp_path: Path) -> None:
        pipeline = mixed(tmp_path, {"a": [2000], "b": [600, 700]}, stop="first")
        tarviz.index(pipeline.urls)
        for options in ({}, {"shuffle": 20}):
            length = len(pipeline.eager(**options))
            run = pipeline.eager(**options)
            list(itertools.islice(run, length - 50))
            again = pipeline.eager(**options)
            again.load_state_dict(run.state_dict())

            assert 50 == len(list(again))
            assert again.report.records < 50 + 40

    @pytest.mark.parametrize("stop", ["first", "longest"])
    @pytest.mark.parametrize("shuffle", [0, 6])
    @pytest.mark.parametrize(("before", "behind"), [(1, 2), (2, 1), (2, 3), (3, 2)])
    def test_other_readers_take_over_exactly_what_was_left(
        self, tmp_path: Path, stop: Stop, shuffle: int, before: int, behind: int
    ) -> None:
        pipeline = mixed(tmp_path, stop=stop)
        expected = [number for rank in range(before) for number in pipeline.eager(rank=rank, world_size=before, shuffle=shuffle)]
        states, found = [], []
        for rank in range(before):
            run = pipeline.eager(rank=rank, world_size=before, shuffle=shuffle)
            found += list(itertools.islice(run, 4 * rank))  # the first has not begun
            states.append(run.state_dict())
        if before == 1:
            found += list(itertools.islice(run := pipeline.eager(shuffle=shuffle), 9))
            states = [run.state_dict()]
        middle = []
        for rank in range(behind):
            run = pipeline.eager(rank=rank, world_size=behind, shuffle=shuffle)
            run.load_state_dict(states)
            found += list(itertools.islice(run, 3))
            middle.append(run.state_dict())
        for rank in range(4):  # and once more
            run = pipeline.eager(rank=rank, world_size=4, shuffle=shuffle)
            run.load_state_dict(middle)
            found += run

        assert sorted(map(int, expected)) == sorted(map(int, found))

    def test_with_other_weights_is_refused(self, tmp_path: Path) -> None:
        state = mixed(tmp_path).eager().state_dict()

        with pytest.raises(UsageError, match=r"a pipeline with mix=\[\[0.5, 0.3, 0.2\], 'longest'\]"):
            mixed(tmp_path, stop="first").eager().load_state_dict(state)


class TestTorch:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch", reason="torch: make test-torch")

    @pytest.mark.parametrize("options", [{}, {"shuffle": 7}, {"rank": 1, "world_size": 2, "reshare": True}], ids=str)
    def test_gives_what_eager_gives(self, tmp_path: Path, options: dict[str, Any]) -> None:
        pipeline = mixed(tmp_path)
        one, other = pipeline.eager(**options), pipeline.torch(**options)
        for _ in range(2):
            assert list(one) == list(other)
        with pytest.raises(TypeError, match="more records than another"):  # who counts once would cut the longer passes
            len(other)

    @pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.matrix
    def test_goes_on_behind_any_batch_of_a_loader(self, tmp_path: Path, workers: int) -> None:
        pipeline = mixed(tmp_path)
        loader = pipeline.torch(shuffle=5).loader(6, num_workers=workers)
        expected = [batch.tolist() for batch in loader]
        steps = len(expected)

        assert set(whole()) == set(itertools.chain.from_iterable(expected))
        for cut in (1, steps // 2, steps):
            loader = pipeline.torch(shuffle=5).loader(6, num_workers=workers)
            head = [batch.tolist() for batch in itertools.islice(loader, cut)]
            again = pipeline.torch(shuffle=5).loader(6, num_workers=workers)
            again.load_state_dict(json.loads(json.dumps(loader.state_dict())))
            assert expected == head + [batch.tolist() for batch in again]


class TestTf:
    @pytest.fixture(autouse=True)
    def _tf(self) -> None:
        pytest.importorskip("tensorflow", reason="TensorFlow: pip install 'tarviz[tensorflow-cpu]'")

    @pytest.mark.parametrize("route", [{"graph": True}, {"graph": False}], ids=str)
    @pytest.mark.parametrize("options", [{}, {"shuffle": 7}, {"rank": 1, "world_size": 2, "reshare": True}], ids=str)
    @pytest.mark.parametrize("suffix", ["tar", "tar.gz"])
    def test_gives_what_eager_gives(self, tmp_path: Path, route: dict[str, Any], options: dict[str, Any], suffix: str) -> None:
        if suffix == "tar.gz" and "rank" in options:
            options = {}
        pipeline = mixed(tmp_path, suffix=suffix)
        one, other = pipeline.eager(**options), pipeline.tf(**options, **route)
        for _ in range(2):
            assert [int(value) for value in one] == [int(value) for value in other]

    @pytest.mark.parametrize("shuffle", [0, 7])
    @pytest.mark.matrix
    def test_goes_on_where_eager_stood_and_the_other_way_round(self, tmp_path: Path, shuffle: int) -> None:
        pipeline = mixed(tmp_path)
        expected = [int(value) for value in pipeline.eager(shuffle=shuffle)]
        for cut in (1, 9, 20, len(expected)):
            eager, graph = pipeline.eager(shuffle=shuffle), pipeline.tf(shuffle=shuffle)
            list(itertools.islice(eager, cut))
            list(itertools.islice(graph, cut))
            later, again = pipeline.eager(shuffle=shuffle), pipeline.tf(shuffle=shuffle)
            later.load_state_dict(graph.state_dict())
            again.load_state_dict(eager.state_dict())

            assert expected[cut:] == [int(value) for value in later] == [int(value) for value in again]
