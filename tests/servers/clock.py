"""A clock for tests: nothing waits."""

from __future__ import annotations

import threading

from tarviz.stores.retry import Clock


class FakeClock(Clock):
    """A clock that does not wait: time passes by what was to be waited for. `waits` holds the seconds, in order."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self._ahead = 0.0

    def now(self) -> float:
        return super().now() + self._ahead

    def wall(self) -> float:
        return super().wall() + self._ahead

    def random(self) -> float:
        return 0.5

    def wait(self, seconds: float, stop: threading.Event) -> None:
        self.waits.append(seconds)
        self._ahead += seconds
