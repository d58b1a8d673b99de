"""What stands beside a record's main field, part by part, and what is only named."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tarviz.widgets.browse.record_pane import card


def row(**sizes):
    return SimpleNamespace(sizes={name.replace("_", "."): size for name, size in sizes.items()})


@pytest.mark.parametrize(
    ("sizes", "main", "shown", "named"),
    [
        ({"jpg": 9, "cls": 1, "txt": 3, "json": 9}, "jpg", [("text", "txt"), ("text", "cls"), ("data", "json")], []),
        ({"jpg": 9, "png": 9, "cls": 1}, "png", [("picture", "jpg"), ("text", "cls")], []),
        ({"jpg": 9, "txt": 4 << 20, "json": (4 << 20) + 1}, "jpg", [("text", "txt")], ["json"]),
        ({"jpg": 9, "mp4": 5 << 20}, "jpg", [("sound", "mp4")], []),
        ({"jpg": 9}, "jpg", [], []),
    ],
)
def test_each_field_has_its_part(sizes, main, shown, named):
    found = card.parts(row(**sizes), main)

    assert (sorted(shown), named) == (sorted(found[0]), found[1])
    order = ["picture", "text", "sound", "data", "array"]
    assert [part for part, _ in found[0]] == sorted((part for part, _ in found[0]), key=order.index)


def test_of_one_part_only_so_many_are_shown():
    found, named = card.parts(row(**{f"p{number:02d}_png": 9 for number in range(12)}), "p03.png")

    assert [("picture", f"p{number:02d}.png") for number in (0, 1, 2, 4, 5, 6, 7, 8)] == found
    assert ["p09.png", "p10.png", "p11.png"] == named
    assert {"picture": 8, "array": 6, "sound": 3, "text": 6, "data": 3} == card.MOST
