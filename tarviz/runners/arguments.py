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


def whole_numbers(least: int = 0, /, **values: Any) -> None:
    """The same of several arguments, of which None says nothing."""
    for name, value in values.items():
        if value is not None:
            whole_number(name, value, least)


def batches(records: int, size: int | None, drop_remainder: bool) -> int:
    """Steps that so many records make in batches of `size` (None: one by one), with or without a last one that is not full.

    >>> batches(7, 3, False), batches(7, 3, True), batches(7, None, False)
    (3, 2, 7)
    """
    if size is None:
        return records
    return records // size if drop_remainder else -(-records // size)
