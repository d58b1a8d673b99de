"""Sound: a player, the loudness over time and a spectrogram; formats other than WAV where PyAV is installed (extra `media`)."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.looks import sound
from tarviz.model.errors import DataError
from tarviz.viewers.panel import Audio, Image, Meta, Note, Panel, Plot
from tarviz.viewers.spark import sparkline

EXTENSIONS = ("wav", "flac", "mp3", "ogg", "oga", "opus", "m4a", "aac")
MAGIC = (b"fLaC", b"ID3", b"OggS")

_MIME = {"wav": "audio/wav", "flac": "audio/flac", "mp3": "audio/mpeg", "ogg": "audio/ogg", "oga": "audio/ogg", "opus": "audio/ogg"}
_MIME |= {"m4a": "audio/mp4", "aac": "audio/aac"}
_BEGINS = {"wav": b"RIFF", "flac": b"fLaC", "ogg": b"OggS", "oga": b"OggS", "opus": b"OggS"}
_TYPES = {1: "u1", 2: "<i2", 4: "<i4"}
_NONE: NDArray[Any] = np.zeros(0)


def claims(head: bytes) -> bool:
    return head[:4] == b"RIFF" and head[8:12] == b"WAVE"


def view(blob: memoryview, meta: Meta) -> Panel:
    from PIL import Image as Pil

    from tarviz.viewers.image import encode

    panel, samples = _heard(blob, meta)
    if len(samples):
        low, high = _envelope(samples)
        panel.blocks.append(Plot("envelope", (("low", tuple(low.tolist())), ("high", tuple(high.tolist()))), "waveform, first channel"))
        picture = sound.spectrogram(samples.astype(np.float32))
        label = "spectrogram, low notes at the bottom"
        panel.blocks.append(Image(encode(Pil.fromarray(picture), "PNG"), "image/png", picture.shape[1], picture.shape[0], label))
    return panel


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    panel, samples = _heard(blob, meta)
    return sparkline(np.stack(_envelope(samples), axis=1).reshape(-1), size) if len(samples) else f"♪ {panel.summary}"


def _heard(blob: memoryview, meta: Meta) -> tuple[Panel, NDArray[Any]]:
    """A panel without pictures, and the first channel within −1 … 1; no samples where they cannot be read."""
    last = meta.ext.rpartition(".")[2]
    begins = bytes(blob[:4])
    kind = last if last in _MIME else {b"RIFF": "wav", b"fLaC": "flac", b"OggS": "ogg"}.get(begins, "mp3")
    if kind in _BEGINS and begins != _BEGINS[kind]:
        raise DataError(f".{meta.ext} does not begin like {kind}.", code="E_DECODE")
    if kind != "wav":
        return _decoded(blob, kind)
    try:
        return _wav(blob)
    except wave.Error as error:
        # a WAV the wave module does not know (float, A-law): PyAV may, and browsers may still play it
        if "unknown format" in str(error):
            if sound.can_decode():
                return _decoded(blob, "wav")
            return Panel(f"wav, {len(blob):,} bytes", [Audio("audio/wav"), Note(f"No waveform: {error}.")]), _NONE
        raise DataError(f".{meta.ext} is damaged: {error}.", code="E_DECODE") from error
    except EOFError as error:
        raise DataError(f".{meta.ext} is cut short.", code="E_DECODE") from error


def _decoded(blob: memoryview, kind: str) -> tuple[Panel, NDArray[Any]]:
    found = sound.decode(blob)
    size = ("size", f"{len(blob):,} bytes")
    if found is None:
        why = "" if sound.can_decode() else "The waveform needs PyAV: pip install 'tarviz[media]'."
        return Panel(f"{kind}, {len(blob):,} bytes", [Audio(_MIME[kind]), *([Note(why)] if why else [])], [("format", kind), size]), _NONE
    facts = [
        ("duration", f"{found.seconds:.2f} s"),
        ("rate", f"{found.rate} Hz"),
        ("channels", str(found.channels)),
        ("codec", found.codec),
        size,
    ]
    return Panel(f"{found.seconds:.2f} s, {found.rate} Hz, {found.channels} ch", [Audio(_MIME[kind])], facts), found.samples


def _envelope(samples: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The lowest and the highest of up to 600 parts of the samples."""
    edges = np.unique(np.linspace(0, len(samples), min(len(samples), 600) + 1).astype(int)[:-1])
    return np.minimum.reduceat(samples, edges), np.maximum.reduceat(samples, edges)


def _wav(blob: memoryview) -> tuple[Panel, NDArray[Any]]:
    with wave.open(io.BytesIO(blob)) as file:
        channels, width, rate, frames = file.getnchannels(), file.getsampwidth(), file.getframerate(), file.getnframes()
        need = frames * channels * width
        if need > len(blob):
            raise DataError(f"The WAV claims {need:,} bytes of sound, and the member has {len(blob):,}.", code="E_DECODE")
        raw = file.readframes(frames)
    seconds = frames / rate if rate else 0.0
    facts = [("duration", f"{seconds:.2f} s"), ("rate", f"{rate} Hz"), ("channels", str(channels)), ("bits", str(8 * width))]
    panel = Panel(f"{seconds:.2f} s, {rate} Hz, {channels} ch", [Audio("audio/wav")], facts)
    if width not in _TYPES or len(raw) < width * channels:
        return panel, _NONE
    samples = np.frombuffer(raw, _TYPES[width], len(raw) // width // channels * channels).reshape(-1, channels)[:, 0].astype(np.float64)
    return panel, (samples - 128) / 128 if width == 1 else samples / float(1 << (8 * width - 1))
