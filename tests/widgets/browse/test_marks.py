"""Marks: a set that many pages change at once, as a set of Python would hold it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import UsageError
from tarviz.widgets.browse import marks
from tarviz.widgets.browse.marks import Marks

ROWS = st.lists(st.integers(0, 12), max_size=8)


@given(st.lists(st.tuples(ROWS, ROWS), max_size=8))
def test_every_change_is_that_of_a_set_and_is_told_once(changes):
    told, oracle, version = [], set(), 0
    found = Marks(lambda: told.append(1))
    for add, drop in changes:
        after = (oracle | set(add)) - set(drop)
        assert (sorted(after - oracle), sorted(oracle - after)) == found.change(add, drop)
        version += after != oracle
        oracle = after
        assert (oracle, len(oracle), version, version) == (found.rows, len(found), found.version, len(told))
        assert sorted(oracle) == found.array().tolist()


def test_there_are_no_more_than_every_page_can_hold(monkeypatch):
    assert 1_000_000 == marks.MOST
    monkeypatch.setattr(marks, "MOST", 3)
    found = Marks()
    found.change([1, 2, 3], [])
    found.change([4], [1])

    with pytest.raises(UsageError, match="At most 3 records can be marked"):
        found.change([5], [])
    assert ({2, 3, 4}, 2) == (found.rows, found.version)
