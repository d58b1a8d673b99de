"""What all engines have in common: how many tasks at a time, and errors that do not stop the others."""

from __future__ import annotations

import sys
from typing import IO, Any

import pytest

from tarviz import engines
from tarviz.engines import EnginePlan, TaskEnd, Tick
from tarviz.engines.ray.streams import ClientStreams, RayStreams
from tarviz.model.errors import DataError, MissingPackageError, SchemaError, TarvizError, UsageError


def halves(task: str, file: IO[bytes] | None, tick: Tick) -> str | None:
    """Half of a word; nothing of one that is too short, and an error for one that begins with a question mark."""
    if task.startswith("?"):
        raise DataError(f"{task} is no word.", code="E_CORRUPT", hint="Leave it out." if task == "?0" else None)
    return task[: len(task) // 2] or None


def test_on_a_cluster_it_has_room_for_as_many_tasks_as_it_says() -> None:
    assert [3, None, None] == [engines.count("ray", asked, 2) for asked in (3, 0, None)]


class TestEach:
    def test_results_come_in_order_and_what_is_none_does_not(self) -> None:
        heard: list[TaskEnd] = []

        assert ["ab", "x"] == list(engines.each("local", halves, ["abcd", "z", "xy"], heard=heard.append))
        assert [0, 1, 2] == [done.number for done in heard]

    @pytest.mark.parametrize(
        ("tasks", "hint"),
        [
            (["?0", "ab"], "Leave it out."),
            (["ab", "?1", "cd", "?2"], "1 more failed: ?2 (E_CORRUPT)."),
            (["?0", "?1", "?2"], "Leave it out. 2 more failed: ?1 (E_CORRUPT), ?2 (E_CORRUPT)."),
            ([f"?{at}" for at in range(1, 12)], f"10 more failed: {', '.join(f'?{at} (E_CORRUPT)' for at in range(2, 12))}."),
            ([f"?{at}" for at in range(1, 13)], f"11 more failed: {', '.join(f'?{at} (E_CORRUPT)' for at in range(2, 12))}, …."),
        ],
    )
    def test_the_first_error_comes_after_all_results_and_names_the_others(self, tasks: list[str], hint: str) -> None:
        found: list[Any] = []
        with pytest.raises(DataError) as caught:
            found.extend(engines.each("local", halves, tasks))

        first = next(task for task in tasks if task.startswith("?"))
        assert [task[0] for task in tasks if not task.startswith("?")] == found
        assert (f"{first} is no word.", first, hint) == (caught.value.message, caught.value.shard, caught.value.hint)

    @pytest.mark.parametrize("error", [UsageError("a"), MissingPackageError("b"), OSError("c")])
    def test_an_error_that_would_come_again_is_raised_at_once(self, error: Exception) -> None:
        with pytest.raises(type(error)):
            engines.Errors().keep(0, error)

    def test_a_field_that_does_not_fit_is_one_shard_s(self) -> None:
        errors = engines.Errors()
        errors.keep(1, SchemaError("no picture."))
        with pytest.raises(TarvizError, match=r"E_SCHEMA b\.tar: no picture\."):
            errors.settle(["a.tar", "b.tar"])


class TestOnOtherMachines:
    @pytest.mark.parametrize(
        ("given", "environment", "kind"),
        [
            (None, None, RayStreams),
            ("auto", None, RayStreams),
            ("ray://host:10001", None, ClientStreams),
            (None, "ray://host:10001", ClientStreams),
            ("host:6379", "ray://host:10001", RayStreams),
        ],
    )
    def test_streams_go_through_ray_s_client_where_the_address_says_so(
        self, monkeypatch: pytest.MonkeyPatch, given: str | None, environment: str | None, kind: type[RayStreams]
    ) -> None:
        monkeypatch.delitem(sys.modules, "ray", raising=False)
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        if environment is not None:
            monkeypatch.setenv("RAY_ADDRESS", environment)

        assert kind is type(engines.stream("ray", iter, EnginePlan(address=given)))

    @pytest.mark.ray
    def test_an_engine_is_there_where_the_environment_names_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "ray", raising=False)
        monkeypatch.delenv("RAY_ADDRESS", raising=False)

        assert engines.there() is None
        monkeypatch.setenv("RAY_ADDRESS", "auto")
        assert "ray" == engines.there()
        engines.check_streams("ray")

    def test_what_is_of_this_process_alone(self) -> None:
        urls = ["-", "memory:a.tar", "a.tar", "https://host/memory:a.tar", "-a.tar"]

        assert [True, True, False, False, False] == [engines.is_own(url) for url in urls]
