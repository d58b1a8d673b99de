"""Tasks in order, held against an engine that a test scripts: who ends when, and whose worker is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tarviz.engines import Done
from tarviz.engines.in_order import Ended, InOrder

LOST = RuntimeError("the worker is gone")


class Scripted(InOrder):
    """Each of `rounds` is what is heard at once: numbers of tasks, a negative one (-1 - number) of a task whose worker is lost."""

    def __init__(self, room: int, *rounds: tuple[int, ...], bad: tuple[int, ...] = (), tries: int = 3) -> None:
        self.most, self.rounds, self.bad, self.tries = room, iter(rounds), bad, tries
        self.begun: list[Any] = []
        self.under_way = 0
        self.told: list[Done] = []
        self.heard = self.told.append

    def _room(self, finished: int) -> bool:
        return self.under_way + finished < self.most

    def _begin(self, number: int, task: Any) -> None:
        self.begun.append(task)
        self.under_way += 1

    def _ended(self) -> Iterator[Ended]:
        for heard in next(self.rounds):
            self.under_way -= 1
            number = heard if heard >= 0 else -1 - heard
            good = heard >= 0 and number not in self.bad
            yield Ended(Done(number, "w", good, number * 10 if good else ValueError(number) if heard >= 0 else LOST, 0), lost=heard < 0)


def test_results_come_in_order_and_no_more_are_begun_than_there_is_room_for() -> None:
    engine = Scripted(2, (1,), (0,), (3, 2))
    run = engine.run("abcd")

    assert ((0, None), ["a", "b"]) == (next(run), engine.begun)
    assert [(10, None), (20, None), (30, None)] == list(run)
    assert [1, 0, 3, 2] == [done.number for done in engine.told]
    assert 0 == engine.lost


def test_a_lost_task_is_begun_again_before_others_until_it_was_tried_often_enough() -> None:
    engine = Scripted(1, (-1,), (-1,), (0,), (1,))

    assert [(0, None), (10, None)] == list(engine.run("ab"))
    assert (["a", "a", "a", "b"], 2) == (engine.begun, engine.lost)
    with pytest.raises(RuntimeError, match="the worker is gone"):
        list(Scripted(1, (-1,), (-1,), tries=2).run("ab"))


def test_nothing_behind_the_first_that_failed_is_begun_again() -> None:
    engine = Scripted(6, (2, 5, -5), (0, 1), bad=(2, 5))
    with pytest.raises(ValueError, match="2"):
        list(engine.run("abcdef"))

    assert list("abcdef") == engine.begun


def test_what_failed_is_what_the_caller_makes_of_it_and_the_rest_goes_on() -> None:
    engine = Scripted(1, (0,), (1,), (2,), bad=(1,))
    found = list(engine.run("abc", lambda number, error: f"{number}: {error!r}"))

    assert [(0, None), ("1: ValueError(1)", None), (20, None)] == found
