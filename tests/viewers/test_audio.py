"""Sound: length and waveform."""

from __future__ import annotations

import io
import sys
import wave
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest

from tarviz import viewers
from tarviz.looks import sound as spectra
from tarviz.samples import media
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import audio
from tests.viewers.payloads import sound


class TestAudio(ViewerTests):
    viewer = "audio"
    good: ClassVar = {
        "wav": sound(),
        "low.wav": sound(width=1),
        **({kind: media.sound(media.tune(3)[0], kind) for kind in ("flac", "mp3")} if find_spec("av") else {}),
    }
    bad: ClassVar = {"wav": b"RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00", "flac": b"<html>"}

    def test_length_and_waveform_are_shown(self):
        panel = self.panel("wav", sound(1.0))

        assert "1.00 s, 8000 Hz, 2 ch" == panel.summary
        assert "envelope" == panel.blocks[1].kind

    def test_a_tile_is_its_waveform_without_a_spectrogram(self, monkeypatch):
        expected = viewers.tile(sound(1.0), viewers.Meta("wav", "k", "s.tar"), 96)
        monkeypatch.setattr(spectra, "spectrogram", lambda samples: pytest.fail("a tile has no room for it"))

        assert expected == viewers.tile(sound(1.0), viewers.Meta("wav", "k", "s.tar"), 96)
        assert expected.startswith(b"\x89PNG")

    @pytest.mark.parametrize("subtype", ["PCM_24", "FLOAT", "ALAW"])
    def test_a_wav_of_any_kind_has_its_waveform(self, subtype):
        soundfile = pytest.importorskip("soundfile", reason="soundfile is in the extra `media`")
        out = io.BytesIO()
        soundfile.write(out, np.sin(np.arange(8000) / 8)[:, None] / 2, 8000, subtype, format="WAV")
        panel = self.panel("wav", out.getvalue())

        assert "1.00 s, 8000 Hz, 1 ch" == panel.summary
        assert "envelope" == panel.blocks[1].kind


def test_the_middle_of_eight_bits_is_silence():
    """WAV's bytes have no sign: 0 to 255 around 128 (RIFF, "WAVE" form)."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(bytes([128] * 100 + [0, 255]))

    _, samples = audio._wav(memoryview(out.getvalue()), viewers.Meta("wav", "k", "s.tar"))

    assert [0.0] * 100 + [-1.0, 127 / 128] == samples.tolist()


def wave_of(frames: bytes, *, width: int = 2, channels: int = 1, rate: int = 8000) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(frames)
    return out.getvalue()


class TestAlone:
    """Where neither soundfile nor PyAV is installed."""

    @pytest.fixture(autouse=True)
    def alone(self, monkeypatch):
        for package in ("soundfile", "av"):
            monkeypatch.setitem(sys.modules, package, None)

    def test_a_wav_of_whole_numbers_has_its_waveform(self):
        blob = wave_of(np.array([[0, 9], [-32768, 9], [16384, 9], [0, 9]], "<i2").tobytes(), channels=2)
        panel = viewers.view(blob, viewers.Meta("wav"))

        assert "0.00 s, 8000 Hz, 2 ch" == panel.summary
        assert [("duration", "0.00 s"), ("rate", "8000 Hz"), ("channels", "2"), ("bits", "16")] == panel.facts
        assert ["Audio", "Plot", "Image"] == [type(block).__name__ for block in panel.blocks]
        assert (("low", (0.0, -1.0, 0.5, 0.0)), ("high", (0.0, -1.0, 0.5, 0.0))) == panel.blocks[1].series
        assert viewers.tile(blob, viewers.Meta("wav"), 96).startswith(b"\x89PNG")

    @pytest.mark.parametrize(("width", "frames"), [(3, bytes(12)), (2, b"")])
    def test_one_of_others_or_none_is_played(self, width, frames):
        panel = viewers.view(wave_of(frames, width=width), viewers.Meta("wav"))

        assert [viewers.Audio("audio/wav")] == panel.blocks
        assert ("bits", str(8 * width)) == panel.facts[-1]
        assert viewers.tile(wave_of(frames, width=width), viewers.Meta("wav")).startswith("♪ 0.00 s, 8000 Hz, 1 ch")

    @pytest.mark.parametrize(
        ("blob", "said"),
        [
            (wave_of(bytes(100))[:60], "E_DECODE: The WAV claims 100 bytes of sound, and the member has 60."),
            (wave_of(bytes(100))[:20], "E_DECODE: .wav is damaged: cut short."),
            (b"none", "E_DECODE: .wav does not begin like wav."),
        ],
    )
    def test_a_damaged_one_is_told(self, blob, said):
        assert said == viewers.view(blob, viewers.Meta("wav")).summary

    def test_floats_may_still_be_played(self):
        blob = wave_of(bytes(100)).replace(b"fmt \x10\0\0\0\x01\0", b"fmt \x10\0\0\0\x03\0")
        panel = viewers.view(blob, viewers.Meta("wav"))

        assert f"wav, {len(blob)} bytes" == panel.summary
        assert [viewers.Audio("audio/wav"), viewers.Note("No waveform: unknown format: 3.")] == panel.blocks

    @pytest.mark.parametrize(
        ("ext", "blob", "kind", "mime"),
        [
            ("flac", b"fLaC" + bytes(9), "flac", "audio/flac"),
            ("voice.opus", b"OggS" + bytes(9), "opus", "audio/ogg"),
            ("unknown", b"OggS" + bytes(9), "ogg", "audio/ogg"),
            ("unknown", b"ID3" + bytes(9), "mp3", "audio/mpeg"),
            ("m4a", bytes(9), "m4a", "audio/mp4"),
        ],
    )
    def test_another_sound_is_played_and_the_extra_named(self, ext, blob, kind, mime):
        panel = viewers.view(blob, viewers.Meta(ext), as_="audio")

        assert f"{kind}, {len(blob)} bytes" == panel.summary
        assert viewers.Audio(mime) == panel.blocks[0]
        assert "No waveform: " in panel.blocks[1].text
        assert "tarviz[media]" in panel.blocks[1].text
        assert [("format", kind), ("size", f"{len(blob)} bytes")] == panel.facts


def test_of_a_long_sound_the_extremes_of_600_parts_are_shown():
    values = np.zeros(6000, "<i2")
    values[4005], values[4006] = 32767, -32768
    low, high = (part for _, part in viewers.view(wave_of(values.tobytes()), viewers.Meta("wav")).blocks[1].series)

    assert (600, 600) == (len(low), len(high))
    assert ([400], [400]) == (np.flatnonzero(low).tolist(), np.flatnonzero(high).tolist())
    assert -1.0 == min(low)


def test_of_a_sound_that_is_drawn_in_part_it_is_said():
    soundfile = pytest.importorskip("soundfile", reason="soundfile is in the extra `media`")
    said = []
    for seconds in (120, 121):
        out = io.BytesIO()
        soundfile.write(out, np.zeros(1000 * seconds), 1000, "PCM_16", format="FLAC")
        panel = viewers.view(out.getvalue(), viewers.Meta("flac"))
        said.append([block.text for block in panel.blocks if isinstance(block, viewers.Note)])

    assert [[], ["The pictures show the first 120 s; all of it is played."]] == said
