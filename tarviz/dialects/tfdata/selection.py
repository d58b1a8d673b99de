"""Selections: which entries of a sample, or features of an example, are kept. A selection is a function to the names it selects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from tarviz.dialects import check_function
from tarviz.dialects.tfdata.core import TFExample, as_list
from tarviz.model.errors import UsageError

Selection: TypeAlias = Callable[[Mapping[str, Any]], Collection[str]]


def _by(what: str, text: Any, fits: Callable[[str, str], bool]) -> Selection:
    """The names that fit a text; an empty one selects nothing."""
    if not isinstance(text, str):
        raise UsageError(f"by_{what} expects a text, got {text!r}.")
    return lambda entries: [name for name in entries if text and fits(name, text)]


def by_key(key: str) -> Selection:
    """The entry of that name.

    >>> by_key("cls")({"cls": b"7", "cls2": b"8"})
    ['cls']
    """
    return _by("key", key, str.__eq__)


def by_prefix(name: str) -> Selection:
    """Entries whose name begins with `name`."""
    return _by("prefix", name, str.startswith)


def by_suffix(name: str) -> Selection:
    """Entries whose name ends in `name`."""
    return _by("suffix", name, str.endswith)


def by_substring(name: str) -> Selection:
    """Entries whose name holds `name`."""
    return _by("substring", name, str.__contains__)


def by_key_value(key: str, value: Any) -> Selection:
    """The entry of that name, where it has that value."""

    def select(entries: Mapping[str, Any]) -> list[str]:
        wanted = as_list(value) if isinstance(entries, TFExample) else value
        return [key] if key in entries and _equal(entries[key], wanted) else []

    return select


def by_sample(f: Callable[[Any], Collection[str]]) -> Selection:
    """The entries whose names a function of the sample returns."""
    return _by_function(f, "by_sample")


def by_example(f: Callable[[Any], Collection[str]]) -> Selection:
    """The features whose names a function of the example returns."""
    return _by_function(f, "by_example")


def _by_function(f: Callable[[Any], Collection[str]], what: str) -> Selection:
    check_function(f, f"{what} expects a function")

    def select(entries: Mapping[str, Any]) -> list[str]:
        found = f(entries)
        if isinstance(found, str) or not isinstance(found, Collection):
            raise UsageError(f"the function of {what} returned {type(found).__name__}, not a list of names.")
        return [name for name in entries if name in found]

    return select


def _equal(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one, other) if np.ndarray in (type(one), type(other)) else one == other)
