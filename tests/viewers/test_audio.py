"""Sound: length and waveform."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tarviz import viewers
from tarviz.looks import sound as spectra
from tarviz.testing.viewers import ViewerTests
from tests.viewers.payloads import sound


class TestAudio(ViewerTests):
    viewer = "audio"
    good: ClassVar = {
        "wav": sound(),
        "low.wav": sound(width=1),
        "flac": b"fLaC" + bytes(40),
        "mp3": b"ID3" + bytes(40),
        "ogg": b"OggS" + bytes(40),
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
