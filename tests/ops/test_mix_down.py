"""MixDown: the mean of the channels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import SchemaError
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

    @pytest.mark.parametrize(
        "feature", [Feature("bytes"), Feature("int16", (None, 2)), Feature("float32", (9,)), Feature("float32", (9, 2, 1))]
    )
    def test_what_is_no_sound_is_refused(self, feature: Feature) -> None:
        with pytest.raises(SchemaError, match=r"expects sound \[samples, channels\]") as caught:
            self.op.infer(feature)
        assert ("Put decode(wav) before it." in caught.value.message) == (feature.dtype == "bytes")
        with pytest.raises(SchemaError, match="expects sound"):
            self.op.apply(np.zeros(3, np.float32))

    def test_whole_numbers_would_overflow_and_are_refused(self) -> None:
        with pytest.raises(SchemaError, match="expects sound"):
            self.op.apply(np.full((3, 2), 30_000, np.int16))

    def test_the_dtype_stays(self) -> None:
        assert Feature("float64", (7, 1)) == self.op.infer(Feature("float64", (7, 2)))
        assert np.float64 == self.op.apply(np.zeros((7, 2))).dtype
