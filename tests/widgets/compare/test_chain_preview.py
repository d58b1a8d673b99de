"""What chains make of records, beside the controller: room for values, differences in numbers and words, runners that fail."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tarviz.ops import Chain
from tarviz.widgets.compare.chain_preview import Column, Room, Strip, _failure, _plain, differing, first_field, largest_difference

A = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)


def test_values_are_kept_as_far_as_there_is_room_and_count_once():
    room = Room(100)
    array = np.zeros(60, np.uint8)

    assert (array, 40) == (room.keep(array), room.left)
    assert (array, 40) == (room.keep(array), room.left)
    assert (None, 40) == (room.keep(b"x" * 41), room.left)
    assert ("y" * 39, 1) == (room.keep("y" * 39), room.left)
    assert (None, 1) == (room.keep({"a": 1}), room.left)  # what has no size counts as 64
    assert (None, 1) == (room.keep(None), room.left)
    other = Room(64)
    assert ({"a": 1}, 0) == (other.keep({"a": 1}), other.left)


@pytest.mark.parametrize(
    ("ours", "other", "found"),
    [
        ({"a": A}, {"a": A.copy()}, 0.0),
        ({"a": A, "b": 1.0}, {"a": A, "b": 3.5}, 2.5),
        ({"a": A}, {"a": A[:2]}, math.inf),
        ({"a": A}, {"b": A}, None),
        ({"a": np.zeros(0)}, {"a": np.zeros(0)}, 0.0),
        ({"a": True}, {"a": False}, 1.0),
        ({"a": "text"}, {"a": b"text"}, 0.0),
        ({"a": bytearray(b"x")}, {"a": memoryview(b"x")}, 0.0),
        ({"a": "text"}, {"a": "other"}, math.inf),
        ({"a": "1"}, {"a": 1}, math.inf),
        ({"a": [1.0, math.nan]}, {"a": [1.0, math.nan]}, 0.0),
        ({"a": [1.0, math.nan]}, {"a": [1.0, 2.0]}, math.inf),
        ({"a": [1.0, 2.0]}, {"a": [1.0, math.nan]}, math.inf),
    ],
)
def test_the_largest_difference_of_two_records(ours, other, found):
    assert found == largest_difference(ours, other)


def test_two_pictures_that_differ_in_one_place():
    other = A.copy()
    other[2, 1, 0] += 6

    assert {"text": "", "kind": "uint8", "max": 6.0, "mean": 0.25, "share": 1 / 24, "at": [2, 1, 0]} == differing(A, other)
    assert {"text": "", "kind": "uint8", "max": 0.0, "mean": 0.0, "share": 0.0, "at": []} == differing(A, A)


def test_of_another_dtype_they_are_compared_as_they_are_shown():
    found = differing(A, (A / np.float32(255)).astype(np.float32))

    assert ("", "as shown, 0…255") == (found["text"], found["kind"])
    assert found["max"] <= 1


def test_one_channel_is_compared_with_each_of_three():
    grey = np.full((4, 2, 1), 5, np.uint8)

    found = differing(A, grey)
    assert (18.0, 23 / 24, [3, 1, 2]) == (found["max"], found["share"], found["at"])
    assert found["max"] == differing(grey, A)["max"]


def test_shapes_that_differ_and_what_is_no_picture():
    assert {"text": "shapes differ: [4, 2, 3] and [2, 2, 3]; where they lie on each other, B is as large as A"} == differing(A, A[:2])
    assert {"text": "one of them is not a picture"} == differing(A, "text") == differing(b"no picture", A)


def test_numbers_that_are_infinitely_far_have_no_mean():
    found = differing(np.array([1.0, math.nan]), np.array([1.0, 2.0]))

    assert (None, None, 0.5, [1]) == tuple(found[name] for name in ("max", "mean", "share", "at"))


def test_nothing_differs_from_nothing():
    empty = np.zeros((0, 3), np.float32)

    assert {"text": "", "kind": "float32", "max": 0.0, "mean": None, "share": 0.0, "at": []} == differing(empty, empty)


def test_what_a_column_took_and_how_far_it_is_apart():
    column = Column("one", Chain(), 0, strips=[Strip([], 2.0), None, Strip([], 4.0, difference=0.5), Strip([], 9.0, error=ValueError())])

    assert (3.0, 0.5, 3, "eager") == (column.seconds, column.difference, len(column.done), column.title)
    empty = Column("one", Chain(), 0, "tf", [None])
    assert (None, None, "tf.data") == (empty.seconds, empty.difference, empty.title)
    assert "other" == Column("one", Chain(), 0, "other").title


def test_the_first_field_is_what_the_chains_begin_with_else_a_picture():
    record = {"__key__": "a", "txt": b"", "png": b"", "jpg": b""}

    assert "jpg" == first_field([Chain(), Chain.of("decode(jpg)")], record)
    assert "png" == first_field([Chain()], record)
    assert "txt" == first_field([], {"__key__": "a", "txt": b"", "cls": b""})
    assert "" == first_field([], {"__key__": "a"})


def test_an_element_of_a_runner_is_plain_values():
    found = _plain({"__key__": np.array(b"a\xff"), "n": np.array(3), "s": np.array("x"), "a": A})

    assert ("a\udcff", 3, "x") == (found["__key__"], int(found["n"]), found["s"])
    assert found["a"] is A
    assert np.ndarray is type(found["n"])


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RuntimeError("\n\nfirst\nsecond"), "tf.data failed: RuntimeError: first"),
        (RuntimeError(), "tf.data failed: RuntimeError: "),
    ],
)
def test_what_an_engine_raises_is_one_line_of_a_tile(error, text):
    strip = _failure(Column("one", Chain(), 0, "tf"), error)

    assert [("tf.data: the whole chain", text.strip(), "E_OP")] == [(t.op, t.error.message.strip(), t.error.code) for t in strip.tiles]
    assert strip.error is strip.tiles[0].error
