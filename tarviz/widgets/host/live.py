"""A widget whose controller goes on working behind it: what is saved with the notebook is brought up to date when it is done.

Until then the view asks for news. In a run that nobody watches (nbclient, nbconvert) the cell waits for the end instead.
"""

from __future__ import annotations

import logging
import secrets
import threading
from typing import Any, Protocol

from tarviz.widgets.host.rpc import Controller
from tarviz.widgets.host.view import View

log = logging.getLogger(__name__)

_PATIENCE = 120.0  # seconds that a deck waits for work begun in its cells


class Working(Protocol):
    """A controller that works in the background."""

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is done; False when the time was over first."""
        ...


def watched() -> bool:
    """Whether a person runs this kernel: a front end that executes notebooks by itself cannot answer questions, and says so."""
    from IPython.core.getipython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    return bool(getattr(kernel, "_allow_stdin", True))


class LiveView(View):
    """A controller in a notebook cell that may still be at work when the cell is done."""

    def __init__(self, controller: Controller, **traits: Any) -> None:
        super().__init__(controller, **traits)
        self._display: str | None = None
        self._stale = False
        self._focused = False

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is done; False when the time was over first."""
        working: Any = self.controller
        return bool(working.wait(seconds))

    def to_static(self, budget: int) -> int:
        self.wait(_PATIENCE)
        return super().to_static(budget)

    def _ipython_display_(self, **_: Any) -> None:
        from IPython.display import display

        if not watched():
            self.wait()
            self._renew()
        done = self.wait(0)
        content, metadata = self._repr_mimebundle_()
        self._display = f"tarviz-{secrets.token_hex(8)}"
        display(content, metadata=metadata, raw=True, display_id=self._display)
        if not done:
            threading.Thread(target=self._follow, name="tarviz-follow", daemon=True).start()

    def _follow(self) -> None:
        self.wait()
        self._renew()
        if self._focused:
            self._stale = True  # drawing it anew would take the keys away from whoever presses them
        else:
            self._redisplay()

    def _renew(self) -> None:
        """Bring what is saved with the notebook up to date."""
        first, pictures = self.controller.first()
        with self.hold_sync():
            self._pictures = [bytes(picture) for picture in pictures]
            self._first = first

    def _redisplay(self) -> None:
        from IPython.display import update_display

        self._stale = False
        if self._display is None or self.comm is None:
            return
        content, metadata = self._repr_mimebundle_()
        try:
            update_display(content, metadata=metadata, raw=True, display_id=self._display)
        except (OSError, RuntimeError) as error:  # the kernel is going away
            log.debug("the picture could not be renewed: %s", error)

    def _remember(self, state: dict[str, Any], session: str = "") -> None:
        self._focused = bool(state.get("focused"))
        super()._remember(state, session)
        if self._stale and not self._focused:
            self._redisplay()
