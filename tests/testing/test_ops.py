"""The contract of ops fails for an op that does not keep it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tarviz.ops import Func
from tarviz.testing.ops import OpTests


def darkened(record: dict[str, Any]) -> dict[str, Any]:
    record["png"] //= 2
    return record


class Spoiling(OpTests):
    op = Func(darkened)

    def records(self) -> list[dict[str, Any]]:
        return [{"__key__": "a", "__shard__": "a.tar", "__index__": 0, "png": np.full((2, 2, 3), 9, np.uint8)}]


def test_an_op_that_changes_what_it_is_given_is_found():
    with pytest.raises(AssertionError):
        Spoiling().test_the_input_is_left_unchanged()
