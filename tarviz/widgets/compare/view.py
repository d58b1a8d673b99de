"""The comparison in a notebook: `Compare` behind the common view."""

from __future__ import annotations

from collections.abc import Sequence

from tarviz.widgets.compare.chain_preview import Column
from tarviz.widgets.compare.controller import Compare
from tarviz.widgets.host.live import LiveView


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
    def columns(self) -> Sequence[Column]:
        """What was run, a column for each chain and runner."""
        return self.controller.columns

    @property
    def status(self) -> str:
        """One sentence: how far it is, what failed, what differs."""
        return self.controller.status
