"""JSON: every digit, repeated names, lines, depth."""

from __future__ import annotations

from typing import ClassVar

from tarviz.testing.viewers import ViewerTests
from tarviz.viewers.panel import node, node_text


class TestJson(ViewerTests):
    viewer = "json"
    good: ClassVar = {
        "json": b'{"a": [1, 2.50, null, true, "x"], "a": 12345678901234567890, "n": NaN, "i": -Infinity}',
        "jsonl": b'{"a": 1}\n\nbroken\n{"a": 2}\n',
    }
    bad: ClassVar = {"json": b"{", "geojson": b"[" * 100_000}

    def test_digits_and_repeated_names_stay(self):
        tree = self.panel("json", self.good["json"]).blocks[0]

        assert '{"a": [1, 2.50, null, true, "x"], "a": 12345678901234567890, "n": NaN, "i": -Infinity}' == node_text(tree.root)

    def test_a_number_of_5000_digits_is_cut(self):
        assert "(5000 digits)" in str(self.panel("json", b'{"b": ' + b"9" * 5000 + b"}"))

    def test_bad_lines_are_counted(self):
        assert "1 of 3 lines are not JSON." == self.panel("jsonl", self.good["jsonl"]).blocks[1].text

    def test_utf16_is_read(self):
        assert '{"ü": 1}' == self.panel("json", '{"ü": 1}'.encode("utf-16")).summary

    def test_wide_trees_are_cut_and_say_how_much(self):
        root = node(list(range(20_000)))

        assert 20_000 == len(root[1]) + root[2]
        assert root[2] > 10_000
