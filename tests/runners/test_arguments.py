"""Numbers that runners are given."""

from __future__ import annotations

from typing import Any

import pytest

from tarviz.model.errors import UsageError
from tarviz.pipeline import Pipeline
from tarviz.runners.arguments import whole_number, whole_numbers


@pytest.mark.parametrize("value", [-1, 1.0, True, "3", None])
def test_what_is_not_a_whole_number_is_refused_by_name(value: Any) -> None:
    with pytest.raises(UsageError, match=r"epoch=.* is not a whole number from 0 on\."):
        whole_number("epoch", value)


def test_the_least_may_be_another() -> None:
    whole_number("batch", 1, 1)
    with pytest.raises(UsageError, match=r"batch=0 is not a whole number from 1 on\."):
        whole_number("batch", 0, 1)


def test_of_several_none_says_nothing() -> None:
    whole_numbers(a=None, b=0)
    whole_numbers(1, a=None, b=1)
    with pytest.raises(UsageError, match=r"b=0 is not a whole number from 1 on\."):
        whole_numbers(1, a=1, b=0)


def test_a_runner_asks_it_of_an_epoch() -> None:
    with pytest.raises(UsageError, match=r"epoch=-1 is not a whole number from 0 on\."):
        Pipeline("a.tar").eager().set_epoch(-1)
