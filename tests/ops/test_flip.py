"""Flip: mirrored, as often as `p` says."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.model.errors import ChainError
from tarviz.model.types import Feature
from tarviz.ops import Flip, draws
from tarviz.testing.ops import OpTests, noise


class TestFlip(OpTests):
    op = Flip("jpg")

    def test_left_and_right_change_places(self) -> None:
        image = noise(self.accepts)[1]

        np.testing.assert_array_equal(image[:, ::-1], self.op.apply(image, np.array([0.1])))
        np.testing.assert_array_equal(image, self.op.apply(image, np.array([0.9])))

    def test_the_share_is_p(self) -> None:
        drawn = draws(1, [b"%d" % n for n in range(4000)])[:, 0]

        assert abs(np.mean(drawn < 0.3) - 0.3) < 0.03

    @pytest.mark.parametrize("arguments", [("sideways",), ("vertical", 1.5), ("vertical", "often"), ("vertical", True)])
    def test_wrong_arguments_are_refused(self, arguments: tuple[object, ...]) -> None:
        with pytest.raises(ChainError, match="flip expects"):
            Flip("jpg", *arguments)  # type: ignore[arg-type]


class TestFlipAlways(OpTests):
    op = Flip("jpg", "vertical", 1)
    accepts = Feature("float32", (None, None, 3))

    def test_top_and_bottom_change_places(self) -> None:
        image = noise(self.accepts)[1]

        np.testing.assert_array_equal(image[::-1], self.op.apply(image, np.array([0.999])))
