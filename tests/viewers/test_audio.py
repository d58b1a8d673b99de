"""Sound: length and waveform."""

from __future__ import annotations

from typing import ClassVar

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
