"""Long suites in a bounded time: `--minutes 5` runs tests in an order drawn from `--seed`, and begins none after that time.

Which tests a day tries is drawn from its date, so all of them have their turn; the seed is printed, and with it the order is the same.
Tests that draw their own cases take the seed from `TARVIZ_FUZZ_SEED`, which is set to it.
"""

from __future__ import annotations

import datetime
import os
import random
import time

import pytest


def seed_of(day: datetime.date) -> int:
    return int(f"{day:%Y%m%d}")


class Bounded:
    """Begins no test after `minutes`; says how many it left for another day."""

    def __init__(self, minutes: float, seed: int | None):
        self._seed = seed_of(datetime.date.today()) if seed is None else seed
        self._end = time.monotonic() + 60 * minutes
        self._left = 0
        os.environ["TARVIZ_FUZZ_SEED"] = str(self._seed)  # before test modules are imported, which read it

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        random.Random(self._seed).shuffle(items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if time.monotonic() < self._end:
            return None
        self._left += 1
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.line(f"seed {self._seed}; {self._left} tests are left for another day")
