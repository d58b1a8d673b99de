"""Pages of fresh memory."""

from __future__ import annotations

import os
import sys

import pytest

from bench._pages import fresh_page, touch_free_memory


def test_a_page_takes_some_time():
    assert 0 < fresh_page(64) < 1e6


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_free_memory_is_touched_on_each_core_and_the_thread_may_run_where_it_could(monkeypatch):
    monkeypatch.setattr("bench._pages._TOUCHED", 1 << 20)
    cores = os.sched_getaffinity(0)

    assert len(cores) << 20 == touch_free_memory()
    assert cores == os.sched_getaffinity(0)
