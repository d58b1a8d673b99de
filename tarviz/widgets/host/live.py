"""A widget whose controller goes on working behind it: what is saved with the notebook is brought up to date when it is done.

Until then the view asks for news. In a run that nobody watches (nbclient, nbconvert) the cell waits for the end instead.
"""

from __future__ import annotations

from typing import Any

from tarviz.widgets.host.behind import start_thread
from tarviz.widgets.host.view import View

_PATIENCE = 120.0  # seconds that a deck waits for work begun in its cells


def is_watched() -> bool:
    """Whether a person runs this kernel: a front end that executes notebooks by itself cannot answer questions, and says so."""
    from IPython.core.getipython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    return bool(getattr(kernel, "_allow_stdin", True))


class LiveView(View):
    """A controller in a notebook cell that may still be at work when the cell is done."""

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is done; False when the time was over first."""
        working: Any = self.controller
        return bool(working.wait(seconds))

    def to_static(self, budget: int) -> int:
        self.wait(_PATIENCE)
        return super().to_static(budget)

    def _ipython_display_(self, **_: Any) -> None:
        if not is_watched():
            self._finish()
        done = self.wait(0)
        super()._ipython_display_()
        if not done:
            self.follow()

    def follow(self) -> None:
        """Bring what is saved up to date when it is done."""
        start_thread("follow", self._finish)

    def _finish(self) -> None:
        self.wait()
        self.renew()
