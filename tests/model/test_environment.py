"""Variables that are watched for changes."""

from __future__ import annotations

import pytest

from tarviz.model.environment import Watched

NAMES = ["TARVIZ_WATCHED_A", "TARVIZ_WATCHED_B"]


def test_it_is_equal_as_long_as_nothing_that_is_watched_changes(monkeypatch):
    watched = Watched(NAMES)
    before = watched.state()
    monkeypatch.setenv("TARVIZ_NOT_WATCHED", "1")

    assert before == watched.state()


@pytest.mark.parametrize("value", ["", "x", "ü", "\udcff"])
def test_a_variable_that_is_set_changed_or_removed_is_a_change(monkeypatch, value):
    watched = Watched(NAMES)
    states = [watched.state()]
    monkeypatch.setenv(NAMES[0], value)
    states.append(watched.state())
    monkeypatch.setenv(NAMES[0], value + "more")
    states.append(watched.state())

    assert 3 == len(set(states))
    monkeypatch.delenv(NAMES[0])
    assert states[0] == watched.state()


def test_two_variables_that_change_places_are_a_change(monkeypatch):
    watched, states = Watched(NAMES), []
    for first, second in ("xy", "yx"):
        monkeypatch.setenv(NAMES[0], first)
        monkeypatch.setenv(NAMES[1], second)
        states.append(watched.state())

    assert states[0] != states[1]
