"""How many processors there are for this process."""

from __future__ import annotations

import os
import sys

import pytest

from tarviz.model.processors import processors


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_it_is_those_that_the_process_is_bound_to():
    whole = os.sched_getaffinity(0)
    assert len(whole) == processors()
    os.sched_setaffinity(0, {min(whole)})
    try:
        assert 1 == processors()
    finally:
        os.sched_setaffinity(0, whole)


@pytest.mark.parametrize(("known", "found"), [(6, 6), (None, 1)])
def test_it_is_all_where_the_system_does_not_tell(monkeypatch, known, found):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: known)

    assert found == processors()
