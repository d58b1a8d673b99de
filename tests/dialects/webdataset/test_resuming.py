"""Who takes up what workers and ranks had left."""

from __future__ import annotations

from typing import Any

import pytest

from tarviz.dialects.webdataset.parts.places import WorkerPlace
from tarviz.dialects.webdataset.parts.resuming import take_up
from tarviz.model.errors import UsageError

COMMON = {"epoch": 2, "seed": "s", "node": 0, "nodes": 1}


def loader(workers: int, turn: int = 0, common: dict[str, Any] = COMMON) -> dict[str, Any]:
    """The state of a loader of which every other worker has delivered something."""
    states = {str(worker): alone(worker, workers) for worker in range(0, workers, 2)}
    return {"turn": turn, "workers": workers, "common": common, "states": states}


def alone(worker: int, workers: int) -> dict[str, Any]:
    return {**COMMON, "worker": worker, "workers": workers, "share": 1, "record": worker, "done": 0, "given": 5, "round": 1}


def whose(saved: dict[str, Any], worker: int, workers: int, node: int = 0, nodes: int = 1) -> list[tuple[int, int, int]]:
    """(node, worker, items given) of the states that a worker takes up."""
    return [(state["node"], state["worker"], state["given"]) for state in take_up(saved, WorkerPlace(worker, workers, node, nodes))]


def test_with_as_many_workers_the_one_whose_turn_it_is_comes_first() -> None:
    assert [[(0, 1, 0)], [(0, 2, 5)], [(0, 0, 5)]] == [whose(loader(3, turn=1), worker, 3) for worker in range(3)]


def test_with_fewer_each_takes_several_and_with_more_some_have_nothing() -> None:
    assert [[(0, 0, 5), (0, 2, 5)], [(0, 1, 0)]] == [whose(loader(3, turn=1), worker, 2) for worker in range(2)]
    assert [[(0, 0, 5)], [(0, 1, 0)], [], []] == [whose(loader(2), worker, 4) for worker in range(4)]


def test_one_that_had_given_nothing_begins_where_its_pass_does() -> None:
    (state,) = take_up(loader(2), WorkerPlace(1, 2))

    assert {**COMMON, "worker": 1, "workers": 2, "share": 0, "record": 0, "done": 0, "given": 0, "round": 0} == state


def test_the_state_of_a_process_without_workers_is_its_own() -> None:
    assert [alone(0, 1)] == take_up(alone(0, 1), WorkerPlace())
    assert [alone(1, 2)] == take_up(alone(1, 2), WorkerPlace(1, 2))
    with pytest.raises(UsageError, match="the state is that of worker 1 of 2 alone; this is worker 0 of 2"):
        take_up(alone(1, 2), WorkerPlace(0, 2))


def test_ranks_of_another_number_share_the_workers_of_all() -> None:
    common = {"epoch": 2, "seed": "s"}
    saved = {"common": common, "ranks": [loader(2, common={}), alone(0, 1) | {"node": 1}, loader(1, common=common)]}
    for state in saved["ranks"][0]["states"].values():  # type: ignore[index]
        state.pop("node")
    saved["ranks"][2]["states"]["0"].pop("node")  # type: ignore[index]

    found = [whose(saved, worker, 2, node, 2) for node in range(2) for worker in range(2)]

    assert [[(0, 0, 5)], [(0, 1, 0)], [(1, 0, 5)], [(2, 0, 5)]] == found
    assert 3 == take_up(saved, WorkerPlace(1, 2, 0, 2))[0]["nodes"]
    with pytest.raises(UsageError, match="a state is that of one of several workers"):
        take_up({"common": common, "ranks": [alone(0, 2)]}, WorkerPlace())
