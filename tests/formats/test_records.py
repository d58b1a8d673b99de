"""Names cut into key and extension, members gathered into records."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.formats import header_scan
from tarviz.formats.records import Grouper, is_meta, part, split_name
from tarviz.formats.tar import Scanner
from tarviz.testing.strategies import shard
from tests.conftest import each_case
from tests.read.tars import member


def grouped(names, **options):
    data = shard([(key, {ext: b"x"}) for key, ext in names])
    grouper = Grouper("a.tar", **options)
    return grouper.group(Scanner("a.tar").scan(memoryview(data), 0, final=True)), grouper


class TestSplitName:
    @each_case(
        ("name", "first", "last"),
        [
            (b"d/a.seg.jpg", (b"d/a", "seg.jpg"), (b"d/a.seg", "jpg")),
            (b"d.v1/a.jpg", (b"d.v1/a", "jpg"), (b"d.v1/a", "jpg")),
            (b"d/a.JPG", (b"d/a", "jpg"), (b"d/a", "jpg")),
            (b"./././a.cls", (b"a", "cls"), (b"a", "cls")),
            (b"noext", None, None),
            (b"d/.hidden", None, None),
            (b"a.", None, None),
            (b"", None, None),
            (b"a..b", (b"a", ".b"), (b"a.", "b")),
        ],
    )
    def test_cuts_at_the_dot_the_rule_names(self, name, first, last):
        assert (first, last) == (split_name(name), split_name(name, "last-dot"))

    @pytest.mark.parametrize("rule", ["first-dot", "last-dot"])
    def test_columns_cut_like_one_name(self, rule):
        names = ["".join(letters) for length in (1, 2, 3, 4) for letters in itertools.product("ab./_C", repeat=length)]
        clean = [name.encode() for name in names if not name.startswith("./")]
        rows = header_scan.matrix(np.array(clean))
        cut = header_scan.split(rows, header_scan.base(rows == 47), last=rule == "last-dot")
        found = [
            (key.tobytes().rstrip(b"\0"), ext.tobytes().rstrip(b"\0").decode()) if valid else None
            for key, ext, valid in zip(cut.key, cut.ext, cut.valid, strict=True)
        ]

        assert [split_name(name, rule) for name in clean] == found


@pytest.mark.parametrize(
    ("about_the_shard", "names"),
    [(True, "__m__ __m__.b ./d/__m__.b.c ____.b._ ._a.b d/._a"), (False, "____ __m __m.b m__.b a._b ._d/a.b __m__/a.b __.b")],
)
def test_members_about_the_shard_are_told_by_their_names(about_the_shard: bool, names: str):
    assert {about_the_shard} == {is_meta(name.encode()) for name in names.split()}


class TestGrouper:
    def test_members_of_one_key_that_stand_together_are_one_record(self):
        records, _ = grouped([("a", "jpg"), ("a", "cls"), ("b", "jpg"), ("a/b", "cls")])

        assert [b"a", b"b", b"a/b"] == records.keys.tolist()
        assert [0, 2, 3, 4] == records.rows.tolist()
        assert ["jpg", "cls"] == records.exts

    def test_names_without_a_key_are_noted_with_their_place(self):
        records, grouper = grouped([("a", "jpg"), ("__meta__", "json"), ("._b", "jpg"), ("b", "jpg")])

        assert [b"a", b"b"] == records.keys.tolist()
        assert [("W_SKIPPED_META", 1024), ("W_SKIPPED_META", 2048)] == [(note.code, note.offset) for note in grouper.notes]

    @pytest.mark.parametrize(("policy", "kept"), [("first", 512), ("last", 1536)])
    def test_a_field_that_is_there_twice_is_settled_as_asked(self, policy, kept):
        records, grouper = grouped([("a", "jpg"), ("a", "JPG"), ("b", "cls")], duplicates=policy)
        settled, problem = grouper.settle(records)

        assert problem is None
        assert ([kept, 2560], 1) == (settled.members.data.tolist(), grouper.twice)

    def test_a_field_that_is_there_twice_is_an_error_otherwise(self):
        records, grouper = grouped([("z", "cls"), ("a", "jpg"), ("a", "jpg")])
        settled, problem = grouper.settle(records)

        assert problem is not None
        assert ("E_DUP_FIELD", "a", 2048) == (problem.code, problem.key, problem.offset)
        assert [b"z"] == settled.keys.tolist()

    @pytest.mark.parametrize("rule", ["first-dot", "last-dot"])
    @each_case("odd", [[], ["./a.b"], ["a" * 120 + ".b"]])
    def test_groups_as_one_name_after_the_other_tells(self, rule, odd):
        random = Random(4)
        pool = ["a.b", "a.c", "a.B", "a.b.c", "d/a.b", "a", ".b", "__m__.b", "__m__.b.c", "____.b", "__m.b", "_._.b", "._a.b", "d/._a.b"]
        for _ in range(8):
            names = random.choices([*pool, *odd], k=30)
            records, notes, at = list[tuple[bytes, list[str]]](), list[tuple[str, int]](), 0
            for name in names:
                cut = split_name(name.encode(), rule)
                if is_meta(name.encode()) or cut is None:
                    notes.append(("W_SKIPPED_META" if is_meta(name.encode()) else "W_NO_KEY", at))
                elif records and records[-1][0] == cut[0]:
                    records[-1][1].append(cut[1])
                else:
                    records.append((cut[0], [cut[1]]))
                at += 512 if len(name) < 100 else 3 * 512
            grouper = Grouper("a.tar", rule)
            data = b"".join(member(name) if len(name) < 100 else member("@", name.encode(), b"L") + member(name[:99]) for name in names)
            found = grouper.group(Scanner("a.tar", strict=False).scan(memoryview(data), 0, final=True))

            assert records == [
                (bytes(key), [found.exts[code] for code in found.ext[low:high]])
                for key, low, high in zip(found.keys.tolist(), found.rows[:-1], found.rows[1:], strict=True)
            ]
            assert notes == [(note.code, note.offset) for note in grouper.notes]

    def test_a_key_that_returns_is_told_with_the_place_where_it_was_first(self):
        random = Random(4)
        for step in range(1, 8):
            keys = [key for key, _ in itertools.groupby(random.choices(range(12), k=60))]
            records, grouper = grouped([(f"k{key}", "txt") for key in keys])
            places = records.members.start.tolist()
            expected = [(row, places[keys.index(key)]) for row, key in enumerate(keys) if keys.index(key) != row]
            found = [
                (low + row, place)
                for low in range(0, len(keys), step)
                for row, place in grouper.returns(part(records, low, min(low + step, len(keys))))
            ]

            assert expected == found


class TestHashes:
    @given(st.lists(st.binary(max_size=40).filter(lambda key: b"\0" not in key), min_size=1, max_size=10))
    def test_one_key_hashes_as_a_column_of_keys_does(self, keys):
        assert [header_scan.hash_one(key) for key in keys] == header_scan.hashes(header_scan.matrix(np.array(keys, "S"))).tolist()
