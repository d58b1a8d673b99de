"""Sound and film for sample shards: tones and moving scenes, encoded by PyAV (extra `media`); WAV needs nothing."""

from __future__ import annotations

import io
import wave

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import require

RATE = 16_000
NOTES = {"do": 261.63, "re": 293.66, "mi": 329.63, "fa": 349.23, "so": 392.0, "la": 440.0, "ti": 493.88}


def tune(seed: int, seconds: float = 1.5) -> tuple[NDArray[np.int16], str]:
    """Notes played one after the other, int16 [samples] at 16 kHz, and their names as a transcript."""
    random = np.random.default_rng(seed)
    names = [str(name) for name in random.choice(list(NOTES), 5)]
    at = np.arange(int(RATE * seconds / len(names))) / RATE
    fade = np.minimum(1, np.minimum(at, at[::-1]) / 0.02) * np.exp(-1.5 * at)
    tones = [fade * (np.sin(2 * np.pi * NOTES[name] * at) + 0.4 * np.sin(4 * np.pi * NOTES[name] * at)) for name in names]
    return (np.concatenate(tones) * 0.5 * 32767).astype(np.int16), " ".join(names)


def wav(samples: NDArray[np.int16]) -> bytes:
    """Mono 16-bit WAV."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())
    return out.getvalue()


def sound(samples: NDArray[np.int16], kind: str) -> bytes:
    """Mono sound as `flac` or `mp3`."""
    out = io.BytesIO()
    library = require("av", "Writing sound and film", "media")
    with library.open(out, "w", format=kind) as file:
        stream = file.add_stream(kind, rate=RATE, layout="mono")
        frame = library.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
        frame.rate = RATE
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            file.mux(packet)
    return out.getvalue()


def film(frames: list[NDArray[np.uint8]], rate: int = 8) -> bytes:
    """Frames uint8 [h, w, 3] (even sides) as an MP4 with H.264."""
    out = io.BytesIO()
    library = require("av", "Writing sound and film", "media")
    with library.open(out, "w", format="mp4") as file:
        stream = file.add_stream("libx264", rate=rate, options={"crf": "30", "threads": "1"})
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for pixels in frames:
            for packet in stream.encode(library.VideoFrame.from_ndarray(pixels, format="rgb24")):
                file.mux(packet)
        for packet in stream.encode():
            file.mux(packet)
    return out.getvalue()
