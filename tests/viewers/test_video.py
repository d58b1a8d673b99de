"""Films: known by their boxes."""

from __future__ import annotations

import io
import struct
import sys
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

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


def large(size: int, payload: bytes) -> bytes:
    """A box whose size stands behind its name, in 64 bits."""
    return struct.pack(">I4sQ", 1, b"mdat", size) + payload


HEAD = box(b"ftyp", b"isom")


@pytest.fixture
def alone(monkeypatch):
    """As if PyAV were not installed."""
    monkeypatch.setitem(sys.modules, "av", None)


@pytest.mark.usefixtures("alone")
class TestBoxes:
    @pytest.mark.parametrize(
        "blob",
        [
            HEAD + large(24, bytes(8)),
            HEAD + large(16, b""),
            HEAD + struct.pack(">I4s", 0, b"mdat") + bytes(9),  # to the end
            HEAD + bytes(7),
            HEAD + box(b"free", b"") * 80 + struct.pack(">I", 7) * 2,  # so many are not looked at
        ],
    )
    def test_of_any_size_are_one_after_the_other(self, blob):
        panel = viewers.view(blob, viewers.Meta("mp4"))

        assert None is panel.error
        assert f"mp4, {len(blob):,} bytes" == panel.summary
        assert [viewers.Video("video/mp4")] == panel.blocks
        assert [("format", "mp4"), ("size", f"{len(blob):,} bytes")] == panel.facts
        assert f"▶ mp4, {len(blob):,} bytes" == viewers.tile(blob, viewers.Meta("mp4"))

    @pytest.mark.parametrize(
        ("behind", "size"),
        [
            (large(25, bytes(8)), "25"),
            (large(16, b"")[:15], "1"),
            (large(7, b""), "7"),
            (struct.pack(">I4s", 7, b"mdat"), "7"),
            (struct.pack(">I4s", 9, b"mdat"), "9"),
            (struct.pack(">I4s", 1 << 31, b"mdat") + bytes(99), "2,147,483,648"),
        ],
    )
    def test_that_end_behind_the_file_are_broken(self, behind, size):
        for before in (HEAD, HEAD + box(b"free", b"abc")):
            panel = viewers.view(before + behind, viewers.Meta("mp4"))

            assert f"E_DECODE: .mp4 is a broken MP4: a box of {size} bytes at byte {len(before)}." == panel.summary


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("ext", "blob", "kind", "mime"),
    [
        ("webm", b"\x1aE\xdf\xa3 film", "webm", "video/webm"),
        ("mkv", b"\x1aE\xdf\xa3 film", "webm", "video/webm"),
        ("left.avi", b"RIFF film", "avi", "video/x-msvideo"),
        ("mpg", b"\0\0\x01\xba film", "mpg", None),
        ("mov", HEAD, "mp4", "video/mp4"),
    ],
)
def test_a_film_is_told_by_its_bytes_then_by_its_name(ext, blob, kind, mime):
    panel = viewers.view(blob, viewers.Meta(ext), as_="video")

    assert f"{kind}, {len(blob)} bytes" == panel.summary
    assert ([viewers.Video(mime)] if mime else []) == panel.blocks
    assert "E_DECODE" == viewers.view(b"RIFF film", viewers.Meta("mp4")).error.code


@pytest.mark.parametrize(("side", "size"), [(96, (96, 64)), (95, (48, 32)), (48, (48, 32)), (47, (24, 16))])
def test_a_tile_is_no_larger_than_its_side(side, size):
    pytest.importorskip("av", reason="PyAV is in the extra `media`")

    assert size == Image.open(io.BytesIO(viewers.tile(WHOLE, viewers.Meta("mp4"), side))).size


def test_a_tile_is_the_frame_in_the_middle():
    pytest.importorskip("av", reason="PyAV is in the extra `media`")
    tile = Image.open(io.BytesIO(viewers.tile(WHOLE, viewers.Meta("mp4"), 48)))
    strip = next(block for block in viewers.view(WHOLE, viewers.Meta("mp4")).blocks if isinstance(block, Frames))

    assert (48, 32) == tile.size
    assert (6 * 96, 64) == Image.open(io.BytesIO(strip.data)).size
    assert 100 < np.asarray(tile).mean() < 150
