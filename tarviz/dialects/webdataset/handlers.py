"""`webdataset.handlers`: what to do with an error: functions that are given it and raise it, or say True to go on, False to end."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NoReturn, TypeAlias

from tarviz.model.errors import TarvizWarning

Handler: TypeAlias = Callable[[Exception], bool]


def reraise_exception(error: Exception) -> NoReturn:
    """Raise it; the default everywhere."""
    raise error


def ignore_and_continue(error: Exception) -> bool:
    """Leave out what failed and go on. What reading skips is counted in the data set's `report`."""
    return True


def warn_and_continue(error: Exception) -> bool:
    """Leave out what failed, warn, go on. No pause is made."""
    warnings.warn(f"W_SKIPPED {error}", TarvizWarning, stacklevel=2)
    return True


def ignore_and_stop(error: Exception) -> bool:
    """End as if the data ended here."""
    return False


def warn_and_stop(error: Exception) -> bool:
    """End as if the data ended here, and warn."""
    warnings.warn(f"W_STOPPED {error}", TarvizWarning, stacklevel=2)
    return False
