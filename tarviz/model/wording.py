"""Numbers of things in words, and names that were meant."""

from __future__ import annotations

from collections.abc import Iterable


def plural(count: int, noun: str) -> str:
    """How many there are of something.

    >>> plural(1, "record"), plural(2500, "record"), plural(0, "class")
    ('1 record', '2,500 records', '0 classes')
    """
    return f"{count:,} {noun}{'' if count == 1 else 'es' if noun.endswith('s') else 's'}"


def did_you_mean(name: str, there: Iterable[str], form: str = "{!r}") -> str:
    """A question after the nearest of the names that are there, and a space; empty where none is near.

    >>> did_you_mean("rezise", ["flip", "resize"]), did_you_mean("x", ["flip", "resize"])
    ("Did you mean 'resize'? ", '')
    """
    import difflib  # for those who misspell only

    close = difflib.get_close_matches(name, list(there), cutoff=0.5)
    return f"Did you mean {form.format(close[0])}? " if close else ""
