"""The bench in a notebook: `BenchRun` behind the common view."""

from __future__ import annotations

from typing import Any

from tarviz.widgets.bench.controller import BenchRun
from tarviz.widgets.bench.result import BenchResult
from tarviz.widgets.host.live import LiveView


class BenchView(LiveView):
    """A bench in a notebook cell.

    `result` is what was measured so far (rows, stages, verdict; `save`, `compare`, `to_frame`), `stop()` ends it and keeps that,
    `wait()` lets it finish.
    """

    controller: BenchRun

    def __init__(self, run: BenchRun, **traits: Any) -> None:
        super().__init__(run, **traits)
        run.renewed = self.follow

    @property
    def result(self) -> BenchResult:
        """What was measured so far."""
        return self.controller.result

    def stop(self) -> BenchResult:
        """End the trial that runs and all after it; what was measured."""
        return self.controller.end()
