"""RandomCrop: a piece, its place drawn."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.model.errors import SchemaError
from tarviz.ops import RandomCrop, draws
from tarviz.testing.ops import OpTests


class TestRandomCrop(OpTests):
    op = RandomCrop("jpg", (6, 3))

    def test_every_place_is_met(self) -> None:
        image = np.arange(25, dtype=np.uint8).reshape(5, 5, 1)
        corners = {int(RandomCrop("jpg", (3, 4)).apply(image, draw)[0, 0, 0]) for draw in draws(2, [b"%d" % n for n in range(200)])}

        assert {0, 1, 5, 6, 10, 11} == corners

    def test_the_whole_image_may_be_cut_out(self) -> None:
        image = np.ones((6, 3, 3), np.uint8)

        np.testing.assert_array_equal(image, self.op.apply(image, np.array([0.99, 0.99])))

    def test_a_smaller_image_is_an_error_with_the_cure(self) -> None:
        with pytest.raises(SchemaError, match="Put resize"):
            self.op.apply(np.zeros((5, 20, 3), np.uint8))

    def test_without_a_draw_it_is_the_middle(self) -> None:
        image = np.arange(75, dtype=np.uint8).reshape(5, 5, 3)

        np.testing.assert_array_equal(image[2:4, 1:4], RandomCrop("jpg", (2, 3)).apply(image))
        assert "cut 25 % of the way down, 50 % across" == RandomCrop("jpg", 3).describe_draw(np.array([0.25, 0.5]))
