"""Films: known by their boxes."""

from __future__ import annotations

from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest

from tarviz import viewers
from tarviz.samples import media
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Frames
from tests.viewers.payloads import box

FRAMES = [np.full((64, 96, 3), 16 * at, np.uint8) for at in range(16)]
WHOLE = media.film(FRAMES) if find_spec("av") else box(b"ftyp", b"isom") + box(b"mdat", bytes(32))


class TestVideo(ViewerTests):
    viewer = "video"
    good: ClassVar = {"mp4": WHOLE}
    bad: ClassVar = {"mp4": b"\x00\x00\x00\x18ftypmp42\xff\xff", "webm": b"<html>"}

    def test_frames_are_those_of_their_times(self):
        pytest.importorskip("av", reason="PyAV is in the extra `media`")
        panel = self.panel("mp4", WHOLE)
        strip = next(block for block in panel.blocks if isinstance(block, Frames))

        assert "2.00 s, 96×64, h264" == panel.summary
        assert (0.167, 0.5, 0.833, 1.167, 1.5, 1.833) == strip.times

    def test_what_holds_no_film_is_damaged(self):
        pytest.importorskip("av", reason="PyAV is in the extra `media`")
        error = viewers.refusal(box(b"ftyp", b"isom") + box(b"mdat", bytes(32)), viewers.Meta("mp4"))

        assert error is not None
        assert "E_DECODE" == error.code
