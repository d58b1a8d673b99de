"""The comparison in a notebook: `Compare` behind the common view."""

from __future__ import annotations

from tarviz.widgets._live import LiveView
from tarviz.widgets.compare import Compare


class CompareView(LiveView):
    """Chains compared in a notebook cell.

    `spec` is the Python call that makes this comparison, `columns` what was run (name, chain, seed, strips of tiles), `wait()` lets
    it finish, `status` says in a sentence what came out.
    """

    controller: Compare

    @property
    def spec(self) -> str:
        """The Python call that makes this comparison."""
        return self.controller.spec

    @property
    def status(self) -> str:
        """One sentence: how far it is, what failed, what differs."""
        return self.controller.status
