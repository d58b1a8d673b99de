"""Names cut into key and extension, members gathered into records."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz.formats.records import Grouper, split_name
from tarviz.formats.tar import Scanner
from tarviz.testing.strategies import shard
from tests.conftest import each_case


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

    @given(st.lists(st.text("ab./_C", min_size=1, max_size=9), min_size=1, max_size=40))
    @settings(max_examples=200, deadline=None)
    @pytest.mark.matrix
    def test_columns_cut_like_one_name(self, names):
        import numpy as np

        from tarviz.formats import header_scan

        clean = [name.encode() for name in names if not name.startswith("./")]
        if not clean:
            return
        for rule in ("first-dot", "last-dot"):
            names = header_scan.matrix(np.array(clean))
            cut = header_scan.split(names, header_scan.base(names == 47), last=rule == "last-dot")
            for row, name in enumerate(clean):
                expected = split_name(name, rule)
                assert (expected is not None) == bool(cut.valid[row]), name
                if expected:
                    key, ext = expected
                    assert (key, ext) == (cut.key[row].tobytes().rstrip(b"\0"), cut.ext[row].tobytes().rstrip(b"\0").decode()), name


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

    @given(st.lists(st.integers(0, 12), max_size=60), st.integers(1, 7))
    @settings(max_examples=150, deadline=None)
    @pytest.mark.matrix
    def test_every_key_that_returns_is_found(self, keys, step):
        grouper = Grouper("a.tar")
        seen: set[int] = set()
        last = None
        for low in range(0, len(keys), step):
            part = [key for at, key in enumerate(keys[low : low + step]) if at + low == 0 or keys[at + low - 1] != key]
            if not part or (last is not None and part[0] == last):
                part = part[1:]
            if not part:
                continue
            records, _ = grouped([(f"k{key}", "txt") for key in part])
            expected = []
            for at, key in enumerate(part):
                if key in seen:
                    expected.append(at)
                seen.add(key)
            last = part[-1]

            assert expected == [row for row, _ in grouper.returns(records)]


class TestHashes:
    @given(st.lists(st.binary(max_size=40).filter(lambda key: b"\0" not in key), min_size=1, max_size=10))
    def test_one_key_hashes_as_a_column_of_keys_does(self, keys):
        import numpy as np

        from tarviz.formats import header_scan

        assert [header_scan.hash_one(key) for key in keys] == header_scan.hashes(header_scan.matrix(np.array(keys, "S"))).tolist()
