"""Members as columns: put together in order and chosen by row, names and sparse maps with them."""

from __future__ import annotations

import numpy as np

from tarviz.formats.header_parse import Entry
from tarviz.formats.member_table import columns, gather, join, pick
from tarviz.model.types import Members
from tests.conftest import each_case


def entry(name: bytes, at: int, sparse: list[tuple[int, int]] | None = None) -> Entry:
    return Entry(name, 0, at, at + 512, 10, at + 1024, sparse)


def seen(members: Members) -> list[tuple[bytes, int, int]]:
    return list(zip(map(bytes, members.name), members.start.tolist(), members.end.tolist(), strict=True))


NAMES = [b"a.txt", b"n" * 600 + b".txt", b"x\0", b"b.txt"]


@each_case("names", [NAMES[:1], NAMES[:2], NAMES[::-1], []])
def test_names_of_any_length_and_with_any_byte_are_kept(names: list[bytes]):
    found = columns([entry(name, 1024 * at) for at, name in enumerate(names)])

    assert [(name, 1024 * at, 1024 * at + 1024) for at, name in enumerate(names)] == seen(found)


def test_single_entries_and_runs_stay_in_order():
    run = columns([entry(b"c", 2048), entry(b"long" * 200, 3072, [(1, 2)])])
    members = gather([entry(b"a", 0), entry(b"b", 1024, [(0, 5)]), run, entry(b"d", 4096)])

    assert [b"a", b"b", b"c", b"long" * 200, b"d"] == [name for name, _, _ in seen(members)]
    assert {1: [(0, 5)], 3: [(1, 2)]} == members.sparse


def test_sparse_maps_go_with_their_rows():
    members = columns([entry(b"%d" % at, 1024 * at, [(at, 1)] if at % 2 else None) for at in range(6)])

    assert {0: [(3, 1)], 2: [(1, 1)]} == pick(members, np.array([3, 4, 1])).sparse
    assert [b"1", b"5"] == [name for name, _, _ in seen(pick(members, np.array([False, True, False, False, False, True])))]


def test_nothing_joined_is_an_empty_table():
    assert 0 == len(join([])) == len(join([columns([]), columns([])]))
