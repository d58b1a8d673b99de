"""The bench in a notebook: `BenchRun` behind the common view."""

from __future__ import annotations

from tarviz.widgets.bench.controller import BenchRun
from tarviz.widgets.bench.result import BenchResult
from tarviz.widgets.host.live import LiveView


class BenchView(LiveView):
    """A bench in a notebook cell.

    `result` is what was measured so far (rows, stages, verdict; `save`, `compare`, `to_frame`), `stop()` ends it and keeps that,
    `wait()` lets it finish.
    """

    controller: BenchRun

    @property
    def result(self) -> BenchResult:
        """What was measured so far."""
        return self.controller.result

    def stop(self) -> BenchResult:
        """End the trial that runs and all after it; what was measured."""
        return self.controller.end()
