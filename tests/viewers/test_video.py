"""Films: known by their boxes."""

from __future__ import annotations

from typing import ClassVar

from tarviz.testing.viewers import ViewerTests
from tests.viewers.payloads import box


class TestVideo(ViewerTests):
    viewer = "video"
    good: ClassVar = {"mp4": box(b"ftyp", b"isom") + box(b"mdat", bytes(32)), "webm": b"\x1aE\xdf\xa3" + bytes(20)}
    bad: ClassVar = {"mp4": b"\x00\x00\x00\x18ftypmp42\xff\xff", "webm": b"<html>"}
