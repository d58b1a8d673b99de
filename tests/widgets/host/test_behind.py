"""Threads behind a page: they hold up no program, and say what ended them."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from tarviz.model.errors import UsageError
from tarviz.widgets.host.behind import failure, start_thread


def test_a_thread_has_a_name_and_what_it_is_given():
    heard: list[object] = []
    thread = start_thread("test", lambda *given: heard.extend((threading.current_thread().name, *given)), 1, "b")
    thread.join(60)

    assert ["tarviz-test", 1, "b"] == heard


def test_a_program_that_ends_does_not_wait_for_it():
    text = "import threading\nfrom tarviz.widgets.host.behind import start_thread\nstart_thread('test', threading.Event().wait)"

    assert 0 == subprocess.run([sys.executable, "-c", text], timeout=120, check=False).returncode


def test_an_error_of_tarviz_is_told_as_it_is(caplog: pytest.LogCaptureFixture):
    error = UsageError("no", hint="yes")

    assert error is failure(error, "The search ended")
    assert not caplog.records


def test_any_other_error_is_told_by_its_kind_and_logged(caplog: pytest.LogCaptureFixture):
    error = RuntimeError("a wheel came off")
    found = failure(error, "The search ended")

    assert ("E_INTERNAL", "The search ended: RuntimeError: a wheel came off.") == (found.code, found.message)
    assert [("The search ended", error)] == [(record.message, record.exc_info and record.exc_info[1]) for record in caplog.records]
