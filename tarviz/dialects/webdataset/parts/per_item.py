"""What the stages do with one item: functions whose last argument is the item, so that a stage is one of them with the others given."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tarviz.dialects.webdataset.autodecode import Decoder, fits, place_of
from tarviz.dialects.webdataset.parts.samples import Sample, check_sample
from tarviz.model.errors import SchemaError, UsageError

Groups: TypeAlias = tuple[tuple[str, ...], ...]
Function: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True)
class ToTuple:
    """Fields as a tuple, decoded on the way where a `decoder` is given: what nobody asks for is not decoded."""

    groups: Groups
    missing_is_error: bool = True
    none_is_error: bool | None = None  # None: as `missing_is_error`
    decoder: Decoder | None = None

    def __call__(self, item: Sample) -> tuple[Any, ...]:
        check_sample(item, "to_tuple")
        result: list[Any] = []
        for group in self.groups:
            name = first_of(item, group)
            if name is None and self.missing_is_error:
                raise missing(item, group)
            if name is None or self.decoder is None:
                result.append(None if name is None else item[name])
            else:
                result.append(self.decoder.field(item, name, item[name]))
        if any(value is None for value in result) and (self.missing_is_error if self.none_is_error is None else self.none_is_error):
            names = " ".join(map(";".join, self.groups))
            raise SchemaError(f"a value of {names} is None.", hint="none_is_error=False lets it pass.", **place_of(item))
        return tuple(result)


def apply(f: Function, item: Any) -> Any:
    """`f` of an item; a dict keeps its `__key__`."""
    result = f(item)
    if isinstance(result, dict) and isinstance(item, dict) and "__key__" in item:
        result.setdefault("__key__", item["__key__"])
    return result


def apply_by_place(functions: Sequence[Function | None], exact: bool, item: Any) -> tuple[Any, ...]:
    """One function for each place of a tuple; None leaves a place as it is, and so do places after the last function unless `exact`."""
    if not isinstance(item, tuple | list):
        raise UsageError(f"map_tuple works on tuples, got {type(item).__name__}.", hint="Put to_tuple before it.")
    if len(functions) > len(item) or (exact and len(functions) < len(item)):
        raise UsageError(f"there are {len(functions)} functions for {len(item)} values.")
    return tuple(value if f is None else f(value) for f, value in itertools.zip_longest(functions, item))


def apply_by_name(functions: dict[str, Function], item: Sample) -> Sample:
    """A function for each field that is named."""
    check_sample(item, "map_dict")
    result = dict(item)
    for name, f in functions.items():
        if name not in item:
            raise MissingFieldError(missing(item, (name,)).message, **place_of(item))
        result[name] = f(item[name])
    return result


def with_associate(associator: Any, item: Sample) -> Sample:
    """What a dict has for the key, or a function of the key returns, added to a sample."""
    key = item["__key__"]
    return {**item, **(associator(key) if callable(associator) else associator.get(key, {}))}


def select(predicate: Function, item: Any) -> Any:
    """The item, or None where `predicate` is false."""
    return item if predicate(item) else None


def rename(moves: Mapping[str, Sequence[str]], keep: bool, item: Sample) -> Sample:
    """New names for fields, `new → old`, of alternatives the first that is there; `keep` holds on to all other fields."""
    check_sample(item, "rename")
    old = {name for group in moves.values() for name in group}
    result = {name: value for name, value in item.items() if name not in old} if keep else {}
    for new, group in moves.items():
        if (name := first_of(item, group)) is None:
            raise missing(item, group)
        result[new] = item[name]
    return result


def rename_by_pattern(
    pairs: Sequence[tuple[str, str]], keep_unselected: bool, must_match: bool, duplicate_is_error: bool, item: Sample
) -> Sample:
    """New names for fields found by pattern (`new`, `*.old`); the last pattern that fits counts."""
    check_sample(item, "rename_keys")
    result: Sample = {}
    matched = set()
    for name, value in item.items():
        new, pattern = next((pair for pair in reversed(pairs) if fits(name.lower(), pair[1])), (name, None))
        if pattern is None:
            if keep_unselected:
                result[name] = value
            continue
        matched.add(pattern)
        if duplicate_is_error and new in result:
            raise SchemaError(f"two fields become {new!r}.", **place_of(item))
        result.setdefault(new, value)
    if must_match and (left := [pattern for _, pattern in pairs if pattern not in matched]):
        raise SchemaError(f"no field fits the pattern {left[0]!r}; there are {_names(item)}.", **place_of(item))
    return result


def extract(patterns: Groups, duplicate_is_error: bool, ignore_missing: bool, item: Sample) -> tuple[Any, ...]:
    """The fields that fit patterns (`*.jpg;*.png`) as a tuple."""
    check_sample(item, "extract_keys")
    result = []
    for group in patterns:
        found = [name for name in item if any(fits(name, pattern) for pattern in group)]
        if not found and not ignore_missing:
            raise missing(item, group)
        if len(found) > 1 and duplicate_is_error:
            raise SchemaError(f"{', '.join(found)} all fit {';'.join(group)!r}.", **place_of(item))
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


def first_of(item: Any, names: Sequence[str]) -> str | None:
    """The first of some names that an item has."""
    return next((name for name in names if name in item), None)


def missing(sample: Any, group: Sequence[str]) -> SchemaError:
    """The error for a field that a sample does not have."""
    return SchemaError(f"the record has no field {' or '.join(map(repr, group))}; there are {_names(sample)}.", **place_of(sample))


def _names(sample: Any) -> str:
    return ", ".join(name for name in sample if not name.startswith("__")) or "none"
