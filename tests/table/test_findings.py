"""Exact and near duplicates, and outliers."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import tarviz
from tarviz.model.errors import UsageError
from tarviz.table import findings
from tarviz.table.findings import exact, links, near, outliers, pairs


def scene(seed: int, size: int = 120, quality: int = 92) -> bytes:
    draw = np.random.default_rng(seed)
    rough = Image.fromarray(draw.integers(0, 255, (9, 9, 3), np.uint8))
    out = io.BytesIO()
    rough.resize((240, 240), Image.Resampling.BICUBIC).resize((size, size)).save(out, "JPEG", quality=quality)
    return out.getvalue()


class TestDuplicates:
    def test_equal_bytes_are_exact_duplicates(self, make):
        table = tarviz.table(
            [make([("a", {"jpg": b"1"}), ("b", {"jpg": b"2"})]), make([("c", {"jpg": b"1"}), ("d", {"cls": b"1"})], "b.tar")]
        )
        found = exact(table, "jpg")

        assert [["a", "c"]] == [[member.key for member in group] for group in found.groups]
        assert (1, "<1 groups, 1 records more than their firsts>") == (len(found), repr(found))
        assert ["c"] == [member.key for member in found.extra]
        assert 1 == found.tag()
        assert [("c", "dup", "like a")] == [(line["key"], line["tag"], line["note"]) for line in table.tags.lines()]
        assert ["c"] == [row[0] for row in table.sql("SELECT key FROM records WHERE tag = 'dup'").fetchall()]
        assert 1 == len(table.rows("is:dup"))

    def test_other_sizes_and_qualities_of_a_picture_are_near_duplicates(self, make):
        content = [(f"p{at:03}", {"jpg": scene(at)}) for at in range(60)]
        planted = [(f"q{at:03}", {"jpg": scene(at, 90 + 10 * (at % 5), 60 + at)}) for at in range(0, 30, 3)]
        flat = [(f"z{at}", {"jpg": scene(0) if at == 9 else b"broken"}) for at in range(2)]

        found = near(tarviz.table(make([*content, *planted, *flat])), "jpg")

        assert [[f"p{at:03}", f"q{at:03}"] for at in range(0, 30, 3)] == [[each.key for each in group] for group in found.groups]

    @pytest.mark.parametrize("distance", [0, 1, 3, 6])
    def test_banded_pairs_are_those_of_comparing_all(self, distance):
        draw = np.random.default_rng(0)
        hashes = draw.integers(0, 2**64, 300, np.uint64)
        for at in range(100):
            hashes[200 + at] = hashes[at] ^ np.uint64(sum(1 << int(bit) for bit in draw.choice(64, at % 8, replace=False)))
        every = np.bitwise_count(hashes[:, None] ^ hashes[None, :])
        expected = {(a, b) for a, b in zip(*np.nonzero(every <= distance), strict=True) if a < b}

        assert expected == set(zip(*(part.tolist() for part in pairs(hashes, distance)), strict=True))

    def test_one_picture_that_is_there_very_often_makes_no_square(self):
        draw = np.random.default_rng(0)
        hashes, light = draw.integers(0, 2**64, 100_000, np.uint64), draw.uniform(0, 255, 100_000)
        hashes[::2], light[::2] = 0x0F0F0F0F0F0F0F0F, 77.0
        one, other = links(hashes, light)

        assert {0} == {a for a, b in zip(one.tolist(), other.tolist(), strict=True) if b % 2 == 0}
        assert 49_999 == int((other % 2 == 0).sum())

    def test_flat_pictures_say_too_little(self):
        assert 0 == len(links(np.zeros(1000, np.uint64), np.zeros(1000))[0])

    def test_a_hash_with_few_edges_says_too_little(self):
        for bits, says in [(5, False), (6, True), (58, True), (59, False)]:
            one, other = links(np.full(2, (1 << bits) - 1, np.uint64), np.zeros(2))

            assert (([0], [1]) if says else ([], [])) == (one.tolist(), other.tolist())

    @pytest.mark.parametrize(("light", "alike"), [(8.0, True), (8.01, False)])
    def test_near_hashes_are_of_one_picture_where_it_is_as_bright(self, light, alike):
        one, other = links(np.array([0xFF00FF, 0xFF00FE], np.uint64), np.array([0, light]))

        assert (([0], [1]) if alike else ([], [])) == (one.tolist(), other.tolist())

    def test_those_that_are_not_like_the_first_of_their_hash_have_a_first_of_their_own(self):
        one, other = links(np.full(5, 0xFF00FF, np.uint64), np.zeros(5), like=lambda a, b: a % 2 == b % 2)

        assert ([0, 0, 1], [2, 4, 3]) == (one.tolist(), other.tolist())

    def test_only_pictures_that_can_be_decoded_are_compared(self, make):
        table = tarviz.table(make([("a", {"jpg": b"broken", "cls": b"1"}), ("b", {"jpg": b"broken"})]))

        assert [] == near(table, "jpg").groups
        with pytest.raises(UsageError, match="not a picture"):
            near(table, "cls")
        with pytest.raises(UsageError, match="no field 'png'"):
            near(table, "png")
        with pytest.raises(UsageError, match="no field 'txt'"):
            exact(table, "txt")
        for distance in (-1, 16):
            with pytest.raises(UsageError, match=f"distance={distance} is not from 0 to 15"):
                near(table, "jpg", distance=distance)

    def test_of_some_records_only(self, make):
        content = [(f"{at}", {"txt": b"one text", "cls": b"%d" % at}) for at in range(4)]
        table = tarviz.table(make(content))

        assert [["1", "2", "3"]] == [[each.key for each in group] for group in exact(table, "txt", "cls > 0").groups]
        pytest.importorskip("datasketch")
        assert [["2", "3"]] == [[each.key for each in group] for group in near(table, "txt", "cls > 1").groups]

    def test_outliers_are_far_from_the_middle_half(self, make):
        content = [(f"k{at:02}", {"bin": bytes(100 + at)}) for at in range(40)] + [("far", {"bin": bytes(5000)})]
        table = tarviz.table(make(content))

        assert [40] == table.rows(outliers(table, "bin.size")).n.tolist()
        assert "(bin.size < 50.0 or bin.size > 190.0)" == outliers(table, "bin.size")  # of 100 … 139 and 5000 the middle half is 110 … 130
        assert "(bin.size < 90.0 or bin.size > 150.0)" == outliers(table, "bin.size", factor=1)
        assert "(bin.size < 63.25 or bin.size > 157.75)" == outliers(table, "bin.size", "n < 20 or n > 38", factor=4)
        with pytest.raises(UsageError, match=r"bin\.size has no number"):
            outliers(table, "bin.size", "n > 99")


def test_pairs_that_hang_together_in_any_order_are_one_group():
    one, other = np.array([0, 2, 1, 5]), np.array([1, 3, 3, 6])

    assert [[0, 1, 2, 3], [5, 6]] == findings._components(one, other, 7)
