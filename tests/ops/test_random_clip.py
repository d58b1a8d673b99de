"""RandomClip: frames in a row, the first of them drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import SchemaError
from tarviz.model.types import Feature
from tarviz.ops import draws
from tarviz.ops.random_clip import RandomClip
from tarviz.testing.ops import OpTests


class TestRandomClip(OpTests):
    op = RandomClip("mp4", 3)
    accepts = Feature("uint8", (None, None, None, 3))
    fails_on = {"mp4": b"bytes"}

    def values(self) -> Iterable[Any]:
        return [np.random.default_rng(n).integers(0, 256, (n, 5, 6, 3), np.uint8) for n in (1, 3, 9)]

    def test_every_place_is_met(self) -> None:
        film = np.arange(6, dtype=np.uint8).reshape(6, 1, 1, 1)
        begins = {int(self.op.apply(film, draw)[0, 0, 0, 0]) for draw in draws(1, [b"%d" % n for n in range(200)])}

        assert {0, 1, 2, 3} == begins

    def test_the_last_frame_stands_in_for_those_that_lack(self) -> None:
        assert [0, 1, 1] == self.op.apply(np.arange(2, dtype=np.uint8).reshape(2, 1, 1, 1))[:, 0, 0, 0].tolist()

    def test_bytes_are_refused_with_the_cure(self) -> None:
        with pytest.raises(SchemaError, match="Put decode"):
            self.op.infer(Feature("bytes"))

    @pytest.mark.parametrize("value", [np.zeros((4, 5, 3), np.uint8), np.zeros((0, 4, 5, 3), np.uint8), b"x"])
    def test_what_is_no_film_is_refused(self, value: Any) -> None:
        with pytest.raises(SchemaError, match=r"expects (a film \[frames, h, w, c\]|at least one frame), got"):
            self.op.apply(value)

    def test_of_a_film_the_frames_are_known(self) -> None:
        assert Feature("float32", (3, 8, None, 1)) == self.op.infer(Feature("float32", (None, 8, None, 1)))
        with pytest.raises(SchemaError, match=r"expects a film \[frames, h, w, c\], got uint8\[8, 8, 3\]"):
            self.op.infer(Feature("uint8", (8, 8, 3)))

    def test_without_a_draw_it_is_the_middle(self) -> None:
        film = np.arange(9, dtype=np.uint8).reshape(9, 1, 1, 1)

        assert [3, 4, 5] == self.op.apply(film).ravel().tolist()
        assert "cut 25 % of the way in" == self.op.describe_draw(np.array([0.25]))
