"""Where a process stands, and which pass this is: counted in all copies of a data set that share a table."""

from __future__ import annotations

import pickle

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
