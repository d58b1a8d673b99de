"""Sound of many forms: containers, codecs, depths, byte orders, rates, channels, lengths; by soundfile and PyAV."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import av
import numpy as np
import soundfile

from tests.odd.case import REFUSED, Odd, saved

_TIMES = np.arange(2400)[:, None] / 8000
TONE = (0.4 * np.sin(2 * np.pi * np.array([[220, 331, 440, 550, 661, 700, 800, 900]]) * _TIMES)).astype(np.float32)
LOSSY = 1e-4

FORMS = {
    "wav": ("WAV", "PCM_16 PCM_24 PCM_32 PCM_U8 FLOAT DOUBLE ULAW ALAW IMA_ADPCM MS_ADPCM GSM610 G721_32 NMS_ADPCM_16"),
    "flac": ("FLAC", "PCM_S8 PCM_16 PCM_24"),
    "ogg": ("OGG", "VORBIS OPUS"),
    "oga": ("OGG", "VORBIS"),
    "opus": ("OGG", "OPUS"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "aiff": ("AIFF", "PCM_S8 PCM_16 PCM_24 PCM_32 FLOAT DOUBLE ULAW ALAW IMA_ADPCM GSM610"),
    "aif": ("AIFF", "PCM_16"),
    "aifc": ("AIFF", "FLOAT"),
    "au": ("AU", "PCM_S8 PCM_16 PCM_24 FLOAT ULAW ALAW G721_32"),
}
ONE_CHANNEL = ("GSM610", "G721_32", "NMS_ADPCM_16", "NMS_ADPCM_24", "NMS_ADPCM_32")
RATES = (8000, 11025, 16000, 22050, 32000, 44100, 48000, 96000)
OTHERS = {"caf": "CAF", "w64": "W64", "rf64": "RF64", "voc": "VOC", "sph": "NIST"}


def heard(data: bytes) -> Any:
    return soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)[0]


def sound(form: str, subtype: str, samples: Any, rate: int = 16000, **options: Any) -> bytes:
    return saved(soundfile.write, samples, rate, format=form, subtype=subtype, **options)


def sounds() -> Iterator[Odd]:
    for ext, (form, subtypes) in FORMS.items():
        for subtype in subtypes.split():
            channels = 1 if subtype in ONE_CHANNEL else 2
            data = sound(form, subtype, TONE[:, :channels], 8000 if subtype in ONE_CHANNEL else 16000)
            yield Odd(f"{form} {subtype} as {ext}", ext, data, heard(data), near=LOSSY if form in ("OGG", "MP3") else 0)
    for at, rate in enumerate(RATES):
        channels = (1, 2, 3, 4, 5, 6, 7, 8)[at]
        data = sound("WAV", "PCM_16", TONE[:, :channels], rate)
        yield Odd(f"wav of {channels} channels, {rate} Hz", "wav", data, heard(data))
        data = sound("FLAC", "PCM_24", TONE[:, :channels], rate)
        yield Odd(f"flac of {channels} channels, {rate} Hz", "flac", data, heard(data))
    for name, options in (("wavex", {"form": "WAVEX"}), ("rf64", {"form": "RF64"}), ("big endian wav", {"form": "WAV", "endian": "BIG"})):
        data = sound(options.pop("form"), "PCM_16", TONE[:, :2], **options)
        yield Odd(name, "wav", data, heard(data))
    data = sound("AIFF", "PCM_16", TONE[:, :2], endian="LITTLE")
    yield Odd("little endian aiff", "aiff", data, heard(data))
    for rate in (8000, 22050, 44100):
        for channels in (1, 2):
            data = sound("MP3", "MPEG_LAYER_III", TONE[:, :channels], rate)
            yield Odd(f"mp3 of {channels} channels, {rate} Hz", "mp3", data, heard(data), near=LOSSY)
    for length in (0, 1, 7):
        for form, ext in (("WAV", "wav"), ("FLAC", "flac"), ("AIFF", "aiff"))[:: 1 if length else 2]:  # an empty FLAC has no bytes
            data = sound(form, "PCM_16", TONE[:length, :2])
            yield Odd(f"{ext} of {length} samples", ext, data, heard(data))
    for form in ("FLAC", "OGG", "WAV"):
        ext = form.lower()
        data = sound(form, "VORBIS" if form == "OGG" else "PCM_16", TONE[:, :2])
        whole, near = heard(data), LOSSY if form == "OGG" else 0
        yield Odd(f"{ext}, a part", ext, data, whole[800:1600], "start=0.05, seconds=0.05", near)
        yield Odd(f"{ext}, mean of channels", ext, data, whole.mean(axis=1, keepdims=True, dtype=np.float32), "mono=True", near)
    import soxr

    data = sound("WAV", "FLOAT", TONE[:, :2], 16000)
    yield Odd("wav at another rate", "wav", data, soxr.resample(heard(data), 16000, 22050).astype(np.float32), "rate=22050")
    for ext, form in OTHERS.items():
        data = sound(form, "PCM_16", TONE[:, :1])
        yield Odd(f"{form} as {ext}", ext, data, heard(data))
    yield Odd("ircam", "ircam", sound("IRCAM", "ULAW", TONE[:, :1]), REFUSED)


def sounds_by_av() -> Iterator[Odd]:
    for name, ext, codec, form, layout, rate in (
        ("aac", "m4a", "aac", "ipod", "stereo", 16000),
        ("aac, one channel", "m4a", "aac", "ipod", "mono", 44100),
        ("aac, 5.1", "m4a", "aac", "ipod", "5.1", 48000),
        ("alac", "m4a", "alac", "ipod", "stereo", 44100),
        ("adts", "aac", "aac", "adts", "stereo", 22050),
        ("wma 1", "wma", "wmav1", "asf", "stereo", 16000),
        ("wma 2", "wma", "wmav2", "asf", "mono", 44100),
        ("amr", "amr", "libopencore_amrnb", "amr", "mono", 8000),
        ("opus", "opus", "libopus", "ogg", "mono", 48000),
        ("layer 2", "mp3", "mp2", "mp2", "stereo", 32000),
        ("adpcm of flash in wav", "wav", "adpcm_swf", "wav", "mono", 22050),
        ("g726 in wav", "wav", "g726", "wav", "mono", 8000),
        ("mp3 in wav", "wav", "libmp3lame", "wav", "stereo", 22050),
    ):
        data = coded(codec, form, layout, rate)
        yield Odd(name, ext, data, decoded(data), near=LOSSY)


def coded(codec: str, form: str, layout: str, rate: int) -> bytes:
    out = io.BytesIO()
    with av.open(out, "w", format=form) as file:
        stream = file.add_stream(codec, rate=rate, layout=layout)
        if codec.startswith(("wma", "libopencore")):
            stream.bit_rate = 64_000 if codec.startswith("wma") else 12_200
        channels = stream.codec_context.channels
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(TONE[:, :channels].T), format="fltp", layout=layout)
        frame.rate = rate
        own = av.AudioResampler(
            format=stream.codec_context.format, layout=layout, rate=rate, frame_size=stream.codec_context.frame_size or 0
        )
        for piece in (*own.resample(frame), *own.resample(None)):
            file.mux(stream.encode(piece))
        file.mux(stream.encode())
    return out.getvalue()


def decoded(data: bytes) -> Any:
    """All of a file's sound, by PyAV alone."""
    with av.open(io.BytesIO(data)) as file:
        plain = av.AudioResampler(format="fltp")
        parts = [piece.to_ndarray() for frame in file.decode(audio=0) for piece in plain.resample(frame)]
    return np.ascontiguousarray(np.concatenate(parts, axis=1).T)
