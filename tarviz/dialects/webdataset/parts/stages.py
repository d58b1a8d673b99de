"""The stages of a pipeline after its source: each takes an iterator and gives one; all are values that pickle.

`prompt` stages hold nothing back between two results, so that a pass can be resumed after them; the others are resumed by
running them again.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tarviz.dialects.webdataset.parts.per_item import Decode, Stage, ToTuple
from tarviz.dialects.webdataset.parts.places import Passes
from tarviz.dialects.webdataset.parts.samples import Needs
from tarviz.dialects.webdataset.utils import PipelineStage


@dataclass(frozen=True)
class Shuffle(Stage):
    """Items in the order that a buffer of `size` gives; the first comes when `initial` are there."""

    size: int
    initial: int = 100
    seed: Any = None
    rng: random.Random | None = None

    prompt: ClassVar[bool] = False

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        chance = (self.rng or random.Random(seed if self.seed is None else f"{self.seed}/{seed}")).random
        buffer: list[Any] = list(itertools.islice(source, min(self.initial, self.size)))
        for item in source:
            buffer.append(item)
            if len(buffer) < self.size:
                buffer += itertools.islice(source, 1)
            at = int(chance() * len(buffer))
            buffer[at], buffer[-1] = buffer[-1], buffer[at]
            yield buffer.pop()
        while buffer:
            at = int(chance() * len(buffer))
            buffer[at], buffer[-1] = buffer[-1], buffer[at]
            yield buffer.pop()


@dataclass(frozen=True)
class Batched(Stage):
    """`size` items as one; the rest at the end as a smaller one where `partial`. `collation_fn` None leaves a list."""

    size: int
    collation_fn: Callable[[list[Any]], Any] | None
    partial: bool = True

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        while batch := list(itertools.islice(source, self.size)):
            if len(batch) == self.size or self.partial:
                yield batch if self.collation_fn is None else self.collation_fn(batch)


@dataclass(frozen=True)
class Unbatched(Stage):
    """Batches of tuples or dicts taken apart again; lists of items where `listed`."""

    listed: bool = False

    prompt: ClassVar[bool] = False

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        for batch in source:
            if self.listed:
                yield from batch
            elif isinstance(batch, Mapping):
                yield from (dict(zip(batch, row, strict=True)) for row in zip(*batch.values(), strict=True))
            else:
                yield from zip(*batch, strict=True)


@dataclass(frozen=True)
class Slice(Stage):
    """Items by number, as `itertools.islice` takes them."""

    bounds: tuple[int | None, ...]

    prompt: ClassVar[bool] = False

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        return itertools.islice(source, *self.bounds)


@dataclass(frozen=True)
class Sampled(Stage):
    """Each item with probability `p`."""

    p: float

    prompt: ClassVar[bool] = False

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        chance = random.Random(seed).random
        return (item for item in source if chance() < self.p)


@dataclass(frozen=True)
class Resampled(Stage):
    """`count` of the items, drawn with replacement."""

    count: int

    prompt: ClassVar[bool] = False

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        draw, items = random.Random(seed), list(source)
        return (draw.choice(items) for _ in itertools.islice(itertools.count(), self.count if items else 0))


class Memory(Stage):
    """Keeps what passes; from the second pass on it comes from memory, in every process that has seen a whole one."""

    prompt: ClassVar[bool] = False

    def __init__(self) -> None:
        self.cached: list[Any] | None = None

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        if self.cached is not None:
            yield from self.cached
            return
        kept: list[Any] = []
        for item in source:
            kept.append(item)
            yield item
        self.cached = kept


class Determined(Stage):
    """A shuffle whose order depends on its own seed and on the number of the pass, whatever pipeline it is in."""

    prompt: ClassVar[bool] = False

    def __init__(self, bufsize: int = 1000, initial: int = 100, seed: Any = 0, epoch: int = -1) -> None:
        self.bufsize, self.initial, self.seed = bufsize, initial, seed
        self._passes = Passes(epoch + 1)

    @property
    def epoch(self) -> int:
        """The number of the latest pass."""
        return self._passes.next - 1

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._passes.pin(epoch + 1)

    def run(self, source: Iterator[Any], seed: str = "") -> Iterator[Any]:
        number = self._passes.begin(self._passes.here())
        return Shuffle(self.bufsize, self.initial).run(iter(source), f"{self.seed}/{number}")


@dataclass(frozen=True)
class Custom(Stage):
    """A function from iterator to iterator, or an object with `run`."""

    f: Any

    prompt: ClassVar[bool] = False

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        return iter(self.f.run(source) if isinstance(self.f, PipelineStage) or not callable(self.f) else self.f(source))

    def __str__(self) -> str:
        return str(self.f)


def fused(stages: Sequence[Stage]) -> tuple[list[Stage], Needs | None]:
    """The stages with decode and to_tuple made one where they follow each other, and the fields the source has to cut out."""
    result = list(stages)
    first = next((at for at, stage in enumerate(result) if not isinstance(stage, Shuffle)), len(result))
    if first < len(result) - 1 and isinstance(decode := result[first], Decode):
        after = next((at for at in range(first + 1, len(result)) if not isinstance(result[at], Shuffle)), first)
        take = result[after]
        if isinstance(take, ToTuple) and take.decoder is None and decode.handler is take.handler:
            joined = ToTuple(take.groups, take.missing_is_error, decode.decoder, take.none_is_error, handler=take.handler)
            result[first : after + 1] = [*result[first + 1 : after], joined]
            first = after - 1
    taken = result[first] if first < len(result) else None
    return result, Needs(taken.groups) if isinstance(taken, ToTuple) else None
