"""The table behind sorting: columns that grow, orders that are stable, hashes that are the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.tools.sort_table import GrowingArray, ascending, hashes, mixed

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
        drawn = mixed(hashes([b"a", b"b", b"train/n00000017"]), 3).tolist()

        assert drawn == mixed(hashes([b"a", b"b", b"train/n00000017"]), 3).tolist()
        assert EXPECTED == drawn
        assert drawn != mixed(hashes([b"a", b"b", b"train/n00000017"]), 4).tolist()
