"""Class numbers: name, place, what is none."""

from __future__ import annotations

from typing import ClassVar

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta


class TestCls(ViewerTests):
    viewer = "cls"
    good: ClassVar = {"cls": b" 7\n", "index": b"-3", "label": b"cat"}
    bad: ClassVar = {"cls": b"cat", "cls2": b"9" * 10_000, "count": b"1_0"}

    def test_the_name_and_the_place_in_the_histogram_are_shown(self):
        meta = Meta("cls", options={"classes": ["cat", "dog"], "histogram": {"1": 30, "0": 10}})
        panel = viewers.view(b"1", meta)

        assert "1 dog" == panel.summary
        assert ("records of this class", "30 of 40 sampled") in panel.facts
