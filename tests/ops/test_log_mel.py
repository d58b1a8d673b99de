"""LogMel: held against librosa."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import ChainError, DataError
from tarviz.model.types import Feature
from tarviz.ops.log_mel import LogMel
from tarviz.testing.ops import OpTests

SOUND = np.random.default_rng(7).uniform(-1, 1, (4000, 2)).astype(np.float32)


class TestLogMel(OpTests):
    op = LogMel("wav", bands=12, size=64, hop=16, rate=8000)
    accepts = Feature("float32", (None, None))
    fails_on = {"wav": b"bytes"}

    def values(self) -> Iterable[Any]:
        return [SOUND[:900], SOUND[:10], SOUND]

    @pytest.mark.matrix
    def test_it_is_that_of_librosa(self) -> None:
        librosa = pytest.importorskip("librosa", reason="librosa is the oracle for spectrograms")
        power = librosa.feature.melspectrogram(y=SOUND.T, sr=8000, n_fft=64, hop_length=16, n_mels=12)
        expected = librosa.power_to_db(power, top_db=None)

        np.testing.assert_allclose(expected.transpose(2, 1, 0), self.op.apply(SOUND), atol=1e-4)

    def test_a_frequency_that_is_not_there_is_an_error(self) -> None:
        with pytest.raises(DataError, match="no 5000 Hz"):
            LogMel("wav", high=5000, rate=8000).apply(SOUND)

    @pytest.mark.parametrize(("low", "high"), [(-1, None), (5, 5), (6, 5), (float("inf"), None)])
    def test_bounds_have_to_rise(self, low: float, high: float | None) -> None:
        with pytest.raises(ChainError, match="low below high"):
            LogMel("wav", low=low, high=high)

    def test_bounds_choose_the_bands(self) -> None:
        whole = LogMel("wav", bands=4, size=64, hop=16, rate=8000)
        halved, full = (LogMel("wav", bands=4, size=64, hop=16, rate=8000, high=high).apply(SOUND) for high in (2000, 4000))

        np.testing.assert_array_equal(whole.apply(SOUND), full)
        assert np.abs(halved - full).max() > 1
