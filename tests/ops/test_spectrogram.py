"""Spectrogram: held against librosa."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from tarviz.model.types import Feature
from tarviz.ops.spectrogram import Spectrogram
from tarviz.testing.ops import OpTests

SOUND = np.random.default_rng(7).uniform(-1, 1, (4000, 2)).astype(np.float32)


class TestSpectrogram(OpTests):
    op = Spectrogram("wav", size=64, hop=16)
    accepts = Feature("float32", (None, None))
    fails_on = {"wav": b"bytes"}

    def values(self) -> Iterable[Any]:
        return [SOUND[:900], SOUND[:10], SOUND]

    @pytest.mark.matrix
    def test_it_is_that_of_librosa(self) -> None:
        librosa = pytest.importorskip("librosa", reason="librosa is the oracle for spectrograms")
        expected = np.abs(librosa.stft(SOUND.T, n_fft=64, hop_length=16)) ** 2

        np.testing.assert_allclose(expected.transpose(2, 1, 0), self.op.apply(SOUND), rtol=1e-4, atol=1e-5)
