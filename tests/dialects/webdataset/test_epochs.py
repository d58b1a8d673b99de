"""Every record once an epoch, in a new order each epoch: over ranks, workers, and more and fewer shards than these."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils.data import DataLoader  # noqa: E402

import tarviz.dialects.webdataset as wds  # noqa: E402
from tarviz.model.errors import UsageError  # noqa: E402
from tarviz.samples import write_shard  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
COUNT = 48


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Number of shards → their template; always the same 48 records."""
    folder: Path = tmp_path_factory.mktemp("epochs")
    made = {}
    for number in (1, 2, 4, 5, 12):
        bounds = [COUNT * at // number for at in range(number + 1)]
        for shard, (first, last) in enumerate(itertools.pairwise(bounds)):
            write_shard(folder / f"n{number}-{shard:02d}.tar", ((f"k{n:03d}", {"cls": b"%d" % n}) for n in range(first, last)))
        made[number] = str(folder / f"n{number}-{{00..{number - 1:02d}}}.tar")
    return made


def number(sample: Any) -> int:
    return int(sample["cls"])


def epochs(loader: Any, count: int = 3) -> list[list[int]]:
    return [[int(value) for value in loader] for _ in range(count)]


def ranks(monkeypatch: pytest.MonkeyPatch, world: int, make: Any) -> list[list[list[int]]]:
    """Rank → epoch → numbers. Torch is seeded differently in each rank, as nobody seeds them alike."""
    found = []
    for rank in range(world):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(world))
        torch.manual_seed(1000 + rank)
        found.append(epochs(make()))
    return found


def check(found: list[list[list[int]]], *, new: bool = True) -> None:
    for epoch in range(3):
        assert list(range(COUNT)) == sorted(itertools.chain(*(rank[epoch] for rank in found)))
    if new:
        for rank in found:
            assert len({tuple(epoch) for epoch in rank}) == 3


GRID = [*itertools.product([(1, 1), (1, 5), (2, 2), (2, 5), (2, 12), (4, 4), (4, 5), (4, 12)], [0, 1, 2, 5], [None, 7])]
QUICK = {((1, 1), 2, 7), ((2, 5), 2, None), ((2, 5), 2, 7), ((4, 5), 0, None), ((4, 4), 0, 7)}


@pytest.mark.parametrize(
    ("world", "shards", "workers", "seed"),
    [
        pytest.param(*place, workers, seed, marks=() if (place, workers, seed) in QUICK else pytest.mark.slow)
        for place, workers, seed in GRID
    ],
)
def test_every_record_comes_once_an_epoch(
    monkeypatch: pytest.MonkeyPatch, urls: dict[int, str], world: int, shards: int, workers: int, seed: int | None
) -> None:
    def loader() -> Any:
        dataset = wds.WebDataset(urls[shards], nodesplitter=wds.split_by_node, shardshuffle=100, seed=seed).shuffle(8).map(number)
        return DataLoader(dataset, batch_size=None, num_workers=workers)

    check(ranks(monkeypatch, world, loader))


@pytest.mark.parametrize(("world", "shards", "workers"), [(2, 12, 0), (2, 12, 2), (4, 12, 2), (2, 4, 2)])
def test_so_it_does_in_a_pipeline(monkeypatch: pytest.MonkeyPatch, urls: dict[int, str], world: int, shards: int, workers: int) -> None:
    """Shards are shuffled before they are split, as the documents of webdataset have it."""

    def loader() -> Any:
        stages = [wds.shuffle(100), wds.split_by_node, wds.split_by_worker, wds.tarfile_to_samples(), wds.shuffle(8), wds.map(number)]
        return wds.WebLoader(wds.DataPipeline(wds.SimpleShardList(urls[shards]), *stages), batch_size=None, num_workers=workers)

    check(ranks(monkeypatch, world, loader))


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_seed_gives_the_same_orders_in_every_run(urls: dict[int, str], workers: int, persistent: bool, wrapped: bool) -> None:
    def run(torch_seed: int) -> list[list[int]]:
        torch.manual_seed(torch_seed)
        dataset = wds.WebDataset(urls[5], shardshuffle=100, seed=7).shuffle(8).map(number)
        make = wds.WebLoader if wrapped else DataLoader
        return epochs(make(dataset, batch_size=None, num_workers=workers, persistent_workers=persistent))

    first = run(1)

    assert first == run(2)
    assert len({tuple(epoch) for epoch in first}) == 3


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_started_processes_count_too(urls: dict[int, str], method: str) -> None:
    dataset = wds.WebDataset(urls[5], shardshuffle=100, seed=7).shuffle(8).map(number)

    found = epochs(DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=method), 2)

    assert found[0] != found[1]
    assert list(range(COUNT)) == sorted(found[0]) == sorted(found[1])


def test_set_epoch_pins_an_order(urls: dict[int, str]) -> None:
    dataset = wds.WebDataset(urls[5], shardshuffle=100, seed=7).map(number)
    loader = DataLoader(dataset, batch_size=None, num_workers=2)
    first, second = epochs(loader, 2)
    dataset.set_epoch(0)

    assert first != second
    assert [first, second] == epochs(loader, 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_rank_without_a_shard_is_an_error(monkeypatch: pytest.MonkeyPatch, urls: dict[int, str], workers: int) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = DataLoader(wds.WebDataset(urls[1], nodesplitter=wds.split_by_node), batch_size=None, num_workers=workers)

    with pytest.raises(Exception, match="rank 1 of 2 has no shard: there are 1 of them"):
        list(loader)


def test_several_ranks_without_a_splitter_are_refused(monkeypatch: pytest.MonkeyPatch, urls: dict[int, str]) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")

    with pytest.raises(UsageError, match="nodesplitter=split_by_node"):
        list(wds.WebDataset(urls[5]))


def test_resampled_draws_anew_in_every_epoch(urls: dict[int, str]) -> None:
    dataset = wds.WebDataset(urls[12], resampled=True, seed=3).map(number).with_epoch(40)
    found = epochs(DataLoader(dataset, batch_size=None, num_workers=2), 2)

    assert [len(epoch) for epoch in found] == [80, 80]
    assert found[0] != found[1]


class TestLoader:
    def test_the_idiom_of_the_documents(self, urls: dict[int, str]) -> None:
        dataset = wds.WebDataset(urls[5], shardshuffle=100).map(lambda s: (number(s), s["__key__"])).batched(4)
        loader = wds.WebLoader(dataset, batch_size=None, num_workers=2).unbatched().shuffle(100).batched(8).with_epoch(10)

        steps = list(loader)

        assert len(steps) == 10
        assert [len(numbers) for numbers, _ in steps[:6]] == [8] * 6
        assert len(list(loader)) == 10

    def test_length_and_repeat(self, urls: dict[int, str]) -> None:
        loader = wds.WebLoader(wds.WebDataset(urls[5]).map(number), batch_size=None, num_workers=2)

        assert len(loader.with_length(17, silent=True)) == 17
        assert len(list(loader.repeat(nepochs=2))) == 2 * COUNT

    @pytest.mark.parametrize("source", ["pipeline", "mix", "list"])
    def test_anything_can_be_loaded(self, urls: dict[int, str], source: str) -> None:
        pipeline = wds.DataPipeline(wds.SimpleShardList(urls[5]), wds.split_by_worker, wds.tarfile_to_samples(), wds.map(number))
        dataset = {"pipeline": pipeline, "mix": wds.RandomMix([pipeline, pipeline], longest=True), "list": list(range(COUNT))}[source]

        found = [int(value) for value in wds.WebLoader(dataset, batch_size=None, num_workers=2)]

        assert sorted(list(range(COUNT)) * (2 if source == "mix" else 1)) == sorted(found)

    def test_one_over_something_else_has_no_state(self) -> None:
        with pytest.raises(UsageError, match="over a list has no state"):
            wds.WebLoader([1, 2]).state_dict()
