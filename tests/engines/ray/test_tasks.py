"""Tasks on a Ray that is in this process: order, tries, files and ends; that a real one does the same is in `test_ray.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tarviz import engines
from tarviz.engines import EnginePlan, TaskEnd
from tarviz.engines.ray.tasks import RayEngine
from tarviz.model.errors import TarvizError
from tests.engines.jobs import job
from tests.engines.ray.here import RayError, RayHere, RayTaskError, TaskCancelledError


def cluster(plan: EnginePlan = EnginePlan()) -> RayEngine:  # noqa: B008
    """The engine that is started for a plan."""
    made = engines.start("ray", job, plan)
    assert isinstance(made, RayEngine)
    return made


class TestResults:
    @pytest.mark.parametrize(("count", "room", "most"), [(None, 2, 4), (1, 1, 1), (3, 3, 3)])
    def test_come_in_the_order_of_the_tasks_whichever_ends_first(self, ray: RayHere, count: int | None, room: int, most: int) -> None:
        heard: list[TaskEnd] = []
        ticks: list[int] = []
        with cluster(EnginePlan(count, tick=ticks.append, heard=heard.append)) as engine:
            results = list(engine.run([("tick", at) for at in range(7)]))
            assert room == engine.room

        assert [(at, None) for at in range(7)] == results
        assert most == ray.most
        assert list(range(7)) == sorted(done.number for done in heard)
        assert [(True, done.number, 1000 * done.number) for done in heard] == [(done.good, done.value, done.size) for done in heard]
        assert [done.size for done in heard] == ticks
        assert [1] * 7 == [processors for _, processors in ray.begun]
        assert [] == ray.ended

    def test_a_cluster_that_does_not_say_has_a_processor(self, ray: RayHere) -> None:
        ray.processors = 0
        with cluster() as engine:
            assert 1 == engine.room

    @pytest.mark.parametrize("count", [1, 3])
    def test_each_comes_with_its_file_and_those_that_wait_take_the_room_of_others(self, ray: RayHere, tmp_path: Path, count: int) -> None:
        tasks = [("write", b"%d" % at * 5000) for at in range(7)] + [("write", b"")]
        with cluster(EnginePlan(count, spool=str(tmp_path))) as engine:
            for (_, data), (size, file) in zip(tasks, engine.run(tasks), strict=True):
                assert file is not None
                file.seek(0)
                assert (len(data), data) == (size, file.read())
                assert [] == list(tmp_path.iterdir())

        assert count == ray.most
        assert [(True, 1)] * 8 == ray.begun

    def test_an_error_is_answered_in_its_turn_and_has_no_file(self, ray: RayHere, tmp_path: Path) -> None:
        with cluster(EnginePlan(2, spool=str(tmp_path))) as engine:
            results = list(engine.run([("odd", "a"), ("write", b"xy"), ("odd", "b")], lambda number, error: (number, str(error))))

        assert [((0, "a"), None), (2, True), ((2, "b"), None)] == [(value, file and file.closed) for value, file in results]

    def test_without_an_answer_the_first_is_raised_and_what_runs_is_ended(self, ray: RayHere) -> None:
        ray.first = True
        found: list[Any] = []
        with pytest.raises(ZeroDivisionError, match="why"), cluster(EnginePlan(3)) as engine:
            found.extend(value for value, _ in engine.run([("sleep", 0), ("odd", "why"), *(("tick", at) for at in range(5))]))

        assert [0] == found
        assert (4, [(2, False), (3, False)]) == (len(ray.begun), ray.ended)


class TestLost:
    def test_a_task_is_begun_again_twice(self, ray: RayHere) -> None:
        ray.wrong = {0: RayError, 2: RayError}
        with cluster(EnginePlan(1)) as engine:
            assert [(5, None), (6, None)] == list(engine.run([("tick", 5), ("tick", 6)]))
            assert 2 == engine.lost

        assert 4 == len(ray.begun)

    def test_three_times_is_an_error_that_may_be_answered(self, ray: RayHere) -> None:
        ray.wrong = dict.fromkeys(range(3), RayError)
        heard: list[TaskEnd] = []
        with cluster(EnginePlan(1, heard=heard.append)) as engine:
            (error, _), (value, _) = engine.run([("tick", 5), ("tick", 6)], lambda number, error: error)
            assert 2 == engine.lost

        assert ("the worker was lost 3 times: node died.", "E_WORKER", 6) == (error.message, error.code, value)
        assert [TaskEnd(0, "lost", False, error, 0), 6] == [heard[0], heard[1].value]

    @pytest.mark.parametrize(
        ("kind", "words"),
        [(TaskCancelledError, "a task was cancelled from outside"), (RayTaskError, "a worker of the cluster cannot run tasks: node died")],
    )
    def test_one_that_cannot_be_done_ends_all(self, ray: RayHere, kind: type[Exception], words: str) -> None:
        ray.wrong = {0: kind}
        with pytest.raises(TarvizError, match=words), cluster(EnginePlan(1)) as engine:
            list(engine.run([("tick", 5), ("tick", 6)], lambda number, error: None))

        assert 1 == len(ray.begun)


def test_who_leaves_early_ends_what_runs(ray: RayHere) -> None:
    ray.first = True
    with cluster(EnginePlan(3)) as engine:
        results = engine.run([("tick", at) for at in range(9)])
        next(results)
        results.close()
        assert [] == ray.ended

    assert [(1, False), (2, False)] == ray.ended
