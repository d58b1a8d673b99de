"""Sound: a player, and for WAV the loudness over time."""

from __future__ import annotations

import io
import wave

import numpy as np

from tarviz.model.errors import DataError
from tarviz.viewers.panel import Audio, Meta, Note, Panel, Plot
from tarviz.viewers.spark import sparkline

EXTENSIONS = ("wav", "flac", "mp3", "ogg", "oga", "opus", "m4a", "aac")
MAGIC = (b"fLaC", b"ID3", b"OggS")

_MIME = {"wav": "audio/wav", "flac": "audio/flac", "mp3": "audio/mpeg", "ogg": "audio/ogg", "oga": "audio/ogg", "opus": "audio/ogg"}
_MIME |= {"m4a": "audio/mp4", "aac": "audio/aac"}
_BEGINS = {"wav": b"RIFF", "flac": b"fLaC", "ogg": b"OggS", "oga": b"OggS", "opus": b"OggS"}
_TYPES = {1: "u1", 2: "<i2", 4: "<i4"}


def claims(head: bytes) -> bool:
    return head[:4] == b"RIFF" and head[8:12] == b"WAVE"


def view(blob: memoryview, meta: Meta) -> Panel:
    last = meta.ext.rpartition(".")[2]
    begins = bytes(blob[:4])
    kind = last if last in _MIME else {b"RIFF": "wav", b"fLaC": "flac", b"OggS": "ogg"}.get(begins, "mp3")
    if kind in _BEGINS and begins != _BEGINS[kind]:
        raise DataError(f".{meta.ext} does not begin like {kind}.", code="E_DECODE")
    if kind != "wav":
        return Panel(f"{kind}, {len(blob):,} bytes", [Audio(_MIME[kind])], [("format", kind), ("size", f"{len(blob):,} bytes")])
    try:
        return _wav(blob)
    except wave.Error as error:
        # a WAV the wave module does not know (float, A-law): browsers may still play it
        if "unknown format" in str(error):
            return Panel(f"wav, {len(blob):,} bytes", [Audio("audio/wav"), Note(f"No waveform: {error}.")])
        raise DataError(f".{meta.ext} is damaged: {error}.", code="E_DECODE") from error
    except EOFError as error:
        raise DataError(f".{meta.ext} is cut short.", code="E_DECODE") from error


def _wav(blob: memoryview) -> Panel:
    with wave.open(io.BytesIO(blob)) as sound:
        channels, width, rate, frames = sound.getnchannels(), sound.getsampwidth(), sound.getframerate(), sound.getnframes()
        need = frames * channels * width
        if need > len(blob):
            raise DataError(f"The WAV claims {need:,} bytes of sound, and the member has {len(blob):,}.", code="E_DECODE")
        raw = sound.readframes(frames)
    seconds = frames / rate if rate else 0.0
    facts = [("duration", f"{seconds:.2f} s"), ("rate", f"{rate} Hz"), ("channels", str(channels)), ("bits", str(8 * width))]
    panel = Panel(f"{seconds:.2f} s, {rate} Hz, {channels} ch", [Audio("audio/wav")], facts)
    if width in _TYPES and len(raw) >= width * channels:
        samples = np.frombuffer(raw, _TYPES[width], len(raw) // width // channels * channels).reshape(-1, channels)[:, 0].astype(np.float64)
        samples = (samples - 128) / 128 if width == 1 else samples / float(1 << (8 * width - 1))
        edges = np.unique(np.linspace(0, len(samples), min(len(samples), 600) + 1).astype(int)[:-1])
        low, high = np.minimum.reduceat(samples, edges), np.maximum.reduceat(samples, edges)
        panel.blocks.append(Plot("envelope", (("low", tuple(low.tolist())), ("high", tuple(high.tolist()))), "waveform, first channel"))
    return panel


def tile(blob: memoryview, meta: Meta, size: int) -> bytes | str:
    panel = view(blob, meta)
    for block in panel.blocks:
        if isinstance(block, Plot):
            lowest, highest = (np.array(values) for _, values in block.series)
            return sparkline(np.stack([lowest, highest], axis=1).reshape(-1), size)
    return f"♪ {panel.summary}"
