"""The arguments `carry` and `visible`, checked: what goes along with a picture, in what form, how much of a box has to be left."""

from __future__ import annotations

from typing import Any

from tarviz.looks.shapes import FORMATS
from tarviz.model.errors import ChainError

_FORMS = (*FORMATS, "points")


def carried_names(op: str, ext: str, names: Any) -> str | tuple[str, ...]:
    """Fields to be carried along, checked: one as a str, none or several as a tuple."""
    each = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, tuple | list) else (names,)
    for name in each:
        if not isinstance(name, str) or not name or form_of(name)[0] in ext.split(";"):
            raise ChainError(
                f"{op} carries fields that lie over {ext}, got {name!r}.", hint=f"For example {op}({ext}, …, carry=(json, seg.png))."
            )
    return each[0] if len(each) == 1 else each


def form_of(name: str) -> tuple[str, str]:
    """A field and the form behind a colon.

    >>> form_of("json:xyxy"), form_of("json")
    (('json', 'xyxy'), ('json', ''))
    """
    field, colon, form = name.rpartition(":")
    if not colon:
        return name, ""
    if form not in _FORMS:
        raise ChainError(f"boxes have no form {form!r} ({name!r}).", hint=f"There are: {', '.join(_FORMS)}.")
    return field, form


def share_left(op: str, visible: Any) -> float | None:
    """The least share that has to be left, checked."""
    if visible is not None and (isinstance(visible, bool) or not isinstance(visible, int | float) or not 0 <= visible <= 1):
        raise ChainError(f"{op} expects visible as a share between 0 and 1, or None, got {visible!r}.")
    return visible
