"""What is saved with a notebook while a controller is still at work: the end of it, waited for where nobody watches."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("anywidget", reason="anywidget is in the extra `lab`")

from tarviz.widgets.bench.view import BenchView
from tarviz.widgets.browse.view import BrowseView
from tarviz.widgets.compare.view import CompareView
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


@pytest.mark.parametrize(
    ("kind", "asked"), [(BenchView, "result"), (CompareView, "spec"), (CompareView, "columns"), (CompareView, "status")], ids=str
)
def test_what_it_is_asked_is_what_its_controller_says(kind, asked):
    controller = Working()
    setattr(controller, asked, object())
    view = kind(controller)

    assert getattr(controller, asked) is getattr(view, asked)
    view.close()


def test_a_bench_that_is_stopped_says_what_it_has():
    controller = Working()
    controller.end = lambda: "so far"
    view = BenchView(controller)

    assert "so far" == view.stop()
    view.close()


class Filling(Working):
    """A browser whose first rows are slow to come."""

    closed = False
    shards = SimpleNamespace(rows=SimpleNamespace(finished=False))

    def wait(self, count, seconds):
        self.waited.append((count, seconds))
        return self.done.wait(60)

    def first(self, session=""):
        return {"rows": {"rows": [0] * 24 * self.done.is_set()}}, []


@pytest.mark.parametrize("closed", [False, True])
def test_the_first_rows_of_a_slow_shard_are_saved_unless_it_is_closed(closed):
    view = BrowseView(Filling())
    assert {"rows": {"rows": []}} == view._first
    view.controller.closed = closed
    view.controller.done.set()
    wait_until(lambda: not any(thread.name == "tarviz-first" for thread in threading.enumerate()))

    assert ([] if closed else [0] * 24) == view._first["rows"]["rows"]
    assert [(24, 60)] == view.controller.waited
    view.close()


def test_nothing_is_waited_for_where_the_first_rows_are_there():
    controller = Filling()
    controller.done.set()
    BrowseView(controller).close()

    assert [] == controller.waited
