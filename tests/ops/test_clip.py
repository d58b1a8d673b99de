"""Clip: a part of a sound, its place drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import ChainError, SchemaError
from tarviz.model.types import Feature
from tarviz.ops import draws
from tarviz.ops.clip import Clip
from tarviz.testing.ops import OpTests


class TestClip(OpTests):
    op = Clip("flac", 0.5, rate=100)
    accepts = Feature("float32", (None, None))
    fails_on = {"flac": b"bytes"}

    def values(self) -> Iterable[Any]:
        return [np.random.default_rng(n).uniform(-1, 1, (n, 2)).astype(np.float32) for n in (20, 51, 130)]

    def test_every_place_is_met(self) -> None:
        sound = np.arange(53, dtype=np.float32)[:, None]
        begins = {int(self.op.apply(sound, draw)[0, 0]) for draw in draws(1, [b"%d" % n for n in range(200)])}

        assert {0, 1, 2, 3} == begins

    def test_what_is_shorter_ends_in_silence(self) -> None:
        made = self.op.apply(np.ones((20, 1), np.float32))

        assert (50, 20) == (len(made), int(made.sum()))

    def test_the_rate_beside_the_sound_counts(self) -> None:
        record = {"__key__": "a", "wav": np.ones((900, 1), np.float32), "wav.rate": np.int32(200)}

        assert (100, 1) == Clip("wav", 0.5).run(record)["wav"].shape

    def test_without_a_rate_the_error_names_the_cure(self) -> None:
        with pytest.raises(SchemaError, match=r"rate=16000"):
            Clip("wav", 0.5).run({"__key__": "a", "wav": np.ones((9, 1), np.float32)})

    @pytest.mark.parametrize("seconds", [0, -1, "3", True])
    def test_no_time_at_all_is_refused(self, seconds: Any) -> None:
        with pytest.raises(ChainError, match="seconds"):
            Clip("wav", seconds)

    def test_without_a_draw_it_is_the_middle(self) -> None:
        assert 25 == self.op.apply(np.arange(100, dtype=np.float32)[:, None])[0, 0]
        assert "cut 25 % of the way in" == self.op.describe_draw(np.array([0.25]))

    def test_its_length_is_known_where_its_rate_is(self) -> None:
        known, unknown = self.op.infer(Feature("float32", (None, 2))), Clip("wav", 0.5).infer(Feature("int16", (None, None)))

        assert [Feature("float32", (50, 2)), Feature("float32", (None, None))] == [known, unknown]
        assert 1 == self.op.__class__("wav", 0.0001, rate=100).apply(np.ones((9, 1), np.float32)).size
