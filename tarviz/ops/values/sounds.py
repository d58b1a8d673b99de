"""Sound from bytes as numbers [samples, channels], resampled, and what models are fed of it: power and mel spectrograms."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tarviz.model.config import options
from tarviz.model.errors import DataError, LimitError, require
from tarviz.model.types import Buffer
from tarviz.ops.values.av_files import AV_TIME_BASE, av_file

SOUNDS = (
    "wav", "flac", "mp3", "ogg", "oga", "opus", "m4a", "aac", "aif", "aiff", "aifc", "wma", "au", "amr", "caf", "w64", "rf64", "voc", "sph",
)  # fmt: skip
MOST_RATE = 768_000
_UNKNOWN = 2**63 - 1  # frames of a FLAC that was written into a pipe, in libsndfile's words
_ENDLESS = 0x7FFF_0000  # bytes: of what goes into a pipe FFmpeg says 0xffffffff, SoX 0x7ffff024
_QUIETEST = 1e-10  # librosa.power_to_db, `amin`


@dataclass(frozen=True, slots=True)
class Heard:
    """Sound as float32 [samples, channels] in −1 … 1, and samples a second; `length` of the whole file in seconds, and how it is coded."""

    samples: NDArray[np.float32]
    rate: int
    length: float = 0
    codec: str = ""


def decode_sound(data: Buffer, *, rate: int | None = None, mono: bool = False, start: float = 0, seconds: float | None = None) -> Heard:
    """The sound of a file: by soundfile where it can, else by PyAV (extra `media`).

    `start` and `seconds` read that part alone, as much of it as there is; `mono` is the mean of the channels; `rate` resamples (soxr,
    its high quality).

    Errors: `E_MISSING_PACKAGE`, `E_DECODE`, `E_LIMIT` for more than the option `max_member_bytes`.
    """
    heard = _by_soundfile(data, start, seconds) or _by_av(data, start, seconds)
    samples = heard.samples.mean(axis=1, keepdims=True, dtype=np.float32) if mono else heard.samples
    return resample(replace(heard, samples=samples), rate)


def resample(heard: Heard, rate: int | None) -> Heard:
    """The sound at `rate` samples a second; None leaves it. `E_MISSING_PACKAGE` without soxr (extra `media`)."""
    if rate is None or rate == heard.rate:
        return heard
    soxr = require("soxr", "another sample rate", "media")
    samples = np.ascontiguousarray(soxr.resample(heard.samples, heard.rate, rate), np.float32)
    return replace(heard, samples=samples, rate=rate)


def _by_soundfile(data: Buffer, start: float, seconds: float | None) -> Heard | None:
    """None for what soundfile does not know: PyAV may."""
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: no libsndfile for this machine
        return None
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            if file.frames == _UNKNOWN:
                return None
            first = min(round(start * file.samplerate), file.frames)
            count = file.frames - first if seconds is None else min(round(seconds * file.samplerate), file.frames - first)
            _check_size(count, file.channels)
            _check_whole(data)
            lead = min(first, file.samplerate) if file.format == "MP3" else 0  # its frames need some before them: libsndfile reads none
            if first:
                file.seek(first - lead)
            samples = file.read(lead + count, dtype="float32", always_2d=True)[lead:]
            whole = file.frames if len(samples) == count else first + len(samples)  # an MP3 that was cut says how long it was
            return Heard(samples, file.samplerate, whole / file.samplerate, f"{file.format} {file.subtype}".lower())
    except (soundfile.LibsndfileError, RuntimeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        return None


def _check_whole(data: Buffer) -> None:
    """`E_DECODE` for a WAV or an AIFF that is shorter than it says. What was written into a pipe says 0 or as much as there can be; some
    count the eight bytes before the size, too."""
    order: Literal["little", "big"] = "little" if bytes(data[:4]) == b"RIFF" else "big"
    said = int.from_bytes(data[4:8], order) if bytes(data[:4]) in (b"RIFF", b"RIFX", b"FORM") else 0
    if len(data) + 1 < said < _ENDLESS:
        raise DataError(f"the sound is cut short: {said + 8} bytes are said, {len(data)} are there.", code="E_DECODE")


def _by_av(data: Buffer, start: float, seconds: float | None) -> Heard:
    with av_file(data, "sound") as (file, stream):
        rate, channels = int(stream.rate or 0), int(stream.codec_context.channels or 1)
        if not 0 < rate <= MOST_RATE:
            raise DataError(f"its sample rate is {rate}.", code="E_DECODE")
        samples = _frames(file, stream, start, seconds, rate, channels)
        length = file.duration / AV_TIME_BASE if file.duration else len(samples) / rate
        return Heard(samples, rate, length, str(stream.codec_context.name))


def _frames(file: Any, stream: Any, start: float, seconds: float | None, rate: int, channels: int) -> NDArray[np.float32]:
    import av

    first = round(start * rate)
    last = None if seconds is None else first + round(seconds * rate)
    begins = 0.0
    if start > 1:  # the clock of a file need not begin at 0: hours before, where it was cut out of a broadcast
        begins = next((float(frame.time or 0) for frame in file.decode(stream)), 0.0)
        file.seek(int((start - 0.5 + begins) / stream.time_base), stream=stream)
    plain = av.AudioResampler(format="fltp")
    parts: list[NDArray[np.float32]] = []
    at: int | None = None
    kept = 0
    for frame in file.decode(stream):
        for piece in plain.resample(frame):
            if at is None:
                at = round((float(piece.time or 0) - begins) * rate) if start > 1 else 0
            values = piece.to_ndarray()
            begin, end = max(first - at, 0), values.shape[1] if last is None else min(values.shape[1], last - at)
            at += values.shape[1]
            if end > begin:
                parts.append(values[:, begin:end])
                kept += end - begin
                _check_size(kept, channels)
        if last is not None and at is not None and at >= last:
            break
    joined = np.concatenate(parts, axis=1) if parts else np.zeros((channels, 0), np.float32)
    return np.ascontiguousarray(joined.T, np.float32)


def _check_size(samples: int, channels: int) -> None:
    if samples * channels * 4 > options().max_member_bytes:
        raise LimitError(
            f"{samples} samples of {channels} channels are more than the limit.",
            hint="The option max_member_bytes sets it; seconds= reads a part.",
        )


def power_spectrogram(samples: NDArray[Any], *, size: int, hop: int) -> NDArray[np.float32]:
    """The power of each frequency [frames, size // 2 + 1, channels] as float32, a frame every `hop` samples of [samples, channels].

    Frames of `size` samples stand around their place, zeros beyond the ends, under a periodic Hann window: what
    `librosa.stft(y, n_fft=size, hop_length=hop)` gives, squared.
    """
    padded = np.pad(samples, ((size // 2, size // 2), (0, 0)))
    if len(padded) < size:
        padded = np.pad(padded, ((0, size - len(padded)), (0, 0)))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size, axis=0)[::hop]  # [frames, channels, size]
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)).astype(np.float32)
    spectrum = np.fft.rfft(frames * window, axis=2)
    return np.ascontiguousarray((spectrum.real**2 + spectrum.imag**2).transpose(0, 2, 1), np.float32)


@lru_cache(16)
def mel_bands(rate: int, size: int, bands: int, low: float, high: float) -> NDArray[np.float32]:
    """How much of each frequency goes into each band, float32 [size // 2 + 1, bands]: Slaney's scale, each triangle of one area.

    Source: librosa.filters.mel, `htk=False, norm="slaney"`.
    """
    edges = _hertz(np.linspace(_mels(low), _mels(high), bands + 2))
    frequencies = np.linspace(0, rate / 2, size // 2 + 1)
    rising = (frequencies[:, None] - edges[:-2]) / np.diff(edges)[:-1]
    falling = (edges[2:] - frequencies[:, None]) / np.diff(edges)[1:]
    return np.asarray(np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2])), np.float32)


def decibels(power: NDArray[np.float32]) -> NDArray[np.float32]:
    """10 log10 of a power, no less than −100."""
    return np.asarray(10 * np.log10(np.maximum(power, _QUIETEST)), np.float32)


# Slaney's mel scale: straight up to 1 000 Hz (15 mel), 27 steps to each factor of 6.4 above. Source: librosa.core.convert.
_STEP, _BEND, _GROWTH = 200 / 3, 1000.0, np.log(6.4) / 27


def _mels(hertz: float) -> float:
    return float(hertz / _STEP if hertz < _BEND else _BEND / _STEP + np.log(hertz / _BEND) / _GROWTH)


def _hertz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
    bend = _BEND / _STEP
    return np.where(mels < bend, mels * _STEP, _BEND * np.exp(_GROWTH * (mels - bend)))
