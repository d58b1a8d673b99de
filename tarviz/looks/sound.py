"""Sound as numbers and pictures: samples of any format PyAV reads, a spectrogram; posters of films."""

from __future__ import annotations

import importlib.util
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.looks.tones import table

_MOST_SECONDS = 120
_WINDOW, _BANDS = 512, 96
_FLOOR = 70.0  # decibels below the loudest that are black


@dataclass(frozen=True, slots=True)
class Sound:
    """The first channel as float32 in −1 … 1, at most two minutes; `seconds` is the length as the file says it."""

    samples: NDArray[np.float32]
    rate: int
    channels: int
    seconds: float
    codec: str = ""


def can_decode() -> bool:
    """Whether PyAV is installed (extra `media`)."""
    return importlib.util.find_spec("av") is not None


def decode(blob: bytes | memoryview) -> Sound | None:
    """The sound of a file; None where PyAV is absent or the file holds none it can read."""
    if not can_decode():
        return None
    import av

    try:
        with av.open(io.BytesIO(blob)) as file:
            stream = next((one for one in file.streams if one.type == "audio"), None)
            if stream is None:
                return None
            rate, channels = int(stream.rate or 0), int(stream.channels or 1)
            pieces: list[NDArray[np.float32]] = []
            count = 0
            for frame in file.decode(stream):
                pieces.append(_first_channel(frame.to_ndarray(), channels))
                count += len(pieces[-1])
                if rate and count > rate * _MOST_SECONDS:
                    break
            samples = np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
            seconds = float(file.duration) / 1e6 if file.duration else len(samples) / max(rate, 1)
            return Sound(samples, rate, channels, seconds, str(stream.codec_context.name))
    except (av.FFmpegError, ValueError, OSError, OverflowError):
        return None


def _first_channel(array: NDArray[Any], channels: int) -> NDArray[np.float32]:
    flat: NDArray[Any] = array[0] if array.shape[0] == channels else array.reshape(-1)[:: max(channels, 1)]
    if array.dtype.kind == "f":
        return flat.astype(np.float32)
    middle, most = (128, 128) if array.dtype == np.uint8 else (0, 1 << (8 * array.dtype.itemsize - 1))
    return ((flat - np.float64(middle)) / most).astype(np.float32)


def spectrogram(samples: NDArray[np.float32], width: int = 480) -> NDArray[np.uint8]:
    """Loudness by time (left to right) and frequency (low at the bottom) as uint8 [96, width, 3], loud is bright."""
    if len(samples) < _WINDOW:
        samples = np.pad(samples, (0, _WINDOW - len(samples)))
    starts = np.linspace(0, len(samples) - _WINDOW, width).astype(int)
    frames = samples[starts[:, None] + np.arange(_WINDOW)] * np.hanning(_WINDOW)
    power = np.abs(np.fft.rfft(frames, axis=1))[:, 1:] ** 2
    edges = np.unique(np.geomspace(1, power.shape[1], _BANDS + 1).astype(int) - 1)
    bands = np.add.reduceat(power, edges[:-1], axis=1) / np.diff(edges)
    with np.errstate(divide="ignore"):
        level = 10 * np.log10(bands / max(float(bands.max()), 1e-12))
    share = np.nan_to_num((level + _FLOOR) / _FLOOR, neginf=0).clip(0, 1)
    rows = np.linspace(share.shape[1] - 1, 0, _BANDS).astype(int)
    return table("heat")[(share[:, rows].T * 255).astype(np.uint8)]


@dataclass(frozen=True, slots=True)
class Film:
    """Some frames of a film as uint8 [h, w, 3], and what its header says."""

    frames: list[NDArray[np.uint8]]
    times: list[float]
    width: int
    height: int
    seconds: float
    rate: float
    codec: str


def film(blob: bytes | memoryview, count: int = 1, side: int = 320) -> Film | None:
    """`count` frames spread over a film, none larger than `side`; None where PyAV is absent or cannot read it."""
    if not can_decode():
        return None
    import av

    try:
        with av.open(io.BytesIO(blob)) as file:
            stream = next((one for one in file.streams if one.type == "video"), None)
            if stream is None:
                return None
            stream.thread_type = "AUTO"
            seconds = float(file.duration) / 1e6 if file.duration else 0.0
            scale = min(1.0, side / max(stream.width, stream.height, 1))
            size = max(2, int(stream.width * scale)), max(2, int(stream.height * scale))
            frames: list[NDArray[np.uint8]] = []
            times: list[float] = []
            for at in range(count):
                wanted = seconds * (at + 0.5) / count
                if at or count == 1:
                    file.seek(int(wanted * 1e6), backward=True)
                frame = _frame_at(file, stream, wanted)
                if frame is None:
                    break
                frames.append(frame.reformat(*size, format="rgb24").to_ndarray())
                times.append(round(float(frame.time or 0), 3))
            rate = float(stream.average_rate or 0)
            return Film(frames, times, stream.width, stream.height, seconds, rate, str(stream.codec_context.name))
    except (av.FFmpegError, ValueError, OSError, OverflowError):
        return None


def _frame_at(file: Any, stream: Any, wanted: float) -> Any:
    """The first frame at or after `wanted` seconds, looking at no more than 64; the last one looked at where there is none."""
    frame = None
    for number, frame in enumerate(file.decode(stream)):
        if (frame.time or 0) >= wanted - 1e-6 or number > 64:
            break
    return frame
