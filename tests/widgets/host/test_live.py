"""What is saved with a notebook while a controller is still at work: the end of it, waited for where nobody watches."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("anywidget", reason="anywidget is in the extra `lab`")

from tarviz.widgets.host import live
from tarviz.widgets.host.live import LiveView, is_watched
from tarviz.widgets.host.rpc import Controller
from tests.conftest import wait_until


class Working(Controller):
    script = "bench"

    def __init__(self):
        self.done = threading.Event()
        self.waited = []

    def wait(self, seconds=None):
        self.waited.append(seconds)
        return self.done.wait(60 if seconds is None else min(seconds, 0.01))

    def first(self, session=""):
        return {"done": self.done.is_set()}, []


@pytest.fixture
def view():
    found = LiveView(Working())
    yield found
    found.controller.done.set()
    found.close()


def shell(monkeypatch, kernel):
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: SimpleNamespace(kernel=kernel, user_ns={}))


@pytest.mark.parametrize(
    ("kernel", "found"),
    [(None, True), (SimpleNamespace(), True), (SimpleNamespace(_allow_stdin=True), True), (SimpleNamespace(_allow_stdin=False), False)],
)
def test_a_front_end_that_cannot_ask_is_watched_by_nobody(monkeypatch, kernel, found):
    shell(monkeypatch, kernel)

    assert found is is_watched()


def test_a_cell_that_somebody_watches_does_not_wait(view, monkeypatch):
    shell(monkeypatch, None)
    view._ipython_display_()

    assert ({"done": False}, 0) == (view._first, view.controller.waited[0])
    view.controller.done.set()
    wait_until(lambda: view._first == {"done": True})


def test_a_cell_that_nobody_watches_waits_for_the_end(view, monkeypatch):
    shell(monkeypatch, SimpleNamespace(_allow_stdin=False))
    threading.Timer(0.1, view.controller.done.set).start()
    view._ipython_display_()

    assert ({"done": True}, [None, 0]) == (view._first, view.controller.waited)


def test_a_deck_waits_two_minutes_for_it(view):
    view.to_static(1 << 20)

    assert [live._PATIENCE] == view.controller.waited
    assert 120 == live._PATIENCE
