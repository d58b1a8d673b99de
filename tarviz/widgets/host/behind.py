"""Threads behind a page: how they begin, and what ended them, in words."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from tarviz.model.errors import DataError, TarvizError

log = logging.getLogger(__name__)


def start_thread(name: str, work: Callable[..., object], *arguments: object) -> threading.Thread:
    """A thread at work; a program that ends does not wait for it."""
    thread = threading.Thread(target=work, args=arguments, daemon=True, name=f"tarviz-{name}")
    thread.start()
    return thread


def failure(error: Exception, what: str) -> TarvizError:
    """The error that ended one, as a page is told of it: one that is not of tarviz is in the log, too."""
    if isinstance(error, TarvizError):
        return error
    log.error("%s", what, exc_info=error)
    return DataError(f"{what}: {type(error).__name__}: {error}.", code="E_INTERNAL")
