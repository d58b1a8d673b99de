"""Blocks of records as plain dicts: all fields or those that are needed, of records alike and of others, long ones and short ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tarviz
from tarviz.dialects.webdataset.parts.samples import Needs, samples, selected
from tarviz.testing.strategies import Records
from tests.conftest import each_case

ALIKE: Records = [(f"é/{at}", {"jpg": b"j" * at, "cls": b"%d" % at}) for at in range(5)]
OTHERS: Records = [("a", {"jpg": b"1"}), ("b", {"cls": b"2", "seg.png": b""}), ("c", {"cls": b"3", "jpg": b"4"})]
LONG: Records = [(f"k{at}", {"bin": bytes(8192), "cls": bytes(8192)}) for at in range(3)]


@each_case("content", [ALIKE, OTHERS, LONG])
@each_case("place", [None, "/data/a.tar"])
def test_a_sample_is_its_key_where_it_is_from_and_its_fields(make: Callable[..., Path], content: Records, place: str | None) -> None:
    (block,) = tarviz.blocks(str(make(content)))
    more = {} if place is None else {"__local_path__": place}
    found = list(samples(block, "s3://b/a.tar", place))

    assert [{"__key__": key, "__url__": "s3://b/a.tar", **fields, **more} for key, fields in content] == found
    assert {bytes} == {type(sample[ext]) for sample in found for ext in sample if not ext.startswith("__")}
    assert ["__key__", "__url__"] == list(found[0])[:2]


@each_case(
    ("groups", "of"),
    [
        ([("cls",)], [{"cls"}, {"jpg"}, {"cls"}, {"cls"}]),
        ([("jpg", "png"), ("__key__",)], [{"jpg"}, {"jpg"}, {"cls", "seg.png"}, {"jpg"}]),
        ([("gone",)], [{"jpg", "cls"}, {"jpg"}, {"cls", "seg.png"}, {"cls", "jpg"}]),
        ([], [set(), set(), set(), set()]),
    ],
)
def test_what_nobody_needs_is_not_cut_out(make: Callable[..., Path], groups: Any, of: list[set[str]]) -> None:
    """Where a record lacks one, all of its fields are there: the error names them."""
    (alike,), (others,) = (tarviz.blocks(str(make(content, name))) for content, name in ((ALIKE, "a.tar"), (OTHERS, "b.tar")))
    found = [*list(samples(alike, "u", None, Needs(tuple(groups))))[:1], *samples(others, "u", None, Needs(tuple(groups)))]

    assert [{"__key__", "__url__", *names} for names in of] == [set(sample) for sample in found]


def test_short_ones_are_made_together_and_long_ones_in_their_turn(make: Callable[..., Path]) -> None:
    short: Records = [("k", {"bin": bytes(8191), "cls": bytes(8192)})]
    kinds = [isinstance(samples(*tarviz.blocks(str(make(content, f"{len(content)}.tar"))), "u", None), list) for content in (short, LONG)]

    assert [True, False] == kinds


def test_members_are_chosen_by_their_names(make: Callable[..., Path]) -> None:
    (block,) = tarviz.blocks(str(make(OTHERS)))
    found = [selected(block, row, "u", "/p", lambda name: name.endswith("jpg")) for row in range(3)]

    place = {"__url__": "u", "__local_path__": "/p"}
    assert [{"__key__": "a", "jpg": b"1", **place}, None, {"__key__": "c", "jpg": b"4", **place}] == found
