"""`WebLoader`: batches from workers, and the exact rest after any step."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import tarviz.dialects.webdataset as wds
from tarviz.model.errors import UsageError
from tarviz.samples import write_shard

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:This DataLoader will create")]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("loader")
    for shard in range(3):
        write_shard(folder / f"s-{shard}.tar", ((f"k{n:05d}", {"cls": b"%d" % n}) for n in range(shard * 20, shard * 20 + 20)))
    return str(folder / "s-{0..2}.tar")


def plain(dataset: wds.WebDataset) -> wds.WebDataset:
    return dataset.map(number)


def shuffled(dataset: wds.WebDataset) -> wds.WebDataset:
    return dataset.shuffle(8).map(number)


def number(sample: dict[str, Any]) -> int:
    return int(sample["cls"])


def loader(url: str, chain: Any, workers: int, batch: int | None, **options: Any) -> wds.WebLoader:
    return wds.WebLoader(chain(wds.WebDataset(url, **options)), batch_size=batch, num_workers=workers)


def values(steps: Any) -> list[Any]:
    return [step.tolist() if hasattr(step, "tolist") else step for step in steps]


@pytest.mark.parametrize("workers", [0, 2])
def test_it_yields_every_record_once(url: str, workers: int) -> None:
    assert list(range(60)) == sorted(value for batch in values(loader(url, plain, workers, 7)) for value in batch)


@pytest.mark.parametrize(
    ("chain", "workers", "batch", "options"),
    [
        (plain, 0, None, {}),
        (plain, 1, 4, {}),
        (plain, 2, None, {}),
        (shuffled, 2, 5, {"shardshuffle": True, "seed": 3}),
        (plain, 4, 3, {"shardshuffle": True, "seed": 1}),
    ],
)
def test_the_rest_comes_after_any_step(url: str, chain: Any, workers: int, batch: int | None, options: dict[str, Any]) -> None:
    whole = values(loader(url, chain, workers, batch, **options))
    for stop in (0, 1, len(whole) // 2 + 1, len(whole) - 1):
        first, second = loader(url, chain, workers, batch, **options), loader(url, chain, workers, batch, **options)
        run = iter(first)
        for _ in range(stop):
            next(run)
        state = json.dumps(first.state_dict())
        second.load_state_dict(json.loads(state))

        assert len(state) < 4096
        assert whole[stop:] == values(second)


@pytest.mark.parametrize(("before", "behind", "chain"), [(2, 3, plain), (4, 1, shuffled), (0, 2, shuffled), (3, 0, plain)])
def test_the_rest_comes_on_another_number_of_workers(url: str, before: int, behind: int, chain: Any) -> None:
    options: dict[str, Any] = {"shardshuffle": True, "seed": 3} if chain is shuffled else {}
    first, second = loader(url, chain, before, 4, **options), loader(url, chain, behind, 4, **options)
    got = values(itertools.islice(first, 5))
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    got += values(itertools.islice(second, 4))
    again = json.loads(json.dumps(second.state_dict()))
    for workers in (before, 0):  # and once more, in the epoch that was taken over
        third = loader(url, chain, workers, 4, **options)
        third.load_state_dict(again)

        assert list(range(60)) == sorted(itertools.chain.from_iterable([*got, *values(third)]))
        assert list(range(60)) == sorted(itertools.chain.from_iterable(values(third)))  # the pass behind it is whole


@pytest.mark.parametrize(("change", "expected"), [(lambda data: data.repeat(2), 120), (lambda data: data.repeat().with_epoch(45), 90)])
def test_passes_that_repeat_go_on_with_fewer_workers(url: str, change: Any, expected: int) -> None:
    def made(workers: int) -> wds.WebLoader:
        return wds.WebLoader(change(plain(wds.WebDataset(url))), batch_size=None, num_workers=workers)

    first, second = made(2), made(0)
    got = values(itertools.islice(first, 70))
    second.load_state_dict(first.state_dict())
    got += values(second)

    assert expected == len(got)
    if expected == 120:
        assert sorted([*range(60)] * 2) == sorted(got)


class Ranks:
    """A run of several ranks, one after the other in this process; torch is seeded differently in each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, url: str, chain: Any, **options: Any) -> None:
        self.monkeypatch, self.url, self.chain = monkeypatch, url, chain
        self.options = {"nodesplitter": wds.split_by_node, "empty_check": False, **options}

    def run(self, world: int, workers: int | None, steps: int | None = None, states: Any = None) -> tuple[list[int], list[Any]]:
        """The items that all ranks get in so many steps, and their states then. `workers` None: without a loader."""
        import torch

        got: list[int] = []
        found = []
        for rank in range(world):
            self.monkeypatch.setenv("RANK", str(rank))
            self.monkeypatch.setenv("WORLD_SIZE", str(world))
            torch.manual_seed(rank)
            data = self.chain(wds.WebDataset(self.url, **self.options))
            one = data if workers is None else wds.WebLoader(data, batch_size=None, num_workers=workers)
            if states is not None:
                one.load_state_dict(states)
            got += itertools.islice(one, steps)
            found.append(json.loads(json.dumps(one.state_dict())) if steps is not None and states is None else None)
        return got, found


@pytest.mark.parametrize("chain", [plain, shuffled])
@pytest.mark.parametrize(
    ("before", "workers", "steps", "behind", "then"),
    [(2, None, 7, 1, None), (2, 0, 7, 3, 0), (3, 2, 5, 2, 2), (1, 2, 33, 2, 0), (2, 2, 0, 1, 3), (3, 2, 1, 4, 2)],
)
def test_the_rest_comes_on_another_number_of_ranks(
    monkeypatch: pytest.MonkeyPatch, url: str, chain: Any, before: int, workers: int | None, steps: int, behind: int, then: int | None
) -> None:
    ranks = Ranks(monkeypatch, url, chain, shardshuffle=True, seed=None if steps else 3)
    got, states = ranks.run(before, workers, steps)
    more, _ = ranks.run(behind, then, states=states)

    assert before * steps == len(got)
    assert list(range(60)) == sorted(got + more)


def test_states_of_other_ranks_are_refused_one_by_one(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    ranks = Ranks(monkeypatch, url, plain)
    _, states = ranks.run(2, 0, 5)
    with pytest.raises(UsageError, match=r"that of rank 1 of 2; this is rank 0 of 3.*as a list"):
        ranks.run(3, 0, states=states[1])
    with pytest.raises(UsageError, match=r"state 0 of 2 is that of rank 1 of 2"):
        ranks.run(1, 0, states=states[::-1])
    with pytest.raises(UsageError, match="only what split_by_node has split"):
        Ranks(monkeypatch, url, plain, nodesplitter=wds.single_node_only).run(1, 0, states=states)
    assert 60 == 10 + len(ranks.run(2, 0, states=states)[0])  # as many ranks as before: each takes its own


@pytest.mark.parametrize("workers", [None, 0])
def test_a_pass_of_other_ranks_cannot_be_saved_before_its_end(monkeypatch: pytest.MonkeyPatch, url: str, workers: int | None) -> None:
    _, states = Ranks(monkeypatch, url, plain).run(2, workers, 5)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    data = plain(wds.WebDataset(url, nodesplitter=wds.split_by_node))
    one: Any = data if workers is None else wds.WebLoader(data, batch_size=None, num_workers=workers)
    one.load_state_dict(states)
    rest = iter(one)
    next(rest)
    with pytest.raises(UsageError, match="this pass is what 2 ranks had left"):
        one.state_dict()

    assert 49 == len(list(rest))
    again: Any = plain(wds.WebDataset(url, nodesplitter=wds.split_by_node))
    if workers is None:
        again.load_state_dict(one.state_dict())
        assert 60 == len(list(again))
    assert 60 == len(list(one))


def test_workers_that_persist_are_told(url: str) -> None:
    one = wds.WebLoader(plain(wds.WebDataset(url)), batch_size=None, num_workers=2, persistent_workers=True)
    whole = values(one)
    values(itertools.islice(one, 20))
    one.load_state_dict(one.state_dict())

    assert whole[20:] == values(one)
    assert whole == values(one)


def test_the_pass_behind_a_resumed_one_is_whole(url: str) -> None:
    one = loader(url, plain, 2, None)
    run = iter(one)
    for _ in range(10):
        next(run)
    state = one.state_dict()
    one.load_state_dict(state)

    assert 50 == len(values(one))
    assert 60 == len(values(one))


def test_stages_follow_a_loader(url: str) -> None:
    assert [2] * 30 == [len(pair) for pair in loader(url, plain, 0, None).listed(2)]
    with pytest.raises(UsageError, match="holds items back"):
        loader(url, plain, 0, None).shuffle(5).state_dict()


def test_misuse_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="over a list has no state"):
        wds.WebLoader([1, 2]).state_dict()
    with pytest.raises(UsageError, match="cannot be shuffled"):
        wds.WebLoader(wds.WebDataset(url), shuffle=True)
    with pytest.raises(UsageError, match="not the state of a WebLoader"):
        loader(url, plain, 0, None).load_state_dict({})
    two = loader(url, plain, 2, None)
    next(iter(two))
    alone = wds.WebDataset(url)
    alone.load_state_dict(two.state_dict()["states"]["0"])
    with pytest.raises(UsageError, match="worker 0 of 2 alone"):
        list(alone)
