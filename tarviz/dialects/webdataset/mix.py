"""`webdataset.mix`: data sets mixed, in turns or by chance."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tarviz.dialects.webdataset.parts.places import Base, Passes
from tarviz.model.errors import UsageError


def round_robin_shortest(*sources: Iterator[Any]) -> Iterator[Any]:
    """One item of each in turn, until one of them has no more."""
    for source in itertools.cycle(sources):
        try:
            item = next(source)
        except StopIteration:
            return
        yield item


def round_robin_longest(*sources: Iterator[Any]) -> Iterator[Any]:
    """One item of each in turn, until none has any more.

    >>> list(round_robin_longest(iter("aaa"), iter("b")))
    ['a', 'b', 'a', 'a']
    """
    left = deque(sources)
    while left:
        source = left.popleft()
        for item in itertools.islice(source, 1):
            yield item
            left.append(source)


class RoundRobin(Base):
    """Data sets in turns: until the first one ends, or with `longest` until all have."""

    def __init__(self, datasets: Sequence[Iterable[Any]], longest: bool = False) -> None:
        self.datasets = datasets
        self.longest = longest

    def __iter__(self) -> Iterator[Any]:
        sources = [iter(dataset) for dataset in self.datasets]
        return round_robin_longest(*sources) if self.longest else round_robin_shortest(*sources)


def random_samples(
    sources: Sequence[Iterator[Any]], probs: Sequence[float] | None = None, longest: bool = False, rng: random.Random | None = None
) -> Iterator[Any]:
    """An item of a source drawn by chance, `probs` being their weights, until the first one ends, or with `longest` until all have."""
    left, weights = list(sources), list(probs if probs is not None else [1] * len(sources))
    if len(left) != len(weights) or min(weights, default=0) < 0:
        raise UsageError(f"there are {len(weights)} weights for {len(left)} data sets.", hint="Give one from 0 on for each.")
    draw = rng or random.Random(random.getrandbits(64))
    while left and sum(weights) > 0:
        at = draw.choices(range(len(left)), weights)[0]
        try:
            item = next(left[at])
        except StopIteration:
            if not longest:
                return
            del left[at], weights[at]
            continue
        yield item


class RandomMix(Base):
    """Data sets mixed by chance, `probs` being their weights; the draws are others in every pass, rank and worker.

    It ends with the first data set that ends, or with `longest` when all have.
    """

    def __init__(
        self, datasets: Sequence[Iterable[Any]], probs: Sequence[float] | None = None, longest: bool = False, seed: Any = None
    ) -> None:
        self.datasets = datasets
        self.probs = probs
        self.longest = longest
        self.seed = seed
        self._passes = Passes()

    def __iter__(self) -> Iterator[Any]:
        here = self._passes.here()
        draw = random.Random(f"{self.seed}/{self._passes.begin(here)}/{here.chance}/{here.node}/{here.worker}")
        return random_samples([iter(dataset) for dataset in self.datasets], self.probs, self.longest, draw)
