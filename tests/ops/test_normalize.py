"""Normalize: (image - mean) / std."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import Feature
from tarviz.ops import Normalize
from tarviz.testing.ops import OpTests


class TestNormalize(OpTests):
    op = Normalize("jpg", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    accepts = Feature("float32", (None, None, 3))
    tf_atol = 1e-6
    fails_on = {"jpg": np.zeros((2, 2, 3), np.uint8)}

    def test_each_channel_has_its_own_numbers(self) -> None:
        image = np.float32([[[0.485, 0.456, 0.406]]])

        np.testing.assert_allclose(np.zeros((1, 1, 3)), self.op.apply(image), atol=1e-7)

    def test_integers_are_refused_with_the_cure(self) -> None:
        with pytest.raises(SchemaError, match=r"Put convert\(jpg, float32\) before it"):
            self.op.infer(Feature("uint8", (None, None, 3)))

    def test_another_number_of_channels_is_found_in_the_schema(self) -> None:
        with pytest.raises(SchemaError, match="3 numbers for 1 channels"):
            self.op.infer(Feature("float32", (None, None, 1)))

    @pytest.mark.parametrize("arguments", [("a", 1), (0, 0), (0, (1, 0, 1)), ((), 1), (0, float("inf")), (None, 1)])
    def test_wrong_arguments_are_refused(self, arguments: tuple[object, object]) -> None:
        with pytest.raises(ChainError, match="normalize"):
            Normalize("jpg", *arguments)  # type: ignore[arg-type]

    def test_arrays_are_taken_for_tuples(self) -> None:
        assert self.op == Normalize("jpg", np.array([0.485, 0.456, 0.406]), [0.229, 0.224, 0.225])  # type: ignore[arg-type]


class TestNormalizeAllAlike(OpTests):
    op = Normalize("jpg", 0.5, 0.5)
    accepts = Feature("float64", (None, None, 1))
    tf_atol = 1e-12
