"""Class numbers: name, place, what is none."""

from __future__ import annotations

from typing import ClassVar

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta, Plot


class TestCls(ViewerTests):
    viewer = "cls"
    good: ClassVar = {"cls2": b" 7\n", "index": b"-3", "label": b"cat", "cls": "Schäferhund, jung".encode()}
    bad: ClassVar = {"cls": b"\xff\xd8cat", "cls2": b"9" * 10_000, "count": b"1_0"}

    def test_the_name_and_the_place_in_the_histogram_are_shown(self):
        meta = Meta("cls", options={"classes": ["cat", "dog"], "histogram": {"1": 30, "0": 10}})
        panel = viewers.view(b"1", meta)

        assert "1 dog" == panel.summary
        assert ("records of this class", "30 of 40 sampled") in panel.facts
        assert ("place by frequency", "1 of 2 classes") in panel.facts
        assert [0] == [block.mark for block in panel.blocks if isinstance(block, Plot)]

    def test_a_class_too_rare_to_be_drawn_is_counted_all_the_same(self):
        counts = {str(number): 1000 - number for number in range(400)}
        panel = viewers.view(b"399", Meta("cls", options={"histogram": counts}))

        assert ("place by frequency", "400 of 400 classes") in panel.facts
        assert [None] == [block.mark for block in panel.blocks if isinstance(block, Plot)]
