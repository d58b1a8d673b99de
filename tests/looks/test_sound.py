"""Spectrograms: where a note is bright, and that silence is black."""

from __future__ import annotations

import numpy as np

from tarviz.looks import sound


def tone(hertz: float, count: int = 16_000) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(count) / 16_000).astype(np.float32)


def test_it_is_bright_where_the_note_is():
    rows = [sound.spectrogram(tone(hertz)).sum(axis=(1, 2)).argmax() for hertz in (31.25, 200, 1000, 4000, 7990)]

    assert ((96, 480, 3), np.uint8) == ((found := sound.spectrogram(tone(200))).shape, found.dtype)
    assert [94, 86, 53, 16, 0] == rows
    assert 255 == found.max()


def test_silence_is_black():
    found = sound.spectrogram(np.concatenate([np.zeros(8000, np.float32), tone(1000, 8000)]))

    assert not sound.spectrogram(np.zeros(9000, np.float32)).any()
    assert not found[:, :200].any()
    assert found[:, 300:].any(axis=(0, 2)).all()


def test_few_samples_are_filled_up():
    assert (96, 480, 3) == sound.spectrogram(tone(4000, 5)).shape == sound.spectrogram(np.zeros(0, np.float32)).shape
    assert sound.spectrogram(tone(4000, 300)).any()
