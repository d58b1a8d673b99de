"""Sound as what speech models are fed: the loudness of mel bands over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import ChainError, DataError
from tarviz.model.types import Feature
from tarviz.ops.base import Draw
from tarviz.ops.values.sonic import SoundOp
from tarviz.ops.values.sounds import decibels, mel_bands, power_spectrogram


@dataclass(frozen=True, slots=True)
class LogMel(SoundOp):
    """The mel spectrogram of a sound [samples, channels] in decibels, float32 [frames, bands, channels].

    Frames of `size` samples every `hop` samples, `bands` of Slaney's mel scale from `low` to `high` hertz (half the sample rate where
    it is not said): `librosa.power_to_db(librosa.feature.melspectrogram(y=y, sr=rate, n_fft=size, hop_length=hop, n_mels=bands),
    top_db=None)`, within 1e-4, with frames first.
    """

    bands: int = field(default=80, kw_only=True)
    size: int = field(default=400, kw_only=True)
    hop: int = field(default=160, kw_only=True)
    low: float = field(default=0.0, kw_only=True)
    high: float | None = field(default=None, kw_only=True)

    name: ClassVar[str] = "log_mel"

    def check(self) -> None:
        for name in ("bands", "size", "hop"):
            self.check_number(name, 1, whole=True)
        if not 0 <= self.low < (float("inf") if self.high is None else self.high):
            raise ChainError(f"{self.name} expects low below high, in hertz; got {self.low!r} and {self.high!r}.")

    def sound(self, samples: NDArray[Any], rate: int, draw: Draw | None = None) -> NDArray[Any]:
        if self.high is not None and self.high > rate / 2:
            raise DataError(f"there are no {self.high} Hz in {rate} samples a second.", code="E_OP", hint="Resample: decode(…, rate=…).")
        power = power_spectrogram(samples, size=self.size, hop=self.hop)
        weights = mel_bands(rate, self.size, self.bands, self.low, rate / 2 if self.high is None else self.high)
        return decibels(np.ascontiguousarray(np.einsum("fsc,sb->fbc", power, weights, optimize=True)))

    def infer(self, feature: Feature) -> Feature:
        return Feature("float32", (None, self.bands, self.check_sound(feature).shape[1]))
