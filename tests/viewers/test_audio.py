"""Sound: length and waveform."""

from __future__ import annotations

import io
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
