"""Stages that turn one item into one or none: map, decode, select, rename, to_tuple, …"""

from __future__ import annotations

import itertools
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any, ClassVar

from tarviz.dialects.webdataset.autodecode import Decoder
from tarviz.dialects.webdataset.handlers import Handler, reraise_exception
from tarviz.dialects.webdataset.parts.samples import Sample
from tarviz.dialects.webdataset.utils import PipelineStage
from tarviz.model.errors import SchemaError, UsageError

Groups = tuple[tuple[str, ...], ...]


class Stage(PipelineStage, ABC):
    """One step of a pipeline. Called with an iterable it runs by itself, with random numbers of Python's own generator."""

    prompt: ClassVar[bool] = True

    @abstractmethod
    def run(self, source: Iterator[Any], seed: str) -> Iterator[Any]:
        """The items after the stage; `seed` is a text, its own in every pass and process."""

    def __call__(self, source: Iterable[Any]) -> Iterator[Any]:
        return self.run(iter(source), str(random.getrandbits(64)))


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
    none_is_error: bool | None = None  # None: as `missing_is_error`

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
        if any(value is None for value in result) and (self.missing_is_error if self.none_is_error is None else self.none_is_error):
            raise SchemaError(f"a value of {names_of(self.groups)} is None.", hint="none_is_error=False lets it pass.", **_place(item))
        return tuple(result)


@dataclass(frozen=True)
class MapTuple(Each):
    """One function for each place of a tuple; None leaves a place as it is, places after the last function too."""

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
                raise MissingFieldError.of(item, (name,))
            result[name] = f(item[name])
        return result


@dataclass(frozen=True)
class Associate(Each):
    """What a dict has for the key, or a function of the key returns, added to each sample."""

    associator: Any

    def one(self, item: Sample) -> Sample:
        extra = self.associator(item["__key__"]) if callable(self.associator) else self.associator.get(item["__key__"], {})
        return {**item, **extra}


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
            found = next(((new, pattern) for new, pattern in reversed(self.renamings) if fits(name, pattern)), None)
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
            found = [name for name in item if any(fits(name, pattern) for pattern in group)]
            if not found and not self.ignore_missing:
                raise missing(item, group)
            if len(found) > 1 and self.duplicate_is_error:
                raise SchemaError(f"{', '.join(found)} all fit {';'.join(group)!r}.", **_place(item))
            result += [item[name] for name in found[:1]]
        return tuple(result)


def groups_of(names: Sequence[Any]) -> Groups:
    """`("jpg;png", "cls")`, `("jpg;png cls",)` or `(["jpg", "png"], "cls")` as groups of alternatives."""
    parts = names[0].split() if len(names) == 1 and isinstance(names[0], str) else names
    groups = tuple(tuple(part.split(";") if isinstance(part, str) else part) for part in parts)
    if not groups or not all(group and all(isinstance(name, str) and name for name in group) for group in groups):
        raise UsageError(f"expected names of fields, got {names!r}.", hint='For example to_tuple("jpg;png", "cls").')
    return groups


class MissingFieldError(SchemaError, KeyError):
    """A function is meant for a field that a sample does not have."""

    @classmethod
    def of(cls, sample: Sample, group: Sequence[str]) -> MissingFieldError:
        """The error for that sample."""
        return cls(missing(sample, group).message, **_place(sample))


def names_of(groups: Groups) -> str:
    """Groups of alternatives as they were written."""
    return " ".join(";".join(group) for group in groups)


def missing(sample: Sample, group: Sequence[str]) -> SchemaError:
    """The error for a field that a sample does not have."""
    return SchemaError(f"the record has no field {' or '.join(map(repr, group))}; there are {_names(sample)}.", **_place(sample))


def _place(sample: Sample) -> dict[str, Any]:
    return {"shard": sample.get("__url__"), "key": sample.get("__key__")}


def _names(sample: Sample) -> str:
    return ", ".join(name for name in sample if not name.startswith("__")) or "none"


def fits(name: str, pattern: str) -> bool:
    """Whether a field's name, with or without a dot before it, fits a pattern."""
    return fnmatch(name.lower(), pattern) or fnmatch(f".{name.lower()}", pattern)
