"""Figures: ratios the right way round, misses told, results merged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench import Figure, Side, Value
from bench.__main__ import figures, merge, names
from bench._figure import SETTINGS, measure


class Clock:
    """A clock that only moves when work is done."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()


def sleeping(seconds: float, units: int = 10):
    def prepare(_: Path):
        def work() -> int:
            CLOCK.now += seconds
            return units

        return work

    return prepare


class TestMeasure:
    def test_speed_is_ours_over_the_peers(self, tmp_path: Path):
        figure = Figure("x", "x", Side("ours", sleeping(0.01)), Side("peer", sleeping(0.04)), at_least=2)

        line = measure(figure, tmp_path, 3, CLOCK, before=str)

        assert 4 == pytest.approx(line["value"])
        assert (True, "≥ 2×", "peer") == (line["reached"], line["reach"], line["against"])

    def test_a_time_is_ours_over_the_peers_too(self, tmp_path: Path):
        figure = Figure("x", "x", Side("ours", sleeping(0.01)), Side("peer", sleeping(0.04)), at_most=0.5)

        line = measure(figure, tmp_path, 3, CLOCK, before=str)

        assert 0.25 == pytest.approx(line["value"])
        assert line["reached"]

    def test_a_peer_of_several_settings_stands_at_its_best(self, tmp_path: Path):
        ways = {"slow": sleeping(0.08), "best": sleeping(0.02), "next": sleeping(0.04)}
        figure = Figure("x", "x", Side("ours", sleeping(0.01)), Side("peer", ways), at_least=2)

        line = measure(figure, tmp_path, 3, CLOCK, before=str)

        assert 2 == pytest.approx(line["value"])
        assert ("peer: best", "next: 0.50 of it", "3") == (line["against"], line["runner_up"], line["tried"])

    def test_less_work_is_no_speed(self, tmp_path: Path):
        figure = Figure("x", "x", Side("ours", sleeping(0.01, 10)), Side("peer", sleeping(0.01, 20)), at_least=1)

        assert not measure(figure, tmp_path, 3, CLOCK, before=str)["reached"]

    def test_each_turn_of_a_side_begins_alike_and_untimed(self, tmp_path: Path):
        turns = []

        def before() -> None:
            CLOCK.now += 9
            turns.append(CLOCK.now)

        figure = Figure("x", "x", Side("ours", sleeping(0.01)), Side("peer", sleeping(0.04)), at_least=2)

        assert 4 == pytest.approx(measure(figure, tmp_path, 3, CLOCK, before)["value"])
        assert 2 * 3 == len(turns)

    def test_a_value_is_held_against_its_limit(self, tmp_path: Path):
        figure = Figure("x", "x", Value(lambda _: 70.0, "MB"), at_most=65.0)

        line = measure(figure, tmp_path, 3, CLOCK, before=str)

        assert ("70 MB", False, "≤ 65 MB") == (line["shown"], line["reached"], line["reach"])


class TestResults:
    @pytest.mark.parametrize("name", names())
    def test_every_file_here_has_figures(self, name: str):
        for figure in figures(name):
            assert (figure.at_least is None) != (figure.at_most is None)

    @pytest.mark.parametrize("name", names())
    def test_a_peer_stands_at_the_best_of_six_settings_or_the_row_says_why_not(self, name: str):
        for figure in figures(name):
            if figure.peer is not None:
                assert bool(figure.peer.few) != (isinstance(figure.peer.prepare, Mapping) and len(figure.peer.prepare) >= SETTINGS)

    def test_names_are_used_once(self):
        all_names = [figure.name for name in names() for figure in figures(name)]

        assert len(set(all_names)) == len(all_names)

    def test_figures_not_measured_now_stay(self, tmp_path: Path):
        path = tmp_path / "results.json"
        merge(path, [{"name": "iterate-tiny", "value": 1}, {"name": "index-build", "value": 2}])
        merge(path, [{"name": "iterate-tiny", "value": 3}])

        kept = {line["name"]: line["value"] for line in json.loads(path.read_text())["figures"]}
        assert {"iterate-tiny": 3, "index-build": 2} == kept
