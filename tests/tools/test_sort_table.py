"""The table behind sorting: columns that grow, orders that are stable, hashes that are the same everywhere."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.formats.tar_header import TAR_END, tar_member
from tarviz.model.types import URL
from tarviz.read.spans import Batch, HeldTar, shard_batches
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.tools import sort_table
from tarviz.tools.sort_table import GrowingArray, SortTable, ascending, hashes, mix

EXPECTED = [17416387546233665333, 15234741069860586174, 11561427596919740201]
KEYS = st.lists(st.binary(min_size=1, max_size=30).filter(lambda key: not key.endswith(b"\0")), max_size=30)


class TestColumn:
    @given(st.lists(st.lists(st.integers(-(2**62), 2**62), max_size=900), max_size=6))
    def test_numbers_stay_in_their_order(self, parts: list[list[int]]):
        column = GrowingArray(np.int64)
        for part in parts:
            column.extend(np.array(part, np.int64))

        assert [number for part in parts for number in part] == column.array().tolist()

    @pytest.mark.parametrize("wide", [b"w" * 20, b"w" * 3000])
    def test_texts_widen_it_and_none_is_cut(self, wide: bytes):
        column = GrowingArray("S8")
        column.extend(np.array([b"a", b"bb"]))
        column.extend(np.array([wide]) if len(wide) < 64 else np.array([wide, None], object)[:1])
        column.extend(np.array([b"c"]))

        assert [b"a", b"bb", wide, b"c"] == column.array().tolist()


class TestOrder:
    @given(st.lists(st.integers(0, 5), max_size=40), st.booleans(), st.booleans())
    def test_equal_ones_keep_their_places_in_both_directions(self, values: list[int], reverse: bool, objects: bool):
        column = np.array([*map(str, values), None], object)[:-1] if objects else np.array(values, np.int64)

        assert (
            sorted(range(len(values)), key=lambda at: -values[at] if reverse else values[at]) == ascending(column, reverse=reverse).tolist()
        )


class TestHashes:
    @given(KEYS, KEYS)
    def test_a_key_has_its_hash_among_any_others(self, keys: list[bytes], others: list[bytes]):
        together = hashes([*keys, *others, b"x" * 600])

        assert hashes(keys).tolist() == together[: len(keys)].tolist()
        assert [int(hashes([key])[0]) for key in keys] == hashes(keys).tolist()

    def test_random_numbers_out_of_them_never_change(self):
        """An order that was drawn with a seed can be drawn again, by any version."""
        drawn = mix(hashes([b"a", b"b", b"train/n00000017"]), 3).tolist()

        assert drawn == mix(hashes([b"a", b"b", b"train/n00000017"]), 3).tolist()
        assert EXPECTED == drawn
        assert drawn != mix(hashes([b"a", b"b", b"train/n00000017"]), 4).tolist()


def batches(path: Path) -> list[Batch]:
    return list(shard_batches(URL(str(path)), ReadOptions(), ReadReport(), returning=True))


def member(name: str, data: bytes) -> bytes:
    return b"".join(tar_member(name, data))


class TestTable:
    """Two shards, in the first of which the members of `a` stand apart, and `c` comes twice with one field."""

    A = [("a.jpg", b"1"), ("b.jpg", b"2"), ("a.cls", b"3"), ("c.jpg", b"4"), ("d.txt", b"5"), ("c.jpg", b"6"), ("a.txt", b"7")]
    B = [("a.jpg", b"8"), ("b.txt", b"9" * 600)]

    @pytest.fixture
    def table(self, tmp_path: Path) -> SortTable:
        table = SortTable()
        for name, members in (("a", self.A), ("b", self.B)):
            (tmp_path / f"{name}.tar").write_bytes(b"".join(member(*each) for each in members) + TAR_END)
            source = HeldTar(URL(str(tmp_path / f"{name}.tar")))
            for batch in batches(tmp_path / f"{name}.tar"):
                table.add(source, batch)
        return table

    def test_it_holds_the_keys_and_which_records_are_pieces_of_one(self, table: SortTable):
        assert [b"a", b"b", b"a", b"c", b"d", b"c", b"a", b"a", b"b"] == table.keys.tolist()
        assert hashes(table.keys.tolist()).tolist() == table.hash.tolist()
        assert [[0, 2, 6]] == table.apart()

    def test_pieces_of_one_record_have_no_field_in_common(self, tmp_path: Path):
        keys = list(itertools.product("xyz", repeat=4))
        members = [member(f"k{key:02d}.{exts[turn]}", b"") for turn in range(4) for key, exts in enumerate(keys)]
        (tmp_path / "a.tar").write_bytes(b"".join(members) + TAR_END)
        table = SortTable()
        for batch in batches(tmp_path / "a.tar"):
            table.add(HeldTar(URL(str(tmp_path / "a.tar"))), batch)
        expected: list[list[int]] = []
        for key, exts in enumerate(keys):
            begins = [0]
            for turn in range(1, 4):
                begins += [turn] if exts[turn] in exts[begins[-1] : turn] else []
            expected += [[81 * turn + key for turn in range(low, high)] for low, high in itertools.pairwise([*begins, 4])]

        assert sorted(group for group in expected if len(group) > 1) == sorted(table.apart())

    def test_bytes_come_in_the_order_that_is_asked_for(self, table, monkeypatch):
        for stride, chunk in [(1 << 16, 2 << 20), (2, 2 << 20), (1 << 16, 512), (3, 1024)]:
            monkeypatch.setattr(sort_table, "_STRIDE", stride)
            monkeypatch.setattr(sort_table, "_CHUNK", chunk)
            order = np.array([8, 4, 0, 3, 7, 5, 1])
            found, records = b"", 0
            for sources, begin, end, count in table.runs(order, {0: [2, 6]}):
                records += count
                held = sources * len(begin) if len(sources) == 1 else sources
                for source, low, high in zip(held, begin.tolist(), end.tolist(), strict=True):
                    found += bytes(source.read(low, high))

            every = [*self.A, *self.B]
            assert b"".join(member(*every[at]) for at in (8, 4, 0, 2, 6, 3, 7, 5, 1)) == found
            assert 9 == records

    def test_some_records_of_a_batch_are_left_out(self, tmp_path: Path):
        (tmp_path / "a.tar").write_bytes(b"".join(member(*each) for each in self.B) + TAR_END)
        table = SortTable()
        (batch,) = batches(tmp_path / "a.tar")
        table.add(HeldTar(URL(str(tmp_path / "a.tar"))), batch, np.array([False, True]))

        assert [b"b"] == table.keys.tolist()
        ((_, begin, end, count),) = table.runs(np.array([0]), {})
        assert ([1024], [1024 + 512 + 1024], 1) == (begin.tolist(), end.tolist(), count)
