"""Sound: a player, the loudness over time and a spectrogram; formats other than WAV with the extra `media`."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.looks import sound
from tarviz.model.errors import DataError, MissingPackageError
from tarviz.ops.values.payloads import kind_of
from tarviz.ops.values.sounds import SOUNDS, decode_sound
from tarviz.viewers.image import drawing
from tarviz.viewers.panel import Audio, Meta, Note, Panel
from tarviz.viewers.spark import envelope_plot, sparkline

EXTENSIONS = SOUNDS

_MIME = {"wav": "audio/wav", "flac": "audio/flac", "mp3": "audio/mpeg", "ogg": "audio/ogg", "oga": "audio/ogg", "opus": "audio/ogg"}
_MIME |= {"m4a": "audio/mp4", "aac": "audio/aac", "aif": "audio/aiff", "aiff": "audio/aiff", "aifc": "audio/aiff", "au": "audio/basic"}
_MIME |= {"wma": "audio/x-ms-wma", "amr": "audio/amr", "sph": "audio/x-nist"}
_MIME |= {"caf": "audio/x-caf", "w64": "audio/x-w64", "rf64": "audio/wav", "voc": "audio/x-voc"}
_BEGINS = {"wav": (b"RIFF", b"RIFX", b"RF64"), "flac": (b"fLaC",), **dict.fromkeys(("ogg", "oga", "opus"), (b"OggS",))}
_TYPES = {1: "u1", 2: "<i2", 4: "<i4"}
_MOST_SECONDS = 120
_MOST_PARTS = 600  # of a waveform
_NONE: NDArray[Any] = np.zeros(0)


def claims(head: bytes) -> bool:
    return kind_of("", head) == "sound"


def view(blob: memoryview, meta: Meta) -> Panel:
    panel, samples = _load(blob, meta)
    if len(samples):
        panel.blocks.append(envelope_plot(samples, _MOST_PARTS, "waveform, first channel"))
        panel.blocks.append(drawing(sound.spectrogram(samples.astype(np.float32)), "spectrogram, low notes at the bottom"))
    return panel


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    panel, samples = _load(blob, meta)
    if not len(samples):
        return f"♪ {panel.summary}"
    return sparkline(samples, size)


def _load(blob: memoryview, meta: Meta) -> tuple[Panel, NDArray[Any]]:
    """A panel without pictures, and the first channel within −1 … 1; no samples where the library for them is not installed."""
    last = meta.ext.rpartition(".")[2]
    begins = bytes(blob[:4])
    kind = last if last in _MIME else {b"RIFF": "wav", b"fLaC": "flac", b"OggS": "ogg"}.get(begins, "mp3")
    if kind in _BEGINS and begins not in _BEGINS[kind] and begins[:3] != b"ID3":  # which some put before a FLAC, too
        raise DataError(f".{meta.ext} does not begin like {kind}.", code="E_DECODE")
    size = ("size", f"{len(blob):,} bytes")
    try:
        found = decode_sound(blob, seconds=_MOST_SECONDS)
    except MissingPackageError as error:
        if kind == "wav":
            return _wav(blob, meta)
        return Panel(
            f"{kind}, {len(blob):,} bytes", [Audio(_MIME[kind]), Note(f"No waveform: {error.hint}")], [("format", kind), size]
        ), _NONE
    channels = found.samples.shape[1]
    facts = [("duration", f"{found.length:.2f} s"), ("rate", f"{found.rate} Hz"), ("channels", str(channels)), ("codec", found.codec), size]
    panel = Panel(f"{found.length:.2f} s, {found.rate} Hz, {channels} ch", [Audio(_MIME[kind])], facts)
    if found.length > _MOST_SECONDS:
        panel.blocks.append(Note(f"The pictures show the first {_MOST_SECONDS} s; all of it is played."))
    return panel, found.samples[:, 0]


def _wav(blob: memoryview, meta: Meta) -> tuple[Panel, NDArray[Any]]:
    """The same by Python's own library, which reads whole numbers alone."""
    try:
        with wave.open(io.BytesIO(blob)) as file:
            channels, width, rate, frames = file.getnchannels(), file.getsampwidth(), file.getframerate(), file.getnframes()
            need = frames * channels * width
            if need > len(blob):
                raise DataError(f"The WAV claims {need:,} bytes of sound, and the member has {len(blob):,}.", code="E_DECODE")
            raw = file.readframes(frames)
    except (wave.Error, EOFError) as error:
        if "unknown format" in str(error):  # float, A-law: browsers may still play it
            return Panel(f"wav, {len(blob):,} bytes", [Audio("audio/wav"), Note(f"No waveform: {error}.")]), _NONE
        raise DataError(f".{meta.ext} is damaged: {str(error) or 'cut short'}.", code="E_DECODE") from error
    seconds = frames / rate if rate else 0.0
    facts = [("duration", f"{seconds:.2f} s"), ("rate", f"{rate} Hz"), ("channels", str(channels)), ("bits", str(8 * width))]
    panel = Panel(f"{seconds:.2f} s, {rate} Hz, {channels} ch", [Audio("audio/wav")], facts)
    if width not in _TYPES or len(raw) < width * channels:
        return panel, _NONE
    samples = np.frombuffer(raw, _TYPES[width], len(raw) // width // channels * channels).reshape(-1, channels)[:, 0].astype(np.float64)
    return panel, (samples - 128) / 128 if width == 1 else samples / float(1 << (8 * width - 1))
