"""MixDown: the mean of the channels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tarviz.model.types import Feature
from tarviz.ops.mix_down import MixDown
from tarviz.testing.ops import OpTests


class TestMixDown(OpTests):
    op = MixDown("wav")
    accepts = Feature("float32", (None, None))
    fails_on = {"wav": b"bytes"}

    def values(self) -> Iterable[Any]:
        return [np.random.default_rng(n).uniform(-1, 1, (n, bands)).astype(np.float32) for n, bands in ((20, 1), (50, 2), (30, 6))]

    def test_it_is_the_mean(self) -> None:
        assert [[2.0], [3.0]] == self.op.apply(np.array([[1, 3], [2, 4]], np.float32)).tolist()
