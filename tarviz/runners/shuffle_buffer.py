"""The shuffle buffer, and the same buffer as it is after so many records, without reading them again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TypeAlias, TypeVar

import numpy as np

T = TypeVar("T")

Begun: TypeAlias = "tuple[list[T], np.random.Generator | None]"


def shuffled(items: Iterator[T], size: int, seed: list[int], begun: Begun[T] | None = None) -> Iterator[T]:
    """Items in the order a buffer of `size` gives them, as `tf.data.Dataset.shuffle` describes it.

    `begun` is a buffer that was filled before, with its generator; None in place of that says that its items are the last, in order.
    """
    buffer, random = begun if begun is not None else (list(itertools.islice(items, size)), np.random.default_rng(seed))
    if random is None:
        yield from buffer
        return
    for item in items:
        place = int(random.integers(len(buffer)))
        yield buffer[place]
        buffer[place] = item
    for place in random.permutation(len(buffer)):
        yield buffer[place]


def replay(total: int, size: int, seed: list[int], taken: int) -> tuple[list[int], int, np.random.Generator | None]:
    """The buffer of `shuffled` over the numbers 0…`total`, of which `taken` came out: what it holds, the number that goes in next,
    and the generator (None where nothing goes in any more: what it holds comes out in order).

    >>> list(shuffled(iter(range(6)), 3, [1]))[2:]
    [2, 5, 0, 4]
    >>> held, after, random = replay(6, 3, [1], 2)
    >>> list(shuffled(iter(range(after, 6)), 3, [1], (held, random)))
    [2, 5, 0, 4]
    """
    random = np.random.default_rng(seed)
    held = list(range(min(size, total)))
    swaps = min(taken, total - len(held))
    if swaps:
        for number, place in enumerate(random.integers(len(held), size=swaps).tolist(), len(held)):
            held[place] = number
    after = len(held) + swaps
    if after < total:
        return held, after, random
    return [held[place] for place in random.permutation(len(held)).tolist()][taken - swaps :], total, None
