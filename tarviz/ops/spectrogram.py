"""Sound as the power of its frequencies over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from numpy.typing import NDArray

from tarviz.model.types import Feature
from tarviz.ops.base import Draw
from tarviz.ops.values.sonic import SoundOp
from tarviz.ops.values.sounds import power_spectrogram


@dataclass(frozen=True, slots=True)
class Spectrogram(SoundOp):
    """The power spectrogram of a sound [samples, channels], float32 [frames, size // 2 + 1, channels]: a frame of `size` samples
    under a Hann window every `hop` samples, centred, zeros beyond the ends. Frame by frame `abs(librosa.stft(y, n_fft=size,
    hop_length=hop)) ** 2`."""

    size: int = field(default=400, kw_only=True)
    hop: int = field(default=160, kw_only=True)

    name: ClassVar[str] = "spectrogram"

    def check(self) -> None:
        for name in ("size", "hop"):
            self.check_number(name, 1, whole=True)

    def sound(self, samples: NDArray[Any], rate: int, draw: Draw | None = None) -> NDArray[Any]:
        return power_spectrogram(samples, size=self.size, hop=self.hop)

    def infer(self, feature: Feature) -> Feature:
        return Feature("float32", (None, self.size // 2 + 1, self.check_sound(feature).shape[1]))

    def _rate(self, there: Any, ext: str) -> int:
        return 0  # frames are counted in samples
