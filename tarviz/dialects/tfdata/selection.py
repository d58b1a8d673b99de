"""Selections: which entries of a sample, or features of an example, are kept. A selection is a function to the names it selects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tarviz.dialects.tfdata.core import TFExample, listed
from tarviz.model.errors import UsageError

Selection: TypeAlias = Callable[[Mapping[str, Any]], Collection[str]]


@dataclass(frozen=True, slots=True)
class _ByName:
    """Names that are, begin with, end in or hold a text; an empty text selects nothing."""

    how: str
    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise UsageError(f"by_{self.how} expects a text, got {self.text!r}.")

    def __call__(self, entries: Mapping[str, Any]) -> list[str]:
        if not self.text:
            return []
        match self.how:
            case "key":
                return [name for name in entries if name == self.text]
            case "prefix":
                return [name for name in entries if name.startswith(self.text)]
            case "suffix":
                return [name for name in entries if name.endswith(self.text)]
            case _:
                return [name for name in entries if self.text in name]


@dataclass(frozen=True, slots=True)
class _ByKeyValue:
    key: str
    value: Any

    def __call__(self, entries: Mapping[str, Any]) -> list[str]:
        if self.key not in entries:
            return []
        wanted = listed(self.value) if isinstance(entries, TFExample) else self.value
        return [self.key] if _equal(entries[self.key], wanted) else []


@dataclass(frozen=True, slots=True)
class _ByFunction:
    f: Callable[[Any], Collection[str]]
    what: str

    def __post_init__(self) -> None:
        if not callable(self.f):
            raise UsageError(f"{self.what} expects a function, got {self.f!r}.")

    def __call__(self, entries: Mapping[str, Any]) -> list[str]:
        found = self.f(entries)
        if isinstance(found, str) or not isinstance(found, Collection):
            raise UsageError(f"the function of {self.what} returned {type(found).__name__}, not a list of names.")
        return [name for name in entries if name in found]


def by_key(key: str) -> Selection:
    """The entry of that name.

    >>> by_key("cls")({"cls": b"7", "cls2": b"8"})
    ['cls']
    """
    return _ByName("key", key)


def by_prefix(name: str) -> Selection:
    """Entries whose name begins with `name`."""
    return _ByName("prefix", name)


def by_suffix(name: str) -> Selection:
    """Entries whose name ends in `name`."""
    return _ByName("suffix", name)


def by_substring(name: str) -> Selection:
    """Entries whose name holds `name`."""
    return _ByName("substring", name)


def by_key_value(key: str, value: Any) -> Selection:
    """The entry of that name, where it has that value."""
    return _ByKeyValue(key, value)


def by_sample(f: Callable[[Any], Collection[str]]) -> Selection:
    """The entries whose names a function of the sample returns."""
    return _ByFunction(f, "by_sample")


def by_example(f: Callable[[Any], Collection[str]]) -> Selection:
    """The features whose names a function of the example returns."""
    return _ByFunction(f, "by_example")


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one == other)
