"""Panels: as a message whole, as text whole, and trees that are cut."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import LimitError
from tarviz.viewers.panel import (
    MAX_PREVIEW_BYTES,
    Audio,
    Control,
    Frames,
    Hex,
    Image,
    Meta,
    Note,
    Pairs,
    Panel,
    Plot,
    Points,
    Table,
    Text,
    Tree,
    Turns,
    Video,
    node,
    node_text,
)

TURNED = "a\u202eb"
PANEL = Panel(
    f"summary {TURNED}",
    [
        Text(f"one\n{TURNED}", False, "image/svg+xml", b"<svg>"),
        Image(b"png", "image/png", 3, 2, TURNED, b"", "uint8", 4, ("void", TURNED)),
        Tree(node({"a": [1, TURNED], "b": None}), "json"),
        Table((TURNED, "n"), ((TURNED, "1"),), (1,)),
        Audio("audio/wav"),
        Video("video/mp4"),
        Frames(b"jpg", "image/jpeg", (0.5, 1.25)),
        Turns((("user", TURNED),), 3),
        Points(b"places", b"colours", 7),
        Plot("lines", (("y", (1.0000004, math.nan, math.inf, 2)),), "label", 5),
        Hex(),
        Note(TURNED, "warn"),
    ],
    [("size", TURNED)],
    [Control("as", "shown as", "cloud", choices=("cloud", "lines")), Control("page", "page", 2, 9)],
    "text",
)
SPELLED = "a\\u202eb"


def test_a_message_has_every_block_and_the_buffers_behind_those_there_are():
    message, buffers = PANEL.to_message([b"before"])

    assert [b"before", b"<svg>", b"png", b"jpg", b"places", b"colours"] == buffers
    assert {
        "summary": f"summary {SPELLED}",
        "facts": [["size", SPELLED]],
        "viewer": "text",
        "controls": [
            {"name": "as", "label": "shown as", "value": "cloud", "high": 0, "choices": ("cloud", "lines")},
            {"name": "page", "label": "page", "value": 2, "high": 9, "choices": ()},
        ],
        "blocks": [
            {"type": "text", "text": f"one\n{SPELLED}", "numbered": False, "preview": "image/svg+xml", "data": {"buffer": 1}},
            {
                "type": "image", "data": {"buffer": 2}, "mime": "image/png", "width": 3, "height": 2, "label": SPELLED, "dtype": "uint8",
                "step": 4, "names": ["void", SPELLED],
            },
            {"type": "tree", "root": ["o", [["a", ["a", [["n", "1"], ["s", SPELLED, 3]], 0]], ["b", ["k", "null"]]], 0], "ext": "json"},
            {"type": "table", "columns": [SPELLED, "n"], "rows": [[SPELLED, "1"]], "right": [1]},
            {"type": "audio", "mime": "audio/wav"},
            {"type": "video", "mime": "video/mp4"},
            {"type": "frames", "data": {"buffer": 3}, "mime": "image/jpeg", "times": [0.5, 1.25]},
            {"type": "turns", "turns": [["user", SPELLED]], "left": 3},
            {"type": "points", "places": {"buffer": 4}, "colours": {"buffer": 5}, "total": 7},
            {"type": "plot", "kind": "lines", "series": [["y", [1.0, None, None, 2]]], "label": "label", "mark": 5},
            {"type": "hex"},
            {"type": "note", "text": SPELLED, "tone": "warn"},
        ],
    } == message  # fmt: skip
    assert [] == Panel("").to_message()[1]


def test_a_panel_is_text_for_a_terminal():
    shown = str(PANEL).splitlines()

    assert [True, True] == [line.startswith(begin) for line, begin in zip(shown, ("summary a", "size: a"), strict=False)]
    assert ["one", '{"a": [1, "a\\u202eb"], "b": null}', "user: "] == [shown[2], shown[4], shown[7][:6]]
    assert 9 == len(shown)
    assert 41 == len(str(Panel("s", [Text("line\n" * 99)])).splitlines())
    assert 22 == len(str(Panel("s", [Table(("n",), (("1",),) * 99)])).splitlines())


class TestTrees:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("x", ("s", "x", 1)),
            ("x" * 2001, ("s", "x" * 2000, 2001)),
            (b"abc", ("k", "3 bytes")),
            (None, ("k", "null")),
            (True, ("k", "true")),
            (1.5, ("n", "1.5")),
            ((1, 2), ("a", (("n", "1"), ("n", "2")), 0)),
            ({"a": {}}, ("o", (("a", ("o", (), 0)),), 0)),
            (Pairs([("a", 1), ("a", 2)]), ("o", (("a", ("n", "1")), ("a", ("n", "2"))), 0)),
            ({5: 1, "y" * 2001: 2}, ("o", (("5", ("n", "1")), ("y" * 2000, ("n", "2"))), 0)),
        ],
    )
    def test_a_value_is_nested_tuples(self, value, expected):
        assert expected == node(value)

    def test_of_a_large_tree_so_many_nodes_are_kept_and_the_others_counted(self):
        assert ("a", (("n", "0"), ("n", "1")), 8) == node(list(range(10)), max_nodes=3)
        assert ("a", (("a", (("n", "1"), ("n", "2")), 1),), 2) == node([[1, 2, 3], [4], 5], max_nodes=4)
        assert ("o", (("a", ("n", "1")),), 1) == node({"a": 1, "b": 2}, max_nodes=2)
        assert 4999 == len(node([0] * 9999)[1])

    @pytest.mark.parametrize(
        ("inside", "last"), [(lambda value: [value], ("a", (), 1)), (lambda value: {"a": value}, ("o", (), 1))], ids=["list", "object"]
    )
    def test_of_a_deep_tree_61_levels_are_kept(self, inside, last):
        value: object = 7
        for _ in range(100):
            value = inside(value)
        found, levels = node(value), 0
        while found[1]:
            found, levels = found[1][0] if found[0] == "a" else found[1][0][1], levels + 1

        assert (61, last) == (levels, found)

    @pytest.mark.parametrize(
        ("value", "limit", "text"),
        [
            ({"a": [1, None], "b": "x"}, 400, '{"a": [1, null], "b": "x"}'),
            ("abcdef", 8, '"abcdef"'),
            ("abcdef", 7, '"abcde…'),
            ("x" * 2001, 3000, '"' + "x" * 2000 + '…"'),
            ([1, 2, 3], 4, "[1,…"),
            ({}, 9, "{}"),
        ],
    )
    def test_a_tree_is_one_line_of_so_many_characters(self, value, limit, text):
        assert text == node_text(node(value), limit)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text("ab é\n\r\t"),
            lambda inner: st.lists(inner) | st.dictionaries(st.text("ab\n"), inner),
            max_leaves=12,
        ),
        st.integers(1, 60),
    )
    def test_a_line_is_what_json_writes_or_its_beginning(self, value, limit):
        whole = json.dumps(value, ensure_ascii=False)

        assert (whole if len(whole) <= limit else whole[: limit - 1] + "…") == node_text(node(value), limit)

    def test_what_was_cut_is_said_in_the_line(self):
        assert "[0, 1, …]" == node_text(node(list(range(9)), max_nodes=3))
        assert '{"a": 1, …}' == node_text(node({"a": 1, "b": 2}, max_nodes=2))


@pytest.mark.parametrize(("size", "refused"), [(MAX_PREVIEW_BYTES, False), (MAX_PREVIEW_BYTES + 1, True)])
def test_what_unpacks_to_too_much_is_refused(size, refused):
    if not refused:
        return Meta().check_unpacked(size)
    with pytest.raises(LimitError, match=str(size)):
        Meta().check_unpacked(size)
    return None
