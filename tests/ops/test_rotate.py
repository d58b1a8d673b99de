"""Rotate: clockwise, about the centre; at random where no angle is given."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.model.errors import ChainError
from tarviz.model.types import Feature
from tarviz.ops import Rotate, draws
from tarviz.testing.ops import OpTests, noise


class TestRotate(OpTests):
    op = Rotate("jpg", 30)

    def test_it_turns_clockwise(self) -> None:
        image = np.zeros((9, 9, 3), np.uint8)
        image[0, :] = 255  # the top edge

        out = Rotate("jpg", 90).apply(image)

        assert 255 == out[4, 8, 0]
        assert 0 == out[4, 0, 0]

    def test_half_a_turn_is_both_flips(self) -> None:
        image = noise(self.accepts)[1]

        np.testing.assert_array_equal(image[::-1, ::-1], Rotate("jpg", 180).apply(image))

    def test_a_negative_angle_turns_back(self) -> None:
        image = noise(self.accepts)[0]

        np.testing.assert_array_equal(Rotate("jpg", 330).apply(image), Rotate("jpg", -30).apply(image))

    @pytest.mark.parametrize("angle", ["right", float("nan"), True, (1, 2)])
    def test_an_angle_that_is_none_is_refused(self, angle: object) -> None:
        with pytest.raises(ChainError, match="angle"):
            Rotate("jpg", angle)  # type: ignore[arg-type]


class TestRotateByNothing(OpTests):
    op = Rotate("jpg", 0)

    def test_nothing_turns(self) -> None:
        image = noise(self.accepts)[0]

        np.testing.assert_array_equal(image, self.op.apply(image))
        np.testing.assert_array_equal(image, Rotate("jpg", -360).apply(image))

    def test_it_is_written_as_it_was_given(self) -> None:
        assert "rotate(jpg, 0)" == str(self.op)
        assert "rotate(jpg)" == str(Rotate("jpg"))


class TestRotateAtRandom(OpTests):
    op = Rotate("jpg")

    def test_angles_fill_the_circle(self) -> None:
        angles = [self.op.drawn_angle(draw) for draw in draws(1, [b"%d" % n for n in range(2000)])]

        assert 0 <= min(angles) < 2
        assert 358 < max(angles) < 360
        assert 170 < np.mean(angles) < 190

    def test_the_angle_is_told(self) -> None:
        assert "turned by 90.0°" == self.op.describe_draw(np.array([0.25]))

    def test_it_is_the_angle_that_is_told(self) -> None:
        image = noise(self.accepts)[2]

        np.testing.assert_array_equal(Rotate("jpg", 90).apply(image), self.op.apply(image, np.array([0.25])))


class TestRotateFloat(OpTests):
    op = Rotate("jpg", 12.5)
    accepts = Feature("float32", (None, None, 1))


def test_by_nothing_is_random_where_tar2tf_is_spoken() -> None:
    from tarviz.dialects.tar2tf import ops as tar2tf

    assert 1 == tar2tf.Rotate("png", 0).draws == tar2tf.Rotate("png").draws
    assert 0 == tar2tf.Rotate("png", 20).draws
