"""What all runners ask of the numbers they are given."""

from __future__ import annotations

from typing import Any

from tarviz.model.errors import UsageError


def whole_number(name: str, value: Any, least: int = 0) -> None:
    """`UsageError` unless the argument `name` is a whole number from `least` on; True and False are none.

    >>> whole_number("batch", 0, 1)
    Traceback (most recent call last):
    tarviz.model.errors.UsageError: E_USAGE: batch=0 is not a whole number from 1 on.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UsageError(f"{name}={value!r} is not a whole number from {least} on.")
