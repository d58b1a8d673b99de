"""JSON: every digit, repeated names, lines, depth."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest

from tarviz import viewers
from tarviz.testing.viewers import ViewerTests
from tarviz.viewers import Meta, Text, Tree, Turns
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


def tile(value: object) -> str:
    return viewers.tile(json.dumps(value).encode(), Meta("json"))


class TestTile:
    def test_a_text_is_shown_to_its_400th_character(self):
        assert "x" * 400 == tile({"caption": "x" * 401})
        assert "x" * 399 == tile({"id": 1, "caption": "x" * 399})

    def test_a_talk_is_shown_without_what_the_system_says(self):
        talk = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "y" * 500}]

        assert ("user: hi\nassistant: " + "y" * 500)[:400] == tile({"messages": talk})
        assert '{"messages": [{"role": "system", "content": "be kind"}]}' == tile({"messages": talk[:1]})

    def test_anything_else_is_its_first_line(self):
        assert '{"a": [0, 1], "text": 5}' == tile({"a": [0, 1], "text": 5})
        assert 200 == len(tile([1000 + at for at in range(99)]))
        assert '{"a": 1}\n[' == viewers.tile(b'{"a": 1}\n[', Meta("jsonl"))


class TestSaid:
    @pytest.mark.parametrize(
        ("value", "talk"),
        [
            ([{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], [("human", "a"), ("gpt", "b")]),
            ({"conversations": [{"speaker": "A", "text": "a"}]}, [("A", "a")]),
            ({"dialog": [{"author": "A", "utterance": "a"}], "id": 5}, [("A", "a")]),
            ({"chat": [{"role": "user", "message": {"a": 1}}]}, [("user", '{"a": 1}')]),
            (
                [{"role": "user", "content": [{"type": "text", "text": "what"}, {"type": "image_url"}, {}, "x"]}],
                [("user", "what\n[image_url]\n[part]\n[part]")],
            ),
            ([{"role": "user"}], None),
            ([{"content": "a"}], None),
            ([{"role": 5, "content": "a"}], None),
            ([{"role": "user", "content": "a"}, 7], None),
            ({"messages": []}, None),
        ],
    )
    def test_a_talk_is_turns(self, value, talk):
        blocks = viewers.view(json.dumps(value).encode(), Meta("json")).blocks

        assert ([tuple(talk)] if talk else []) == [block.turns for block in blocks if isinstance(block, Turns)]

    def test_of_a_long_talk_the_first_turns_are_shown(self):
        talk = [{"role": "user", "content": str(at)} for at in range(202)]
        (turns, tree) = viewers.view(json.dumps(talk).encode(), Meta("json")).blocks

        assert (200, 2) == (len(turns.turns), turns.left)
        assert isinstance(tree, Tree)

    @pytest.mark.parametrize(("text", "is_shown"), [("x" * 81, True), ("x" * 80, False), ("a\nb", True), ("", False)])
    def test_a_long_text_is_shown_as_text(self, text, is_shown):
        blocks = viewers.view(json.dumps({"id": "z" * 99, "body": text}).encode(), Meta("json")).blocks

        assert ([Text(text, numbered=False)] if is_shown else []) == blocks[:-1]

    def test_what_is_in_it_is_counted(self):
        assert [("names", "2")] == viewers.view(b'{"a": 1, "b": 2}', Meta("json")).facts
        assert [("items", "9999")] == viewers.view(json.dumps([0] * 9999).encode(), Meta("json")).facts
        assert [] == viewers.view(b"5", Meta("json")).facts


class TestLimits:
    def test_a_very_large_one_is_not_read(self):
        most = 16 << 20
        panel = viewers.view(b"[" + b" " * (most - 1) + b"]", Meta("json"))

        assert "E_LIMIT: .json has 16,777,217 bytes; the tree shows up to 16,777,216." == panel.summary
        assert "[]" == viewers.view(b"[" + b" " * (most - 2) + b"]", Meta("json")).summary
        assert 4096 == len(panel.blocks[1].text)

    @pytest.mark.parametrize(("count", "said"), [(400, "9" * 400), (401, "9" * 40 + "… (401 digits)")])
    def test_a_number_of_very_many_digits_is_cut(self, count, said):
        assert ("n", said) == viewers.view(b"9" * count, Meta("json")).blocks[-1].root

    def test_of_very_many_lines_the_first_thousand_are_looked_at(self):
        panel = viewers.view(b'{"a": 1}\n' * 1100 + b"broken\n" * 9, Meta("jsonl"))

        assert "1109 lines" == panel.summary
        assert [("lines", "1109")] == panel.facts
        assert 1 == len(panel.blocks)
        assert "1000 of 1000 lines are not JSON." == viewers.view(b"x\n" * 1100, Meta("jsonl")).blocks[1].text
