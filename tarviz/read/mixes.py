"""Sources of shards that are mixed by weight: which of them gives the next record."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import UsageError, redact
from tarviz.ops.chain_text import print_call

T = TypeVar("T")
Place = TypeVar("Place", bound=str | os.PathLike[str])

Stop = Literal["first", "longest"]
_DRAWS = 1024  # at a time


def mix(sources: Mapping[Place, float], *, stop: Stop = "first") -> Mix:
    """Sources of shards as one, for a `Pipeline`: each next record is of the source that is drawn, as the weights say.

    A source is a template, a path or a folder. With `stop="first"` a pass ends behind the last record of the source that is the first to be
    spent; with `"longest"` a source that is spent begins again until every record of each has come. A source without records is left out.
    The draws follow from the seed of the pipeline and the epoch; each worker of each rank draws from its own share of every source.

    >>> mix({"a-{0..9}.tar": 0.7, "b-{0..9}.tar": 0.3}, stop="longest")
    mix({"a-{0..9}.tar": 0.7, "b-{0..9}.tar": 0.3}, stop="longest")
    """
    places: list[str | os.PathLike[str]] = list(sources)
    return Mix(tuple((os.fspath(place), weight) for place, weight in zip(places, sources.values(), strict=True)), stop)


class Course(NamedTuple):
    """A whole pass: of which source each record is, the how many-th of it (on and on where it begins again), and the draws made by then."""

    sources: NDArray[np.int64]
    turns: NDArray[np.int64]
    draws: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Mix:
    """Sources and their weights. See `mix`; `rest` is what is left of a pass: all of it comes once, a source that is spent is left out."""

    weights: tuple[tuple[str, float], ...]
    stop: Stop | Literal["rest"] = "first"

    def __post_init__(self) -> None:
        for url, weight in self.weights:
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
                raise UsageError(f"the weight of {redact(url)} is {weight!r}, and no number above 0.", hint="Leave out what is not wanted.")
        if not self.weights or self.stop not in (*get_args(Stop), "rest"):
            raise UsageError(f"mix() takes sources and stop={' or '.join(map(repr, get_args(Stop)))}; this is {self!r}.")

    def __repr__(self) -> str:
        sources = {redact(url): weight for url, weight in self.weights}
        return print_call("mix", [sources], {} if self.stop == "first" else {"stop": self.stop}, quote=True)

    def _draw(self, random: np.random.Generator, count: int) -> NDArray[np.int64]:
        bounds = np.cumsum([weight for _, weight in self.weights], dtype=np.float64)
        return np.searchsorted(bounds / bounds[-1], random.random(count), side="right")

    def course(self, counts: Sequence[int], seed: list[int]) -> Course:
        """A pass over sources of so many records each.

        >>> mix({"a": 2, "b": 1}).course([4, 9], [7]).sources
        array([0, 1, 1, 0, 0, 1, 0])
        """
        random, drawn = np.random.default_rng(seed), np.empty(0, np.int64)
        there = np.flatnonzero(counts)
        while True:
            places = {source: np.flatnonzero(drawn == source) for source in there.tolist()}
            ends = [int(at[counts[source] - 1]) + 1 for source, at in places.items() if len(at) >= counts[source]]
            if len(ends) == len(there) or (ends and self.stop == "first"):
                break
            drawn = np.concatenate([drawn, self._draw(random, max(len(drawn), _DRAWS))])
        end = (min if self.stop == "first" else max)(ends, default=0)
        turns = np.full(len(drawn), -1)
        for source, at in places.items():
            turns[at] = np.arange(len(at))
            if self.stop == "rest":
                turns[at[counts[source] :]] = -1
        taken = np.flatnonzero(turns[:end] >= 0)
        return Course(drawn[taken], turns[taken], taken + 1)

    def records(
        self, opened: Callable[[int, int], Generator[T, None, None]], seed: list[int], counts: Sequence[int] = (), taken: int = 0
    ) -> Generator[T, None, None]:
        """The records of a pass in the order of its `course`; `opened(source, skip)` gives those of a source behind so many.

        Behind the first `taken` of it, where `counts` are known.
        """
        random, skips, spent = np.random.default_rng(seed), [0] * len(self.weights), set[int]()
        if taken:
            course = self.course(counts, seed)
            if taken >= len(course.sources):
                return
            random.random(int(course.draws[taken - 1]))
            skips = np.bincount(course.sources[:taken], minlength=len(counts)).tolist()
            spent = {source for source, count in enumerate(counts) if skips[source] >= count}
            skips = [skip % max(count, 1) for skip, count in zip(skips, counts, strict=True)]
        streams: dict[int, Generator[T, None, None]] = {}
        heads: dict[int, T] = {}

        def begin(source: int, skip: int = 0) -> None:
            streams[source] = opened(source, skip)
            go_on(source)

        def go_on(source: int) -> None:
            heads.pop(source, None)
            for head in streams[source]:
                heads[source] = head
                return
            spent.add(source)

        try:
            for source, skip in enumerate(skips):
                if self.stop != "rest" or source not in spent:
                    begin(source, skip)
            while heads:
                for source in self._draw(random, _DRAWS).tolist():
                    if source not in heads:
                        continue
                    yield heads[source]
                    go_on(source)
                    if source in heads:
                        continue
                    if self.stop == "first" or len(spent) == len(self.weights):
                        return
                    if self.stop == "longest":
                        begin(source)
        finally:
            for stream in streams.values():
                stream.close()
