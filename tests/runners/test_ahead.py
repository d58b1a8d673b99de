"""Sources read by threads of their own: their parts in order or as they are there, their errors in their turn, and threads that end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.read.report import ReadReport
from tarviz.runners.ahead import ReadingThread, ahead
from tests.conftest import wait_until


def counted(source: tuple[str, int], report: ReadReport) -> Generator[str, None, None]:
    """So many parts of a source; a negative number is an error after as many."""
    name, count = source
    for at in range(abs(count)):
        report.records += 1
        yield f"{name}{at}"
    if count < 0:
        raise ValueError(name)


SOURCES = st.lists(st.integers(0, 9), max_size=7).map(lambda counts: [(chr(97 + at), count) for at, count in enumerate(counts)])


@given(SOURCES, st.integers(1, 4), st.integers(1, 3))
def test_in_order_each_comes_after_the_one_before(sources: list[tuple[str, int]], width: int, depth: int) -> None:
    report = ReadReport()

    assert [f"{name}{at}" for name, count in sources for at in range(count)] == list(ahead(sources, counted, report, width, True, depth))
    assert sum(count for _, count in sources) == report.records


@given(SOURCES, st.integers(1, 4))
def test_as_they_come_each_keeps_its_own_order(sources: list[tuple[str, int]], width: int) -> None:
    report = ReadReport()
    found = list(ahead(sources, counted, report, width, False))

    for name, count in sources:
        assert [f"{name}{at}" for at in range(count)] == [part for part in found if part[0] == name]
    assert len(found) == report.records == sum(count for _, count in sources)


def test_as_they_come_none_waits_for_another() -> None:
    held = {"a": threading.Event(), "b": threading.Event()}

    def opened(name: str, report: ReadReport) -> Generator[str, None, None]:
        held[name].wait(30)
        yield name
        yield f"{name}{name}"

    with closing(ahead(["a", "b"], opened, ReadReport(), 2, False)) as parts:
        held["b"].set()
        first = [next(parts), next(parts)]
        held["a"].set()

        assert ["b", "bb"] == first
        assert ["a", "aa"] == list(parts)


def test_as_they_come_they_take_turns() -> None:
    full = threading.Barrier(3)

    def opened(name: str, report: ReadReport) -> Generator[str, None, None]:
        yield f"{name}0"
        yield f"{name}1"
        full.wait(30)  # two parts of each wait to be taken

    with closing(ahead(["a", "b"], opened, ReadReport(), 2, False)) as parts:
        found = [next(parts)]
        full.wait(30)
        found += [next(parts) for _ in range(3)]

    assert [found[0], found[2]] == sorted([found[0], found[2]])
    assert found[0][0] != found[1][0] != found[2][0] != found[3][0]


@pytest.mark.parametrize("ordered", [True, False])
def test_an_error_comes_in_its_turn_and_ends_the_others(ordered: bool, threads_end: Callable[[], None]) -> None:
    found: list[str] = []
    report = ReadReport()
    with pytest.raises(ValueError, match="b"):
        found.extend(ahead([("a", 3), ("b", -2), ("c", 10**9)], counted, report, 3 if ordered else 1, ordered))

    assert ["a0", "a1", "a2", "b0", "b1"] == found
    assert 5 == report.records
    threads_end()


def test_so_many_are_read_at_a_time_and_stay_so_far_ahead(threads_end: Callable[[], None]) -> None:
    at_work: dict[str, int] = {}

    def opened(name: str, report: ReadReport) -> Generator[int, None, None]:
        for at in range(100):
            at_work[name] = at + 1
            yield at

    with closing(ahead(["a", "b", "c"], opened, ReadReport(), 2, True, 5)) as parts:
        assert 0 == next(parts)
        wait_until(lambda: [7, 6] == [at_work[name] for name in "ab"])  # one was taken; one is in the hand of each thread

        assert {"a", "b"} == at_work.keys()
    threads_end()


def test_who_stops_lets_go_of_what_was_read_and_the_source_is_closed(threads_end: Callable[[], None]) -> None:
    closed = threading.Event()

    def opened(count: int, report: ReadReport) -> Generator[int, None, None]:
        try:
            yield from range(count)
        finally:
            closed.set()

    reader: ReadingThread[int] = ReadingThread(9, opened, threading.Event(), 2)
    wait_until(reader.queue.full)
    reader.stop()

    assert closed.wait(30)
    threads_end()
    assert reader.queue.qsize() <= 1  # what was in its hand


def test_the_last_that_comes_is_none_or_what_was_raised() -> None:
    ends: list[Callable[[], object]] = []
    for source in (("a", 1), ("b", -1)):
        found = threading.Event()
        reader: ReadingThread[str] = ReadingThread(source, counted, found, 2)
        assert f"{source[0]}0" == reader.queue.get(timeout=30)
        end = reader.queue.get(timeout=30)
        ends.append(lambda end=end: end)
        assert found.is_set()

    assert ends[0]() is None
    assert isinstance(ends[1](), ValueError)
