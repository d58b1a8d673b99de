"""Numbers of things in words."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """How many there are of something.

    >>> plural(1, "record"), plural(2500, "record"), plural(0, "class")
    ('1 record', '2,500 records', '0 classes')
    """
    return f"{count:,} {noun}{'' if count == 1 else 'es' if noun.endswith('s') else 's'}"
