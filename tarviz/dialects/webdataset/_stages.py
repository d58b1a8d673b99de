"""The stages of a `WebDataset` behind its source: each takes an iterator and gives one; all are values that pickle.

`prompt` stages hold nothing back between two results, so that a pass can be resumed behind them; the others are resumed by
running them again.
"""

from __future__ import annotations

import itertools
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any, ClassVar

import numpy as np

from tarviz.dialects.webdataset._decode import Decoder
from tarviz.dialects.webdataset._handlers import Handler, reraise_exception
from tarviz.dialects.webdataset._source import Needs, Sample
from tarviz.model.errors import SchemaError, UsageError

Groups = tuple[tuple[str, ...], ...]


class Stage(ABC):
    """One step of a data set."""

    prompt: ClassVar[bool] = True

    @abstractmethod
    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        """The items behind the stage; `seed` is a text, its own in every pass and process."""


@dataclass(frozen=True)
class Each(Stage):
    """A stage that turns one item into one, or into none where `one` returns None."""

    handler: Handler = field(default=reraise_exception, kw_only=True)

    @abstractmethod
    def one(self, item: Any) -> Any:
        """What becomes of one item; None leaves it out."""

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        one, handler = self.one, self.handler
        for item in source:
            try:
                result = one(item)
            except Exception as error:  # noqa: BLE001  the handler decides
                if handler(error):
                    continue
                return
            if result is not None:
                yield result


@dataclass(frozen=True)
class Map(Each):
    """`f` of each item; None drops it. A dict keeps its `__key__`."""

    f: Callable[[Any], Any]

    def one(self, item: Any) -> Any:
        result = self.f(item)
        if isinstance(result, dict) and "__key__" not in result and isinstance(item, dict) and "__key__" in item:
            result["__key__"] = item["__key__"]
        return result


@dataclass(frozen=True)
class Decode(Each):
    """The fields of each sample decoded."""

    decoder: Decoder

    def one(self, item: Sample) -> Sample:
        return self.decoder(item)


@dataclass(frozen=True)
class ToTuple(Each):
    """Fields as a tuple, decoded on the way where a `decoder` is given: what nobody asks for is not decoded."""

    groups: Groups
    missing_is_error: bool = True
    decoder: Decoder | None = None

    def one(self, item: Sample) -> tuple[Any, ...]:
        if not isinstance(item, dict):
            raise UsageError(f"to_tuple works on samples that are dicts, got {type(item).__name__}.")
        result: list[Any] = []
        for group in self.groups:
            name = next((name for name in group if name in item), None)
            if name is None:
                if self.missing_is_error:
                    raise missing(item, group)
                result.append(None)
            elif self.decoder is None or name.startswith("__"):
                result.append(item[name])
            else:
                result.append(self.decoder.field(item, name, item[name]))
        return tuple(result)


@dataclass(frozen=True)
class MapTuple(Each):
    """One function for each place of a tuple; None leaves a place as it is, places behind the last function too."""

    functions: tuple[Callable[[Any], Any] | None, ...]
    exact: bool = False  # as many functions as values

    def one(self, item: Any) -> tuple[Any, ...]:
        if not isinstance(item, tuple | list):
            raise UsageError(f"map_tuple works on tuples, got {type(item).__name__}.", hint="Put to_tuple before it.")
        if len(self.functions) > len(item) or (self.exact and len(self.functions) < len(item)):
            raise UsageError(f"there are {len(self.functions)} functions for {len(item)} values.")
        padded = itertools.chain(self.functions, itertools.repeat(None))
        return tuple(value if f is None else f(value) for f, value in zip(padded, item, strict=False))


@dataclass(frozen=True)
class MapDict(Each):
    """A function for each field that is named."""

    functions: tuple[tuple[str, Callable[[Any], Any]], ...]

    def one(self, item: Sample) -> Sample:
        result = dict(item)
        for name, f in self.functions:
            if name not in item:
                raise missing(item, (name,))
            result[name] = f(item[name])
        return result


@dataclass(frozen=True)
class Select(Each):
    """The items for which `predicate` is true."""

    predicate: Callable[[Any], Any]

    def one(self, item: Any) -> Any:
        return item if self.predicate(item) else None


@dataclass(frozen=True)
class Rename(Each):
    """New names for fields, `new → old`, of alternatives the first that is there; `keep` holds on to all other fields."""

    moves: tuple[tuple[str, tuple[str, ...]], ...]
    keep: bool = True

    def one(self, item: Sample) -> Sample:
        old = {name for _, group in self.moves for name in group}
        result = {name: value for name, value in item.items() if name not in old} if self.keep else {}
        for new, group in self.moves:
            name = next((name for name in group if name in item), None)
            if name is None:
                raise missing(item, group)
            result[new] = item[name]
        return result


@dataclass(frozen=True)
class RenameKeys(Each):
    """New names for fields found by pattern (`new`, `*.old`); the last pattern that fits counts."""

    renamings: tuple[tuple[str, str], ...]
    keep_unselected: bool = False
    must_match: bool = True
    duplicate_is_error: bool = True

    def one(self, item: Sample) -> Sample:
        result: Sample = {}
        matched = set()
        for name, value in item.items():
            found = next(((new, pattern) for new, pattern in reversed(self.renamings) if _fits(name, pattern)), None)
            if found is None:
                if self.keep_unselected:
                    result[name] = value
                continue
            matched.add(found[1])
            if found[0] not in result:
                result[found[0]] = value
            elif self.duplicate_is_error:
                raise SchemaError(f"two fields become {found[0]!r}.", **_place(item))
        if self.must_match and (left := [pattern for _, pattern in self.renamings if pattern not in matched]):
            raise SchemaError(f"no field fits the pattern {left[0]!r}; there are {_names(item)}.", **_place(item))
        return result


@dataclass(frozen=True)
class ExtractKeys(Each):
    """The fields that fit patterns (`*.jpg;*.png`) as a tuple."""

    patterns: Groups
    duplicate_is_error: bool = True
    ignore_missing: bool = False

    def one(self, item: Sample) -> tuple[Any, ...]:
        result = []
        for group in self.patterns:
            fits = [name for name in item if any(_fits(name, pattern) for pattern in group)]
            if not fits and not self.ignore_missing:
                raise missing(item, group)
            if len(fits) > 1 and self.duplicate_is_error:
                raise SchemaError(f"{', '.join(fits)} all fit {';'.join(group)!r}.", **_place(item))
            result += [item[name] for name in fits[:1]]
        return tuple(result)


@dataclass(frozen=True)
class Shuffle(Stage):
    """Items in the order that a buffer of `size` gives; the first comes when `initial` are there."""

    size: int
    initial: int = 100
    seed: int | None = None

    prompt: ClassVar[bool] = False

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        chance = random.Random(seed if self.seed is None else f"{self.seed}/{seed}").random
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
class Custom(Stage):
    """A function from iterator to iterator."""

    f: Callable[[Iterator[Any]], Iterable[Any]]

    prompt: ClassVar[bool] = False

    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        return iter(self.f(source))


def default_collation_fn(samples: Sequence[Any]) -> Any:
    """A batch of samples: numbers and arrays stacked along a new first axis, anything else a list; tuples and dicts are kept.

    >>> default_collation_fn([(1, b"a"), (2, b"b")])
    (array([1, 2]), [b'a', b'b'])
    """
    first = samples[0]
    if isinstance(first, dict):
        if any(sample.keys() != first.keys() for sample in samples):
            raise SchemaError("samples of one batch have different fields.", hint="Put to_tuple or a map before batched.")
        return {name: _combined([sample[name] for sample in samples], name) for name in first}
    return tuple(_combined(list(column), place) for place, column in enumerate(zip(*samples, strict=True)))


def _combined(values: list[Any], name: object) -> Any:
    first = values[0]
    if isinstance(first, int | float):
        return np.array(values)
    if not hasattr(first, "shape") or isinstance(first, str | bytes):
        return values
    if len(shapes := {tuple(value.shape) for value in values}) > 1:
        some = ", ".join(str(list(shape)) for shape in sorted(shapes)[:3])
        raise SchemaError(f"the values of {name!r} in one batch have the shapes {some}.", hint="Resize or crop them before batched.")
    if isinstance(first, np.ndarray | np.generic):
        return np.stack(values)
    import torch

    return torch.stack(values)


def groups_of(names: Sequence[Any]) -> Groups:
    """`("jpg;png", "cls")`, `("jpg;png cls",)` or `(["jpg", "png"], "cls")` as groups of alternatives."""
    parts = names[0].split() if len(names) == 1 and isinstance(names[0], str) else names
    groups = tuple(tuple(part.split(";") if isinstance(part, str) else part) for part in parts)
    if not groups or not all(group and all(isinstance(name, str) and name for name in group) for group in groups):
        raise UsageError(f"expected names of fields, got {names!r}.", hint='For example to_tuple("jpg;png", "cls").')
    return groups


def fused(stages: Sequence[Stage]) -> tuple[list[Stage], Needs | None]:
    """The stages with decode and to_tuple made one where they follow each other, and the fields the source has to cut out."""
    result = list(stages)
    first = next((at for at, stage in enumerate(result) if not isinstance(stage, Shuffle)), len(result))
    if first < len(result) - 1 and isinstance(decode := result[first], Decode):
        after = next((at for at in range(first + 1, len(result)) if not isinstance(result[at], Shuffle)), first)
        take = result[after]
        if isinstance(take, ToTuple) and take.decoder is None and decode.handler is take.handler:
            joined = ToTuple(take.groups, take.missing_is_error, decode.decoder, handler=take.handler)
            result[first : after + 1] = [*result[first + 1 : after], joined]
            first = after - 1
    taken = result[first] if first < len(result) else None
    return result, Needs(taken.groups) if isinstance(taken, ToTuple) else None


def missing(sample: Sample, group: Sequence[str]) -> SchemaError:
    """The error for a field that a sample does not have."""
    return SchemaError(f"the record has no field {' or '.join(map(repr, group))}; there are {_names(sample)}.", **_place(sample))


def _place(sample: Sample) -> dict[str, Any]:
    return {"shard": sample.get("__url__"), "key": sample.get("__key__")}


def _names(sample: Sample) -> str:
    return ", ".join(name for name in sample if not name.startswith("__")) or "none"


def _fits(name: str, pattern: str) -> bool:
    return fnmatch(name.lower(), pattern) or fnmatch(f".{name.lower()}", pattern)
