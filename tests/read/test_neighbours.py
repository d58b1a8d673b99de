"""Which of the two records beside damage may have lost a member to it."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.formats.records import Grouped, Grouper
from tarviz.formats.tar import Scanner
from tarviz.read.neighbours import Held, Neighbours
from tests.conftest import each_case
from tests.read.tars import END, member

NOTHING = memoryview(b"")


def records(grouper: Grouper, *names: str) -> Grouped:
    data = b"".join(member(name, b"1") for name in names) + END
    return grouper.group(Scanner("a.tar").scan(memoryview(data), 0, final=True))


def judge(
    before: tuple[str, ...], behind: tuple[str, ...], *, usual: int = 20, closed: bool = True, name: bytes | None = None
) -> tuple[bool, bool]:
    """Whether the records on both sides are whole, in a shard whose records had txt and cls."""
    grouper = Grouper("a.tar")
    near = Neighbours(grouper)
    near.learn(records(grouper, *(f"{number:03d}.{ext}" for number in range(usual) for ext in ("txt", "cls"))))
    near.note_damage(None, name)
    near.held = Held(records(grouper, *before), NOTHING, 0)
    left, whole, right = near.between(records(grouper, *behind), closed=closed)

    assert left is not None
    assert near.damage is None
    return whole, right


BOTH, TXT = ("a.txt", "a.cls"), ("a.txt",)


class TestWhoLost:
    def test_the_record_that_lacks_a_field_lost_it(self):
        assert (True, False) == judge(BOTH, ("b.cls",))
        assert (False, True) == judge(TXT, ("b.txt", "b.cls"))

    def test_where_neither_lacks_one_both_may_have(self):
        assert (False, False) == judge(BOTH, ("b.txt", "b.cls"))

    def test_where_both_lack_one_both_may_have_lost_it(self):
        assert (False, False) == judge(TXT, ("b.cls",))

    def test_a_record_that_ends_at_damage_again_tells_nothing_by_lacking_a_field(self):
        assert (False, False) == judge(BOTH, ("b.cls",), closed=False)

    def test_sixteen_records_tell_what_is_usual(self):
        assert (True, False) == judge(BOTH, ("b.cls",), usual=16)

    @pytest.mark.parametrize("usual", [0, 15])
    def test_too_few_records_do_not_tell_what_is_usual(self, usual: int):
        assert (False, False) == judge(BOTH, ("b.cls",), usual=usual)

    def test_records_of_different_fields_never_do(self):
        grouper = Grouper("a.tar")
        near = Neighbours(grouper)
        near.learn(records(grouper, *(f"{number:03d}.txt" for number in range(20)), "x.cls"))
        near.note_damage(None)
        near.held = Held(records(grouper, "a.txt"), NOTHING, 0)

        assert (False, False) == near.between(records(grouper, "b.txt"), closed=True)[1:]


class TestKnown:
    """The damaged header can be read as far as the key."""

    @pytest.mark.parametrize(("key", "right"), [(b"b", False), (b"c", True)])
    def test_only_the_record_of_that_key_lost_a_member(self, key: bytes, right: bool):
        grouper = Grouper("a.tar")
        near = Neighbours(grouper)
        near.note_damage(key)
        near.held = Held(records(grouper, "a.txt"), NOTHING, 0)

        assert (True, right) == near.between(records(grouper, "b.txt"), closed=True)[1:]

    def test_a_second_damage_of_no_key_makes_it_unknown(self):
        grouper = Grouper("a.tar")
        near = Neighbours(grouper)
        near.note_damage(b"c")
        near.note_damage(None)
        near.held = Held(records(grouper, "a.txt"), NOTHING, 0)

        assert (False, False) == near.between(records(grouper, "b.txt"), closed=True)[1:]


class TestOneField:
    """In a shard of records of one field the damaged member was a record by itself, where its name says so."""

    @each_case(("name", "whole"), [(b"m.txt", True), (b"a.txt", False), (b"m.cls", False), (None, False)])
    def test_its_neighbours_are_whole_when_its_name_is_of_neither(self, name: bytes | None, whole: bool):
        grouper = Grouper("a.tar")
        near = Neighbours(grouper)
        near.learn(records(grouper, *(f"{number:03d}.txt" for number in range(20))))
        near.note_damage(None, name)
        near.held = Held(records(grouper, "a.txt"), NOTHING, 0)

        assert (whole, whole) == near.between(records(grouper, "b.txt"), closed=True)[1:]

    @pytest.mark.parametrize("key", [None, b"x"])
    def test_a_second_damage_there_tells_nothing_by_its_name(self, key: bytes | None):
        grouper = Grouper("a.tar")
        near = Neighbours(grouper)
        near.learn(records(grouper, *(f"{number:03d}.txt" for number in range(20))))
        for each in (None, key):
            near.note_damage(each, b"m.txt")
        near.held = Held(records(grouper, "a.txt"), NOTHING, 0)

        assert (False, False) == near.between(records(grouper, "b.txt"), closed=True)[1:]


class TestNotes:
    def test_what_is_left_out_is_said_with_its_place(self):
        grouper = Grouper("a.tar")
        near = Neighbours(grouper)
        near.note_lost(records(grouper, "a.txt"))
        near.note_lost_member(Scanner("a.tar").scan(memoryview(member("x.txt", b"1") + END), 0, final=True))

        assert [("W_DROPPED", "a", None, 0), ("W_DROPPED", None, "x.txt", 0)] == [
            (note.code, note.key, note.member, note.offset) for note in grouper.notes
        ]

    def test_nobody_can_say_whether_the_last_record_before_damage_is_whole(self):
        grouper = Grouper("a.tar")
        near = Neighbours(grouper)
        held = Held(records(grouper, "a.txt"), NOTHING, 0)
        near.note_damage(None)
        near.held = held

        assert held is near.alone()
        assert near.alone() is None
        assert np.array_equal(held.record.rows, [0, 1])
