"""Results in the order of the tasks, whichever end first, whichever are lost; held against tasks done one after the other."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.engines import TaskEnd
from tarviz.engines.in_order import InOrder, TaskFile

LOST_WORKER = RuntimeError("the worker is gone")


class Hands(InOrder):
    """`count` tasks at a time, of which `choose` ends one; a task is lost as often as it says, and odd ones fail."""

    tries = 3

    def __init__(self, count: int, choose: Any, lost: list[int]) -> None:
        self._count, self._choose, self._left = count, choose, lost.copy()
        self.under_way: list[int] = []
        self.begun: list[int] = []
        self.waiting: list[int] = []
        self.told: list[TaskEnd] = []
        self.heard = self.told.append
        self.files: list[IO[bytes]] = []

    def _room(self, finished: int) -> bool:
        self.waiting.append(finished)
        return len(self.under_way) < self._count

    def _begin(self, number: int, task: Any) -> None:
        assert number == task
        self.under_way.append(number)
        self.begun.append(number)

    def _collect(self) -> Iterator[TaskFile]:
        number = self.under_way.pop(self._choose(len(self.under_way)))
        if self._left[number]:
            self._left[number] -= 1
            yield TaskFile(TaskEnd(number, "w", False, OSError(number), 0), lost=True)
        elif number % 5 == 4:
            yield TaskFile(TaskEnd(number, "w", False, ValueError(number), 0))
        else:
            yield TaskFile(TaskEnd(number, "w", True, -number, 0), self._file())

    @contextmanager
    def _file(self) -> Iterator[IO[bytes]]:
        with io.BytesIO() as file:
            self.files.append(file)
            yield file


def outcome(number: int, lost: int) -> Any:
    """What becomes of a task: its result, or the kind of its error."""
    return OSError if lost > 2 else ValueError if number % 5 == 4 else -number


LOST = st.lists(st.sampled_from([0, 0, 0, 1, 2, 3]), max_size=12)


@given(LOST, st.integers(1, 4), st.randoms(use_true_random=False))
def test_each_task_is_answered_in_its_turn(lost: list[int], count: int, random: Any) -> None:
    hands = Hands(count, random.randrange, lost)
    found = []
    for value, file in hands.run(range(len(lost)), lambda number, error: (number, type(error))):
        found.append(value[1] if isinstance(value, tuple) else value)
        assert (file is None) == isinstance(value, tuple)
        assert file is None or not file.closed

    assert [outcome(number, each) for number, each in enumerate(lost)] == found
    assert [1 + min(each, 2) for each in lost] == [hands.begun.count(number) for number in range(len(lost))]
    assert sum(min(each, 2) for each in lost) == hands.lost
    assert sorted(done.number for done in hands.told) == list(range(len(lost)))
    assert all(file.closed for file in hands.files)


@given(LOST, st.integers(1, 4), st.randoms(use_true_random=False))
def test_without_an_answer_the_first_error_is_raised_after_all_before_it(lost: list[int], count: int, random: Any) -> None:
    hands = Hands(count, random.randrange, lost)
    outcomes = [outcome(number, each) for number, each in enumerate(lost)]
    good = next((at for at, each in enumerate(outcomes) if isinstance(each, type)), len(lost))
    found: list[Any] = []
    if good == len(lost):
        found += (value for value, _ in hands.run(range(len(lost))))
    else:
        with pytest.raises(outcomes[good]):
            found.extend(value for value, _ in hands.run(range(len(lost))))

    assert outcomes[:good] == found


def test_what_is_behind_an_error_is_not_begun() -> None:
    hands = Hands(2, lambda count: count - 1, [0] * 9)
    found = hands.run(range(9))

    assert [0, -1, -2, -3] == [next(found)[0] for _ in range(4)]
    with pytest.raises(ValueError, match="4"):
        next(found)
    assert max(hands.begun) <= 5


def test_results_that_wait_are_counted() -> None:
    hands = Hands(2, lambda count: count - 1, [0] * 4)  # the later one ends first
    list(hands.run(range(4)))

    assert [0, 0, 0, 1, 1, 2] == hands.waiting[:6]


class Scripted(InOrder):
    """Each of `rounds` is what is heard at once: numbers of tasks, a negative one (-1 - number) of a task whose worker is lost."""

    def __init__(self, room: int, *rounds: tuple[int, ...], bad: tuple[int, ...] = (), tries: int = 3) -> None:
        self.most, self.rounds, self.bad, self.tries = room, iter(rounds), bad, tries
        self.begun: list[Any] = []
        self.under_way = 0
        self.told: list[TaskEnd] = []
        self.heard = self.told.append

    def _room(self, finished: int) -> bool:
        return self.under_way + finished < self.most

    def _begin(self, number: int, task: Any) -> None:
        self.begun.append(task)
        self.under_way += 1

    def _collect(self) -> Iterator[TaskFile]:
        for heard in next(self.rounds):
            self.under_way -= 1
            number = heard if heard >= 0 else -1 - heard
            good = heard >= 0 and number not in self.bad
            yield TaskFile(
                TaskEnd(number, "w", good, number * 10 if good else ValueError(number) if heard >= 0 else LOST_WORKER, 0), lost=heard < 0
            )


def test_nothing_behind_the_first_that_failed_is_begun_again() -> None:
    engine = Scripted(6, (2, 5, -5), (0, 1), bad=(2, 5))
    with pytest.raises(ValueError, match="2"):
        list(engine.run("abcdef"))

    assert list("abcdef") == engine.begun
