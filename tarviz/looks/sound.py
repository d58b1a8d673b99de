"""Sound as a picture: its spectrogram."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tarviz.looks.tones import table

_WINDOW, _BANDS, _WIDTH = 512, 96, 480
_FLOOR = 70.0  # decibels below the loudest that are black


def spectrogram(samples: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Loudness by time (left to right) and frequency (low at the bottom) as uint8 [96, 480, 3], loud is bright."""
    if len(samples) < _WINDOW:
        samples = np.pad(samples, (0, _WINDOW - len(samples)))
    starts = np.linspace(0, len(samples) - _WINDOW, _WIDTH).astype(int)
    frames = samples[starts[:, None] + np.arange(_WINDOW)] * np.hanning(_WINDOW)
    power = np.abs(np.fft.rfft(frames, axis=1))[:, 1:] ** 2
    edges = np.unique(np.geomspace(1, power.shape[1], _BANDS + 1).astype(int) - 1)
    bands = np.add.reduceat(power, edges[:-1], axis=1) / np.diff(edges)
    with np.errstate(divide="ignore"):
        level = 10 * np.log10(bands / max(float(bands.max()), 1e-12))
    share = np.nan_to_num((level + _FLOOR) / _FLOOR, neginf=0).clip(0, 1)
    rows = np.linspace(share.shape[1] - 1, 0, _BANDS).astype(int)
    return table("heat")[(share[:, rows].T * 255).astype(np.uint8)]
