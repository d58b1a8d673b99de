"""Class numbers: name, place, what is none."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta, Panel, Plot, Text


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

    def test_a_class_is_shown_whole(self):
        expected = Panel(
            "1 dog",
            [Text("1 dog", numbered=False), Plot("bars", (("records", (30.0, 10.0)),), "records per class, most frequent first", 0)],
            [("class", "1"), ("name", "dog"), ("records of this class", "30 of 40 sampled"), ("place by frequency", "1 of 2 classes")],
            viewer="cls",
        )

        assert expected == viewers.view(b"1", Meta("cls", options={"classes": ["cat", "dog"], "histogram": {"1": 30, "0": 10}}))
        assert Panel("7", [Text("7", numbered=False)], [("class", "7")], viewer="cls") == viewers.view(b"7", Meta("cls"))

    def test_a_class_too_rare_to_be_drawn_is_counted_all_the_same(self):
        counts = {str(number): 1000 - number for number in range(400)}
        panel = viewers.view(b"399", Meta("cls", options={"histogram": counts}))

        assert ("place by frequency", "400 of 400 classes") in panel.facts
        assert [None] == [block.mark for block in panel.blocks if isinstance(block, Plot)]

    @pytest.mark.parametrize(
        ("blob", "number"),
        [
            (b"9223372036854775807", 9223372036854775807), (b"-9223372036854775808", -9223372036854775808), (b"9223372036854775808", None),
            (b"-9223372036854775809", None), (b" 5 ".ljust(64), 5), (b" 5 ".ljust(65), None), (b"1_0", None),
            ("٣".encode(), None), (b"", None),
        ],
    )  # fmt: skip
    def test_a_number_is_decimal_and_within_64_bits(self, blob, number):
        panel = viewers.view(blob, Meta("count"))

        assert (None if number is None else str(number)) == dict(panel.facts).get("class")
        assert (number is None) is (panel.error is not None)

    @pytest.mark.parametrize(("number", "name"), [(b"0", "0 cat"), (b"1", "1 dog"), (b"2", "2"), (b"-1", "-1")])
    def test_a_number_beyond_the_names_has_none(self, number, name):
        assert name == viewers.view(number, Meta("cls", options={"classes": ["cat", "dog"]})).summary

    @pytest.mark.parametrize(
        ("ext", "blob", "is_shown"),
        [
            ("cls", b"cat", True), ("cls", b"c" * 1000, True), ("cls", b"c" * 1001, False), ("cls", b"?", False), ("cls", b"c\0", False),
            ("label", b"? " * 900, True), ("id", b"\xff", True),
        ],
    )  # fmt: skip
    def test_a_name_in_the_place_of_a_number_is_shown(self, ext, blob, is_shown):
        panel = viewers.view(blob, Meta(ext))

        assert is_shown is (panel.error is None)
        if is_shown:
            whole = blob[:1000].decode("utf-8", "replace").strip()
            assert (whole[:80], [Text(whole, numbered=False)]) == (panel.summary, panel.blocks)

    def test_the_last_class_that_is_drawn_is_marked(self):
        counts = {str(number): 1000 - number for number in range(400)}
        marks = [viewers.view(b"%d" % number, Meta("cls", options={"histogram": counts})).blocks[1].mark for number in (0, 255, 256)]

        assert [0, 255, None] == marks
        panel = viewers.view(b"777", Meta("cls", options={"histogram": counts}))
        assert ("records of this class", f"0 of {sum(counts.values()):,} sampled") == panel.facts[-1]
        assert 256 == len(panel.blocks[1].series[0][1])
