"""What all engines have in common: how many tasks at a time, and errors that do not stop the others."""

from __future__ import annotations

import sys

import pytest

from tarviz import engines
from tarviz.engines import EnginePlan
from tarviz.engines.ray.streams import ClientStreams, RayStreams
from tarviz.model.errors import MissingPackageError, SchemaError, TarvizError, UsageError


def test_on_a_cluster_it_has_room_for_as_many_tasks_as_it_says() -> None:
    assert [3, None, None] == [engines.count("ray", asked, 2) for asked in (3, 0, None)]


class TestErrors:
    @pytest.mark.parametrize("error", [UsageError("a"), MissingPackageError("b"), OSError("c")])
    def test_an_error_that_would_come_again_is_raised_at_once(self, error: Exception) -> None:
        with pytest.raises(type(error)):
            engines.Errors(["a.tar"]).keep(0, error)

    def test_a_field_that_does_not_fit_is_one_shard_s(self) -> None:
        errors = engines.Errors(["a.tar", "b.tar"])
        errors.keep(1, SchemaError("no picture."))
        with pytest.raises(TarvizError, match=r"E_SCHEMA b\.tar: no picture\."):
            errors.settle()


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
