from __future__ import annotations

import threading

import pytest

from tarviz.outputs.behind import AHEAD, Behind


class Gate:
    """Work that waits at a gate, and notes what passed it."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.begun = threading.Event()
        self.done: list[int] = []

    def work(self, job: int) -> None:
        self.begun.set()
        assert self.open.wait(60)
        if job < 0:
            raise ValueError(job)
        self.done.append(job)


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open.set()


def test_jobs_are_done_in_order(gate):
    behind = Behind(gate.work, name="test")
    gate.open.set()
    for job in range(50):
        behind.put(job)
    behind.finish()

    assert list(range(50)) == gate.done


def test_a_job_is_not_done_when_it_is_given_but_when_settled(gate):
    behind = Behind(gate.work, name="test")
    behind.put(1)
    assert gate.begun.wait(60)

    assert [] == gate.done
    gate.open.set()
    behind.settle()
    assert [1] == gate.done
    behind.finish()


def test_few_jobs_wait_and_then_the_giver_does(gate):
    behind = Behind(gate.work, name="test")
    given: list[int] = []

    def give() -> None:
        for job in range(AHEAD + 10):
            behind.put(job)
            given.append(job)

    giver = threading.Thread(target=give)
    giver.start()
    assert gate.begun.wait(60)
    giver.join(0.05)

    assert len(given) <= AHEAD + 1
    gate.open.set()
    giver.join()
    behind.finish()
    assert list(range(AHEAD + 10)) == gate.done


@pytest.mark.parametrize("call", ["put", "settle", "finish"])
def test_the_error_of_a_job_is_raised_by_the_next_call_and_no_job_after_it_is_done(gate, call):
    behind = Behind(gate.work, name="test")
    behind.put(-7)
    behind.put(8)
    gate.open.set()

    def again() -> None:
        for _ in range(AHEAD + 2):  # a put may come before the job has failed
            getattr(behind, call)(*[9] * (call == "put"))

    with pytest.raises(ValueError, match="-7"):
        again()
    assert [] == gate.done
    last: list[str] = []
    behind.stop(lambda: last.append("closed"))
    assert ["closed"] == last


def test_stop_drops_what_waits_and_closes_once(gate, monkeypatch):
    monkeypatch.setattr("tarviz.outputs.behind._PATIENCE", 60)
    behind = Behind(gate.work, name="test")
    last: list[str] = []
    for job in range(AHEAD + 1):
        behind.put(job)
    assert gate.begun.wait(60)
    threading.Timer(0.05, gate.open.set).start()
    behind.stop(lambda: last.append("closed"))
    behind.stop(lambda: last.append("twice"))

    assert ([0], ["closed"], True) == (gate.done, last, behind.stopping)


def test_a_job_that_hangs_keeps_its_file_until_it_ends(gate, monkeypatch):
    monkeypatch.setattr("tarviz.outputs.behind._PATIENCE", 0.01)
    behind = Behind(gate.work, name="test")
    closed = threading.Event()
    behind.put(1)
    assert gate.begun.wait(60)
    behind.stop(closed.set)

    assert not closed.is_set()
    gate.open.set()
    assert closed.wait(60)
    assert [1] == gate.done


def test_the_end_after_the_end_closes_at_once(gate):
    behind = Behind(gate.work, name="test")
    gate.open.set()
    behind.finish()
    behind.settle()
    last: list[str] = []
    behind.stop(lambda: last.append("closed"))

    assert ["closed"] == last
