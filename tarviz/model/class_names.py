"""Names of classes by their numbers, as people give them: a list, a mapping, a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path

from tarviz.model.errors import UsageError

ClassNames = str | PathLike[str] | Sequence[str] | Mapping[int, str]

_MOST = 1_000_000


def class_names(classes: ClassNames) -> dict[int, str]:
    """Names by number: a sequence counts from 0, a mapping (its keys may be texts, as in an `id2label`) names the numbers it has, and a
    file has a name a line, from 0. `UsageError` for a file that cannot be read and for numbers outside of 0 … 999 999.

    >>> class_names(["cat", "dog"]), class_names({"7": "owl"})
    ({0: 'cat', 1: 'dog'}, {7: 'owl'})
    """
    if isinstance(classes, str | PathLike):
        try:
            text = Path(classes).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"the names of classes {fspath(classes)!r} cannot be read: {error}.", hint="A file of them has one a line."
            ) from error
        classes = text.removesuffix("\n").split("\n") if text else ()
    found = dict(classes.items() if isinstance(classes, Mapping) else enumerate(classes))
    try:
        named = {int(number): str(name) for number, name in found.items()}
    except (TypeError, ValueError):
        named = {-1: ""}
    if named and not (min(named) >= 0 and max(named) < _MOST):
        raise UsageError(f"names of classes have numbers of 0 to {_MOST - 1:,}, not {', '.join(map(repr, found))[:80]}.")
    return named


def from_zero(named: Mapping[int, str]) -> list[str]:
    """The names of 0, 1, …; "" for a number without one.

    >>> from_zero({0: "cat", 2: "owl"})
    ['cat', '', 'owl']
    """
    return [named.get(number, "") for number in range(max(named, default=-1) + 1)]
