"""Tasks that yield, on a Ray in this process; that a real one does the same is in `test_ray_streams.py` and `test_ray_client.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tarviz.engines import EnginePlan
from tarviz.engines.ray.streams import ASKED, ClientStreams, RayStreams
from tarviz.model.errors import DataError, TarvizError
from tests.engines.ray.here import RayError, RayHere, RayTaskError, TaskCancelledError

KINDS = pytest.mark.parametrize("kind", [RayStreams, ClientStreams])


def parts(task: tuple[str, int]) -> Iterator[Any]:
    """So many texts of a task; a negative number is an error after as many."""
    name, count = task
    for at in range(abs(count)):
        yield f"{name}{at}"
    if count < 0:
        raise DataError(f"{name} is broken")


def texts(*tasks: tuple[str, int]) -> list[str]:
    return [f"{name}{at}" for name, count in tasks for at in range(abs(count))]


TASKS = [("a", 3), ("b", 1), ("c", 0), ("d", 2)]


class TestOrder:
    @KINDS
    @pytest.mark.parametrize("count", [None, 1, 3])
    def test_parts_come_task_after_task(self, ray: RayHere, kind: type[RayStreams], count: int | None) -> None:
        tasks = iter(TASKS)
        with kind(parts, EnginePlan(count)) as streams:
            run = streams.run(tasks)
            first = next(run)
            assert (count or ray.processors) == len(ray.begun)  # the others are not taken yet
            taken = [first, *run]

        assert texts(*TASKS) == taken
        assert [(0, 1)] * 4 == ray.begun

    def test_as_they_come_those_that_are_ready_go_first(self, ray: RayHere) -> None:
        ray.busy = {2}
        with RayStreams(parts, EnginePlan(3)) as streams:
            found = list(streams.run([("a", 2), ("b", 2), ("c", 2)], ordered=False))

        assert ["b0", "b1", "a0", "a1", "c0", "c1"] == found

    def test_as_they_come_at_actors_too(self, ray: RayHere) -> None:
        with ClientStreams(parts, EnginePlan(2)) as streams:
            found = list(streams.run(TASKS, ordered=False))

        assert sorted(texts(*TASKS)) == sorted(found)

    @KINDS
    def test_an_error_is_raised_after_what_came_before_it_and_ends_the_others(self, ray: RayHere, kind: type[RayStreams]) -> None:
        found: list[str] = []
        with kind(parts, EnginePlan(2)) as streams, pytest.raises(DataError, match="b is broken"):
            found += streams.run([("a", 1), ("b", -2), ("c", 1), ("d", 1)])

        assert texts(("a", 1), ("b", 2)) == found
        assert 3 == len(ray.begun)
        assert {1, 2} == {each if isinstance(each, int) else each[0] for each in ray.ended} - {0}

    @KINDS
    def test_leaving_early_ends_what_runs(self, ray: RayHere, kind: type[RayStreams]) -> None:
        with kind(parts, EnginePlan(2)) as streams:
            found = streams.run(TASKS)
            next(found)
            found.close()

        assert ([(0, True), (1, True)] if kind is RayStreams else [0, 1]) == ray.ended

    @KINDS
    def test_large_arrays_come_as_they_are(self, ray: RayHere, kind: type[RayStreams]) -> None:
        array = np.arange(90_000, dtype=np.int32).reshape(300, 300)
        with kind(iter, EnginePlan()) as streams:
            (found,) = streams.run([[{"x": array}]])

        np.testing.assert_array_equal(array, found["x"])


class TestProcessors:
    @KINDS
    def test_a_task_that_waits_in_vain_is_begun_without_one(self, ray: RayHere, kind: type[RayStreams]) -> None:
        ray.busy = {0}
        with kind(parts, EnginePlan(1)) as streams:
            assert texts(("a", 2), ("b", 1)) == list(streams.run([("a", 2), ("b", 1)]))
            assert 0 == streams.lost

        assert [(0, 1), (0, 0), (0, 1 if kind is RayStreams else 0)] == ray.begun  # an actor is what it was begun as
        assert ((0, True) if kind is RayStreams else 0) == ray.ended[0]

    def test_one_that_has_begun_is_waited_for(self, ray: RayHere) -> None:
        with RayStreams(parts, EnginePlan(1)) as streams:
            found = streams.run([("a", 2)])
            assert "a0" == next(found)
            ray.busy = {0}

            assert ["a1"] == list(found)
        assert [] == ray.ended

    @KINDS
    def test_beside_a_loop_that_was_left_none_is_asked_for(self, ray: RayHere, kind: type[RayStreams]) -> None:
        with kind(parts, EnginePlan(2)) as outer, kind(parts, EnginePlan(2)) as inner:
            first = outer.run([("a", 2), ("b", 2)])
            assert "a0" == next(first)
            assert texts(("x", 1), ("y", 1)) == list(inner.run([("x", 1), ("y", 1)]))
            assert ["a1", "b0", "b1"] == list(first)

        assert [(0, 1), (0, 1), (0, 0), (0, 0)] == ray.begun

    @KINDS
    def test_runs_of_one_engine_share_its_room(self, ray: RayHere, kind: type[RayStreams]) -> None:
        with kind(parts, EnginePlan(2)) as streams:
            first, second = streams.run([("a", 1), ("b", 1), ("c", 1)]), streams.run([("x", 1), ("y", 1)])
            assert ("a0", "x0") == (next(first), next(second))
            begun = len(ray.begun)
            assert ["y0", "b0", "c0"] == [*second, *first]

        assert 3 == begun


class TestLost:
    @pytest.mark.parametrize("error", [RayError, StopIteration])
    def test_what_was_given_does_not_come_again(self, ray: RayHere, error: type[Exception]) -> None:
        ray.wrong = {0: {2: error}, 1: {0: error}, 2: {2: error}, 3: {0: error}}
        with RayStreams(parts, EnginePlan(1)) as streams:
            assert texts(("a", 4)) == list(streams.run([("a", 4)]))
            assert 4 == streams.lost

        assert [(0, 1), (1, 0), (1, 0), (2, 0), (2, 0)] == ray.begun

    def test_an_actor_s_neither(self, ray: RayHere) -> None:
        ray.wrong = {0: {1: RayError}, 1: {0: RayError}}
        with ClientStreams(parts, EnginePlan(1)) as streams:
            assert texts(("a", 4)) == list(streams.run([("a", 4)]))
            assert 2 == streams.lost

        assert [(0, 1), (0, 0), (0, 0)] == ray.begun

    @KINDS
    def test_three_times_without_a_part_is_an_error(self, ray: RayHere, kind: type[RayStreams]) -> None:
        ray.wrong = {number: {0: RayError} for number in range(3)}
        with kind(parts, EnginePlan(1)) as streams, pytest.raises(TarvizError, match=r"E_WORKER: the worker was lost 3 times: node died\."):
            list(streams.run([("a", 2)]))

        assert (3, 2) == (len(ray.begun), streams.lost)

    @KINDS
    @pytest.mark.parametrize(
        ("error", "words"),
        [(TaskCancelledError, "a task was cancelled from outside"), (RayTaskError, "a worker of the cluster cannot run tasks: node died")],
    )
    def test_what_cannot_be_done_is_said_at_once(self, ray: RayHere, kind: type[RayStreams], error: type[Exception], words: str) -> None:
        ray.wrong = {0: {0: error}}
        with kind(parts, EnginePlan(1)) as streams, pytest.raises(TarvizError, match=words):
            list(streams.run([("a", 2)]))

        assert 1 == len(ray.begun)


class TestActors:
    def test_one_does_task_after_task_and_ends_with_the_work(self, ray: RayHere) -> None:
        with ClientStreams(parts, EnginePlan(1)) as streams:
            assert texts(*TASKS) == list(streams.run(TASKS))
            assert [] == ray.ended
            assert 1 == len(set(map(id, ray.made)))

        assert [3] == ray.ended

    def test_answers_are_asked_for_ahead(self, ray: RayHere) -> None:
        with ClientStreams(parts, EnginePlan(1)) as streams:
            found = streams.run([("a", 1)])
            next(found)

            assert 1 + ASKED + 2 == ray.made[0].asked  # its beginning, those ahead, and one for each that was taken
            found.close()
