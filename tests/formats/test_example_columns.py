"""Numbers as varints and the bytes before payloads, for many records at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.formats.example_columns import Head, NumberColumn, Payloads, choose, lengths, width_of
from tarviz.formats.features import varint

NUMBERS = st.lists(st.integers(0, (1 << 62) - 1), min_size=1, max_size=20)


@given(NUMBERS)
def test_widths_are_those_of_the_varints(numbers):
    widths = [len(varint(number)) for number in numbers]

    assert widths == np.broadcast_to(NumberColumn.of(np.array(numbers)).width, len(numbers)).tolist()
    assert widths == [width_of(number) for number in numbers]


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=20), st.integers(0, 300))
def test_around_counts_the_number_itself_and_what_it_announces(numbers, more):
    around = NumberColumn.of(np.array(numbers)).around(more)

    expected = [more + len(varint(number)) + number for number in numbers]
    assert expected == around.values.tolist()
    assert around.low <= min(expected)
    assert max(expected) <= around.high


@pytest.mark.parametrize("numbers", [[5, 5], [1, 127], [128, 16_383]])
def test_a_head_writes_literals_and_numbers_of_one_width_in_their_places(numbers):
    head = Head()
    head.literal(b"<")
    head.number(NumberColumn.of(np.array(numbers)))
    head.literal(b">")

    assert [b"<" + varint(number) + b">" for number in numbers] == list(head.rows(len(numbers)))


def test_a_table_stands_where_it_was_put():
    head = Head()
    head.literal(b"a")
    head.table(np.frombuffer(b"xyXY", np.uint8).reshape(2, 2))
    head.literal(b"z")

    assert [b"axyz", b"aXYz"] == list(head.rows(2))


def test_some_records_are_chosen_from_every_kind_of_item():
    chosen = np.array([2, 0])

    assert b"literal" == choose(b"literal", chosen)
    assert [b"c", b"a"] == choose([b"a", b"b", b"c"], chosen)
    assert [3, 1] == choose(lengths([b"1", b"22", b"333"]), chosen).values.tolist()
    payloads = choose(Payloads(np.array([0, 10, 20]), np.array([1, 2, 3])), chosen)
    assert [[20, 0], [3, 1]] == [payloads.begin.tolist(), payloads.size.tolist()]
