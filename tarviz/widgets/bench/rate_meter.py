"""Rate meter: times the first batch separately, drops the warm-up, counts each record exactly once."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Clock = Callable[[], float]

_SPACED = 0.05  # seconds between two marks of the line
_SMOOTH = 0.5  # seconds a point of the line looks back
_PARTS = 10
# 97.5 % quantiles of Student's t for 1…30 degrees of freedom: half a 95 % interval
_T: tuple[float, ...] = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)
_T += (2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run measured.

    `rate` is records per second, `margin` half the width of its 95 % interval, both over `seconds` after first batch and warm-up, in which
    `records` and `bytes` came. `first_seconds` is the time to the first batch of `first_records`. `p50`, `p90`, `p99` are milliseconds
    between one batch and the next.
    """

    rate: float = math.nan
    margin: float = math.nan
    megabytes: float = math.nan
    records: int = 0
    bytes: int = 0
    seconds: float = 0.0
    first_seconds: float = math.nan
    first_records: int = 0
    total_records: int = 0
    p50: float = math.nan
    p90: float = math.nan
    p99: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; what is not known is None."""
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in asdict(self).items()}

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Figures:
        """The figures that `to_dict` wrote."""
        values: dict[str, Any] = {name: math.nan if found.get(name) is None else found[name] for name in cls.__slots__}
        return cls(**values)


class Meter:
    """One run being counted. `arrive` is called by one thread; any thread may look at `marks`."""

    def __init__(self, clock: Clock, warmup: float = 0.0) -> None:
        self._clock = clock
        self._warmup = warmup
        self._times = array("d")
        self._records = array("q")
        self._bytes = array("q")
        self.begun = clock()
        self.records = 0
        self.bytes = 0
        self.now = self.begun
        self.marks: list[tuple[float, int, int]] = [(0.0, 0, 0)]
        """(seconds since the beginning, records, bytes), at most 20 a second."""

    def arrive(self, records: int, size: int = 0) -> None:
        """So many records, of so many bytes, have come now."""
        self.now = now = self._clock()
        self.records += records
        self.bytes += size
        self._times.append(now)
        self._records.append(self.records)
        self._bytes.append(self.bytes)
        if now - self.begun >= self.marks[-1][0] + _SPACED or len(self._times) == 1:
            self.marks.append((now - self.begun, self.records, self.bytes))

    @property
    def seconds(self) -> float:
        """Seconds since the beginning, as of the latest arrival."""
        return self.now - self.begun

    @property
    def behind_first(self) -> float:
        """Seconds since the first batch, as of the latest arrival."""
        return self.now - self._times[0] if self._times else 0.0

    def figures(self) -> Figures:
        """What was measured so far. A run of one batch has no rate."""
        count = len(self._times)
        if not count:
            return Figures()
        first = self._times[0] - self.begun
        start = min(bisect_right(self._times, self._times[0] + self._warmup) - 1, count - 2)
        if start < 0:
            return Figures(first_seconds=first, first_records=self._records[0], total_records=self.records)
        times = np.array(self._times[start:])
        records = np.array(self._records[start:])
        seconds = float(times[-1] - times[0])
        came, size = int(records[-1] - records[0]), self._bytes[-1] - self._bytes[start]
        gaps = np.diff(times) * 1000
        return Figures(
            came / seconds if seconds > 0 else math.nan,
            _margin(times, records),
            size / seconds / 1e6 if seconds > 0 and size else math.nan,
            came,
            size,
            seconds,
            first,
            self._records[0],
            self.records,
            *map(float, np.percentile(gaps, (50, 90, 99))),
        )


def _margin(times: np.ndarray[Any, np.dtype[np.float64]], records: np.ndarray[Any, np.dtype[np.int64]]) -> float:
    """Half the 95 % interval of the rate, from parts of the run of the same time, each long enough for some batches."""
    parts = min(_PARTS, (len(times) - 1) // 3)
    if parts < 3 or times[-1] <= times[0]:
        return math.nan
    edges = np.linspace(times[0], times[-1], parts + 1)
    came = records[np.searchsorted(times, edges, side="right") - 1]
    return half_interval((np.diff(came) / np.diff(edges)).tolist())


def half_interval(values: Sequence[float]) -> float:
    """Half the width of the 95 % interval of a mean.

    >>> round(half_interval([10.0, 12.0, 11.0]), 2)
    2.48
    """
    if len(values) < 2:
        return math.nan
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) * _T[min(len(values) - 2, len(_T) - 1)]


def line(marks: Sequence[tuple[float, int, int]]) -> list[tuple[float, float, float]]:
    """Marks as points (seconds, records/s, MB/s), each over the half second before it. The first batch gives no point."""
    points = []
    back = 1
    for at in range(2, len(marks)):
        now, records, size = marks[at]
        while back < at - 1 and marks[back + 1][0] <= now - _SMOOTH:
            back += 1
        before, records_then, bytes_then = marks[back]
        span = now - before
        points.append((now, (records - records_then) / span, (size - bytes_then) / span / 1e6))
    return points
