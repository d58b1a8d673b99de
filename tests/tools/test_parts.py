"""Parts of a data set: shares of a sum, places that never change."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import UsageError
from tarviz.tools.parts import Parts


def test_places_are_the_same_on_every_machine_and_in_every_version():
    """What was training data once must never become test data."""
    parts = Parts.of({"train": 0.8, "val": 0.1, "test": 0.1})

    assert [0, 2, 0, 0, 0, 0, 0, 2, 0, 0] == [parts.of_value(b"%d" % n) for n in range(10)]


@given(st.lists(st.binary(max_size=9)), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_runs_are_the_parts_of_the_values_in_order(values: list[bytes], shares: list[int]):
    parts = Parts.of({f"p{at}": share for at, share in enumerate(shares)})
    runs = list(parts.runs(values))

    assert [parts.of_value(value) for value in values] == [part for part, first, end in runs for _ in range(first, end)]
    assert all(before[0] != after[0] and before[2] == after[1] for before, after in pairwise(runs))


@pytest.mark.parametrize("scale", [1, 10, 0.01])
def test_shares_are_of_their_sum(scale: float):
    assert Parts.of({"a": 0.75, "b": 0.25}) == Parts.of({"a": 0.75 * scale, "b": 0.25 * scale})


def test_what_is_no_ratio_is_refused():
    for ratio in ["", "a", "a=x", "a=0", "a=-1,b=2", "a=inf", "a=nan", {"a": None}, {"a": 0.0}]:
        with pytest.raises(UsageError, match="is no ratio"):
            Parts.of(ratio)


def test_parts_have_names_of_their_own_that_can_be_names_of_files():
    for ratio in ["a=1,a=2", "=1", "a=1, =2", "a/b=1", "a\\b=1", {"{a}": 1}]:
        with pytest.raises(UsageError, match="need names of their own, without slashes and braces"):
            Parts.of(ratio)


def test_a_part_begins_where_the_shares_before_it_end():
    assert Parts(("a", "b", "c"), (0.0, 0.25, 0.75)) == Parts.of(" a=1, b =2,c= 1")
