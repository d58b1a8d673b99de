"""Where a process stands, and which pass this is: counted in all copies of a data set that share a table."""

from __future__ import annotations

import io
import os
import pickle
import sys
from multiprocessing import context, popen_spawn_posix
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace
from typing import Any

import pytest

from tarviz.dialects.webdataset.parts.places import Passes, WorkerPlace, place


def forked(passes: Passes) -> Passes:
    """What a worker of a DataLoader has: a copy that shares the table."""
    worker = Passes.__new__(Passes)
    worker.__dict__.update(passes.__dict__)
    return worker


def begun(passes: Passes, seed: int) -> int:
    """The number of a pass that begins in a fresh worker."""
    return forked(passes).begin(WorkerPlace(seed=seed))


class TestPasses:
    def test_alone_they_are_counted(self) -> None:
        passes = Passes(3)

        assert [3, 4, 5] == [passes.begin(WorkerPlace()) for _ in range(3)]
        assert 6 == passes.next

    def test_the_seed_of_a_loader_tells_one_from_another_in_all_its_workers(self) -> None:
        passes = Passes()

        assert [0, 0, 0, 1, 1, 2] == [begun(passes, seed) for seed in (50, 50, 50, 7, 7, 9)]
        assert 3 == passes.next
        assert [3, 4] == [passes.begin(WorkerPlace()) for _ in range(2)]

    def test_a_worker_that_persists_counts_by_itself(self) -> None:
        worker = forked(Passes())

        assert [0, 1, 2] == [worker.begin(WorkerPlace(seed=50)) for _ in range(3)]

    def test_a_late_worker_finds_its_pass_among_the_last_64(self) -> None:
        passes = Passes()

        assert [*range(100)] == [begun(passes, 1000 + number) for number in range(100)]
        assert [36, 99, 64] == [begun(passes, 1000 + number) for number in (36, 99, 64)]
        assert 100 == begun(passes, 1035)  # forgotten: it counts as a new one

    def test_a_number_may_be_pinned(self) -> None:
        passes = Passes()
        begun(passes, 50)
        passes.pin(7)

        assert 7 == passes.next
        assert [7, 7, 8] == [begun(passes, seed) for seed in (60, 60, 61)]

    def test_a_copy_that_is_sent_goes_on_counting_alone(self) -> None:
        passes = Passes(2)
        begun(passes, 50)
        sent = pickle.loads(pickle.dumps(passes))

        assert 3 == sent.next == passes.next
        begun(sent, 60)
        assert (4, 3) == (sent.next, passes.next)


class TestPlace:
    def test_the_environment_says_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("RANK", "WORLD_SIZE", "WORKER", "NUM_WORKERS"):
            monkeypatch.delenv(name, raising=False)
        assert WorkerPlace(0, 1, 0, 1) == place() == Passes().here()
        for name, value in {"RANK": "1", "WORLD_SIZE": "3", "WORKER": "2", "NUM_WORKERS": "4"}.items():
            monkeypatch.setenv(name, value)

        assert WorkerPlace(2, 4, 1, 3) == place()

    def test_an_order_does_not_hang_on_the_loader_where_all_ranks_read_the_same(self) -> None:
        assert [5, None, None] == [
            WorkerPlace(seed=5).chance,
            WorkerPlace(seed=5, shared=True).chance,
            WorkerPlace().chance,
        ]

    def test_a_worker_of_a_loader_has_its_number_and_the_seed_of_its_pass(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "torch.utils.data", loader(id=3, num_workers=5, seed=53))

        assert WorkerPlace(3, 5, 0, 1, 50) == place() == Passes().here()

    def test_a_spawned_worker_has_the_rank_of_who_made_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RANK", "1")
        monkeypatch.setenv("WORLD_SIZE", "3")
        made = Passes()
        worker = spawned(made)
        for name in ("RANK", "WORLD_SIZE"):
            monkeypatch.delenv(name)
        assert WorkerPlace() == worker.here()  # no worker of a loader: a process of its own
        monkeypatch.setitem(sys.modules, "torch.utils.data", loader(id=3, num_workers=5, seed=53))

        assert WorkerPlace(3, 5, 1, 3, 50) == worker.here()
        assert WorkerPlace(3, 5, 0, 1, 50) == made.here()
        assert [0, 1] == [worker.begin(WorkerPlace(seed=50)), made.next]


def loader(**info: int) -> Any:
    """What a worker of a DataLoader finds of PyTorch."""
    return SimpleNamespace(get_worker_info=lambda: SimpleNamespace(**info))


def spawned(passes: Passes) -> Passes:
    """What a process gets that is spawned: a copy that shares the table."""
    sent = io.BytesIO()
    context.set_spawning_popen(SimpleNamespace(DupFd=popen_spawn_posix._DupFd, duplicate_for_child=os.dup))
    try:
        ForkingPickler(sent).dump(passes)
    finally:
        context.set_spawning_popen(None)
    return pickle.loads(sent.getvalue())
