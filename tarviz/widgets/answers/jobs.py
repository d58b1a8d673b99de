"""Work behind a browser: checks and copies that take longer than a request may, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tarviz.model.errors import UsageError, redact, safe
from tarviz.widgets.host.behind import failure, start_thread


class Job:
    """What runs behind a browser. `say` tells how far it is; `stop` ends it at its next word."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.text = ""
        self.bad = False

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, name: str, work: Callable[[], str]) -> dict[str, Any]:
        """Begin; what `work` returns is the last word. `UsageError` while another one runs.

        A message of one that runs, however soon it ends: a page tells the last word of what it knew to run.
        """
        if self.running:
            raise UsageError(f"Something else is being done ({self.text}).", hint="Wait for it, or stop it.")
        self.stopping.clear()
        self.text, self.bad = name, False
        self._thread = start_thread("job", self._work, work)
        return {"running": True, "text": name, "bad": False}

    def _work(self, work: Callable[[], str]) -> None:
        try:
            last = work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the page says it
            ended = failure(error, "It ended")
            last, self.bad = ended.words, ended.code != "E_STOPPED"
        self.text = redact(safe(last))
        self._thread = None
        self._changed()

    def say(self, text: str) -> None:
        """How far it is. Raises `UsageError` (E_STOPPED) when it was stopped."""
        if self.stopping.is_set():
            raise UsageError("stopped.", code="E_STOPPED")
        self.text = text
        self._changed()

    def stop(self) -> None:
        self.stopping.set()

    def message(self) -> dict[str, Any]:
        """For a view: whether it runs, its word, and whether that is an error."""
        return {"running": self.running, "text": self.text, "bad": self.bad}
