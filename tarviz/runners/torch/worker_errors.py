"""Errors of worker processes: the one that a `DataLoader` raises in its process is the one that its worker raised."""

from __future__ import annotations

import copyreg
from typing import Any

from tarviz.model.errors import TarvizError


class _Travelling(type):
    """The class of the class of an error on its way; a `DataLoader` sends the class of an error and its traceback, not the error."""


def _arrive(error: TarvizError) -> Any:
    """What the class becomes in the other process: a function of the traceback's text that gives the error itself."""

    def give(message: str = "") -> TarvizError:
        error.add_note(message)
        return error

    give.__name__ = type(error).__name__
    return give


def _depart(kind: Any) -> tuple[Any, ...]:
    return _arrive, (kind.carried,)


copyreg.pickle(_Travelling, _depart)


def travelling(error: TarvizError) -> TarvizError:
    """The error, its class now one of its own below the one it had, which takes the error along when it is pickled."""
    plain = type(error)
    make, arguments = error.__reduce__()
    copy = make(*arguments)
    for note in getattr(error, "__notes__", ()):
        copy.add_note(note)
    names = {"carried": copy, "__module__": plain.__module__, "__qualname__": plain.__qualname__}
    made: Any = _Travelling(plain.__name__, (plain,), names)
    error.__class__ = made
    return error
