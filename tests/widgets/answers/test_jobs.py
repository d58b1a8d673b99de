"""Work behind a browser: one job at a time, each with a last word, ended where it says how far it is."""

from __future__ import annotations

import threading

import pytest

from tarviz.model.errors import UsageError
from tarviz.widgets.answers.jobs import Job
from tests.conftest import wait_until


@pytest.fixture
def told():
    return []


@pytest.fixture
def job(told):
    return Job(lambda: told.append(1))


def ended(job):
    wait_until(lambda: not job.running)
    return job.message()


def test_nothing_is_being_done_at_first(job):
    assert {"running": False, "text": "", "bad": False} == job.message()


def test_it_tells_how_far_it_is_and_then_what_came_of_it(job, told):
    said, go_on = threading.Event(), threading.Event()

    def work():
        job.say("half of it")
        said.set()
        return "all of it" if go_on.wait(60) else ""

    assert job.start("a copy", work)["running"]
    assert said.wait(60)
    assert {"running": True, "text": "half of it", "bad": False} == job.message()
    go_on.set()
    assert {"running": False, "text": "all of it", "bad": False} == ended(job)
    wait_until(lambda: len(told) == 2)


def test_what_is_over_at_once_was_running_when_it_began(job, monkeypatch):
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (start(thread), thread.join()))

    assert {"running": True, "text": "a copy", "bad": False} == job.start("a copy", lambda: "copied")
    assert {"running": False, "text": "copied", "bad": False} == job.message()


def test_two_things_are_not_done_at_once(job):
    free = threading.Event()
    job.start("a copy", lambda: "copied" if free.wait(60) else "")

    with pytest.raises(UsageError, match=r"Something else is being done \(a copy\)\."):
        job.start("a check", lambda: "checked")
    free.set()
    assert "copied" == ended(job)["text"]
    job.start("a check", lambda: "checked")
    assert "checked" == ended(job)["text"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UsageError("There is no room."), "There is no room."),
        (UsageError("There is no room.", hint="Make some."), "There is no room. Make some."),
        (RuntimeError("a wheel came off"), "It ended: RuntimeError: a wheel came off."),
        (UsageError("no answer from http://host/a.tar?token=abc"), "no answer from http://host/a.tar?token=***"),
    ],
)
def test_what_goes_wrong_is_its_last_word(job, error, text):
    def work():
        raise error

    job.start("a copy", work)
    assert {"running": False, "text": text, "bad": True} == ended(job)
    job.start("a check", lambda: "checked")
    assert {"running": False, "text": "checked", "bad": False} == ended(job)


def test_it_ends_at_its_next_word_and_the_next_one_does_not(job):
    stopped = threading.Event()

    def work():
        stopped.wait(60)
        job.say("half of it")
        return "all of it"

    job.start("a copy", work)
    job.stop()
    stopped.set()
    assert {"running": False, "text": "stopped.", "bad": False} == ended(job)
    job.start("a copy", work)
    assert "all of it" == ended(job)["text"]
