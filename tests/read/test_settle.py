"""Records as they are handed out: each field once, no key for the second time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tarviz.formats.records import Grouper
from tarviz.formats.tar import Scanner
from tarviz.model.errors import Fault
from tarviz.read.options import ReadOptions
from tarviz.read.settle import settle
from tests.read.tars import END, member


def run(*names: str, duplicates: Any = "error", pending: int = -1, **rules: Any) -> tuple[list[bytes], int, Any, list[Fault], list[Fault]]:
    """Keys, the pending one's row, the error's code and key, what was skipped, what was warned of."""
    grouper, skipped = Grouper("a.tar", duplicates=duplicates), list[Fault]()
    data = b"".join(member(name, name.encode()) for name in names) + END
    records = grouper.group(Scanner("a.tar").scan(memoryview(data), 0, final=True))
    whole, row, problem = settle(records, pending, grouper, replace(ReadOptions().rules(), **rules), skipped)
    return whole.keys.tolist(), row, None if problem is None else (problem.code, problem.key), skipped, grouper.notes


class TestTwice:
    NAMES = ("a.txt", "b.txt", "b.txt", "c.txt")

    def test_a_field_that_is_there_twice_ends_the_records_before_it(self):
        assert ([b"a"], -1, ("E_DUP_FIELD", "b"), [], []) == run(*self.NAMES)

    def test_or_only_its_record_is_left_out(self):
        found, _, problem, skipped, _ = run(*self.NAMES, skip=True)

        assert ([b"a", b"c"], None) == (found, problem)
        assert [("E_DUP_FIELD", "b")] == [(fault.code, fault.key) for fault in skipped]

    @pytest.mark.parametrize("duplicates", ["first", "last"])
    def test_or_one_of_them_stays(self, duplicates: str):
        assert ([b"a", b"b", b"c"], None) == run(*self.NAMES, duplicates=duplicates)[:3:2]


class TestAgain:
    NAMES = ("a.txt", "b.txt", "a.cls", "c.txt")

    def test_a_key_that_comes_again_is_an_error_in_strict_reading(self):
        assert ([b"a", b"b"], -1, ("E_SPLIT_RECORD", "a"), [], []) == run(*self.NAMES)

    def test_it_is_left_out_where_damage_is_skipped(self):
        found, _, problem, skipped, _ = run(*self.NAMES, skip=True)

        assert ([b"a", b"b", b"c"], None) == (found, problem)
        what = "the key was at byte 0 and comes again at byte 2048: the members of one record are not adjacent."
        assert [Fault("E_SPLIT_RECORD", what, "a.tar", "a", "a.cls", 2048)] == skipped

    def test_each_time_it_comes(self):
        found, row, _, skipped, _ = run(*self.NAMES, "b.cls", "d.txt", pending=5, skip=True)

        assert ([b"a", b"b", b"c", b"d"], 3) == (found, row)
        assert {("a", 2048), ("b", 4096)} == {(fault.key, fault.offset) for fault in skipped}

    def test_lenient_reading_gives_it_with_a_warning(self):
        found, _, problem, _, notes = run(*self.NAMES, strict=False)

        assert ([b"a", b"b", b"a", b"c"], None) == (found, problem)
        assert [("W_SPLIT_RECORD", "a", 2048)] == [(note.code, note.key, note.offset) for note in notes]

    def test_who_gathers_the_pieces_is_not_told(self):
        assert ([b"a", b"b", b"a", b"c"], -1, None, [], []) == run(*self.NAMES, returning=True)


class TestPending:
    def test_the_mark_moves_with_its_record(self):
        assert 2 == run("a.txt", "b.txt", "b.txt", "c.txt", "d.txt", pending=3, skip=True, strict=False)[1]

    def test_and_goes_with_it(self):
        assert -1 == run("a.txt", "b.txt", "b.txt", pending=1, skip=True, strict=False)[1]
        assert -1 == run("a.txt", "b.txt", "b.txt", "c.txt", pending=2)[1]
