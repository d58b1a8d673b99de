"""The stages of a pipeline after its source: each takes an iterator and gives one; all are values that pickle.

`prompt` stages hold nothing back between two results, so that a pass can be resumed after them; the others are resumed by
running them again.
"""

from __future__ import annotations

import itertools
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tarviz.dialects.webdataset.autodecode import Decoder
from tarviz.dialects.webdataset.handlers import Handler, reraise_exception
from tarviz.dialects.webdataset.parts.per_item import ToTuple
from tarviz.dialects.webdataset.parts.places import Passes
from tarviz.dialects.webdataset.parts.samples import Needs
from tarviz.dialects.webdataset.utils import PipelineStage
from tarviz.model.errors import UsageError


class Stage(PipelineStage, ABC):
    """One step of a pipeline. Called with an iterable it runs by itself, with random numbers of Python's own generator."""

    prompt: bool = False

    @abstractmethod
    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        """The items after the stage; `seed` is a text, its own in every pass and process."""

    def __call__(self, source: Iterable[Any]) -> Iterator[Any]:
        return self.run(iter(source), str(random.getrandbits(64)))


@dataclass(frozen=True)
class Each(Stage):
    """A stage that turns one item into one, or into none where `f` returns None."""

    f: Callable[[Any], Any]
    handler: Handler = reraise_exception
    prompt: bool = True

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        f, handler = self.f, self.handler
        for item in source:
            try:
                result = f(item)
            except Exception as error:  # noqa: BLE001  the handler decides
                if handler(error):
                    continue
                return
            if result is not None:
                yield result


@dataclass(frozen=True)
class Custom(Stage):
    """A function from iterator to iterator, which may want the seed too, or an object with `run`."""

    f: Any
    prompt: bool = False
    seeded: bool = False

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        if self.seeded:
            return iter(self.f(source, seed))
        return iter(self.f.run(source) if isinstance(self.f, PipelineStage) or not callable(self.f) else self.f(source))


@dataclass(frozen=True)
class Shuffle(Stage):
    """Items in the order that a buffer of `size` gives; the first comes when `initial` are there."""

    size: int
    initial: int = 100
    seed: Any = None
    rng: random.Random | None = None

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        chance = (self.rng or random.Random(seed if self.seed is None else f"{self.seed}/{seed}")).random
        buffer: list[Any] = list(itertools.islice(source, min(self.initial, self.size)))
        for item in source:
            buffer.append(item)
            if len(buffer) < self.size:
                buffer += itertools.islice(source, 1)
            yield _draw(buffer, chance)
        while buffer:
            yield _draw(buffer, chance)


def _draw(buffer: list[Any], chance: Callable[[], float]) -> Any:
    at = int(chance() * len(buffer))
    buffer[at], buffer[-1] = buffer[-1], buffer[at]
    return buffer.pop()


class Memory(Stage):
    """Keeps what passes; from the second pass on it comes from memory, in every process that has seen a whole one."""

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


def batches(size: int, collate: Callable[[list[Any]], Any] | None, partial: bool, source: Iterator[Any]) -> Iterator[Any]:
    """`size` items as one, a list where there is no `collate`; the rest at the end as a smaller one where `partial`."""
    while batch := list(itertools.islice(source, size)):
        if len(batch) == size or partial:
            yield batch if collate is None else collate(batch)


def rows(source: Iterator[Any]) -> Iterator[Any]:
    """Batches of tuples or dicts taken apart again."""
    for batch in source:
        if not isinstance(batch, Mapping | tuple | list):
            raise UsageError(f"unbatched works on tuples and dicts of columns, got {type(batch).__name__}.", hint="batched makes them.")
        columns = batch.values() if isinstance(batch, Mapping) else batch
        if any(isinstance(column, Mapping) or not hasattr(column, "__len__") for column in columns) or len({*map(len, columns)}) > 1:
            kinds = ", ".join(type(column).__name__ for column in columns)
            raise UsageError(f"unbatched works on columns of one length, got {kinds}.", hint="batched makes them.")
        rows = zip(*columns, strict=True)
        yield from (dict(zip(batch, row, strict=True)) for row in rows) if isinstance(batch, Mapping) else rows


def items(source: Iterator[Any]) -> Iterator[Any]:
    """Lists taken apart again."""
    for batch in source:
        if not isinstance(batch, list | tuple):
            raise UsageError(f"unlisted works on lists, got {type(batch).__name__}.", hint="listed makes them.")
        yield from batch


def part(bounds: Sequence[int | None], source: Iterator[Any]) -> Iterator[Any]:
    """Items by number, as `itertools.islice` takes them."""
    return itertools.islice(source, *bounds)


def sample(p: float, source: Iterator[Any], seed: str) -> Iterator[Any]:
    """Each item with probability `p`."""
    chance = random.Random(seed).random
    return (item for item in source if chance() < p)


def draws(count: int, source: Iterator[Any], seed: str) -> Iterator[Any]:
    """`count` of the items, drawn with replacement."""
    draw, items = random.Random(seed), list(source)
    return (draw.choice(items) for _ in itertools.islice(itertools.count(), count if items else 0))


def fuse(stages: Sequence[Stage]) -> tuple[list[Stage], Needs | None]:
    """The stages with decode and to_tuple made one where they follow each other, and the fields the source has to cut out."""
    result = list(stages)
    places = [at for at, stage in enumerate(result) if not isinstance(stage, Shuffle)][:2]
    match [result[at] for at in places]:
        case [Each(Decoder() as decoder, handler), Each(ToTuple(decoder=None) as take, other)] if handler is other:
            result[places[1]] = Each(replace(take, decoder=decoder), handler)
            del result[places[0]]
            return result, Needs(take.groups)
        case [Each(ToTuple() as take), *_]:
            return result, Needs(take.groups)
    return result, None
