"""The shuffle buffer: every record once, and the same buffer made again without reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.runners.shuffle_buffer import replay, shuffled

SEED = st.lists(st.integers(0, 2**63), min_size=1, max_size=3)


@given(st.integers(0, 60), st.integers(2, 70), SEED)
def test_every_item_comes_once_and_none_sooner_than_the_buffer_allows(total: int, size: int, seed: list[int]):
    found = list(shuffled(iter(range(total)), size, seed))

    assert list(range(total)) == sorted(found)
    assert all(number < size + place for place, number in enumerate(found))
    assert found == list(shuffled(iter(range(total)), size, seed))


@given(st.integers(1, 60), st.integers(2, 70), SEED, st.data())
def test_it_goes_on_after_any_number_as_if_it_had_not_stopped(total: int, size: int, seed: list[int], data: st.DataObject):
    taken = data.draw(st.integers(0, total))
    held, after, random = replay(total, size, seed, taken)

    assert list(shuffled(iter(range(total)), size, seed))[taken:] == list(shuffled(iter(range(after, total)), size, seed, (held, random)))
    assert len(held) <= size


def test_no_more_is_read_than_goes_into_the_buffer():
    read = []

    def items():
        for number in range(1000):
            read.append(number)
            yield number

    next(shuffled(items(), 10, [1]))

    assert 11 == len(read)


@pytest.mark.parametrize("other", [[2], [1, 1], [0, 1]])
def test_another_seed_is_another_order(other: list[int]):
    assert list(shuffled(iter(range(50)), 20, [1])) != list(shuffled(iter(range(50)), 20, other))
