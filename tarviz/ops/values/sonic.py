"""What ops on sound share: float32 [samples, channels], and its sample rate, which lies beside it in the field `EXT.rate`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.types import Feature, Schema
from tarviz.ops.base import Draw, FieldOp, feature_of, unfit


@dataclass(frozen=True, slots=True)
class SoundOp(FieldOp):
    """An op on sound [samples, channels]. Its sample rate is the field `EXT.rate`, which `decode` makes; `rate` says it where there is none
    (a waveform of an npy, say). int16 becomes −1 … 1, as `decode` makes it of a WAV."""

    rate: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.rate is not None:
            self.check_number("rate", 1, whole=True)
        FieldOp.__post_init__(self)

    @abstractmethod
    def sound(self, samples: NDArray[Any], rate: int, draw: Draw | None = None) -> NDArray[Any]:
        """What the op makes of samples [samples, channels] at `rate` a second."""

    def apply(self, value: Any, draw: Draw | None = None) -> NDArray[Any]:
        return self.sound(self._samples(value), self._rate({}, self.exts[0]), draw)

    def run(self, record: Mapping[str, Any], draw: Draw | None = None) -> dict[str, Any]:
        ext = self.field(record)
        return {**record, ext: self.sound(self._samples(record[ext]), self._rate(record, ext), draw)}

    def run_schema(self, schema: Schema) -> Schema:
        self._rate(schema, self.field(schema))
        return FieldOp.run_schema(self, schema)

    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        beside = {f"{ext}.rate" for ext in self.exts} if self.rate is None else set()
        return None if wanted is None else wanted | set(self.exts) | beside

    def changed_fields(self, there: Mapping[str, Any]) -> tuple[str, ...]:
        ext = self.field(there)
        return tuple(name for name in (ext, f"{ext}.rate") if name in there)

    def check_sound(self, feature: Feature) -> Feature:
        """`feature` when it can be sound; `SchemaError` otherwise."""
        if feature.dtype not in ("float32", "float64", "int16") or len(feature.shape) != 2:
            cure = f" Put decode({self.exts[0]}) before it." if feature.dtype == "bytes" else ""
            raise unfit(self, f"expects sound float32 [samples, channels], got {feature}.{cure}")
        return feature

    def _samples(self, value: Any) -> NDArray[Any]:
        self.check_sound(feature_of(value))
        samples = np.asarray(value, np.float32)
        return samples / 32768 if value.dtype == np.int16 else samples

    def _rate(self, there: Mapping[str, Any], ext: str) -> int:
        known = there.get(f"{ext}.rate")
        if known is None and self.rate is None:
            hint = f"decode({ext}) says it; for other arrays say it yourself: {self.name}({ext}, rate=16000, …)."
            raise unfit(self, f"does not know the sample rate of {ext}.", hint=hint)
        return self.rate if self.rate is not None else 0 if isinstance(known, Feature) else int(known)  # type: ignore[arg-type]
