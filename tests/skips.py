"""A skip that nobody knows of is a test that nobody runs: with `--few-skips`, one that `skips.txt` does not list fails the run.

`skips.txt` holds a regular expression a line, which is to match a whole reason; what follows `#` says why it may be skipped.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("skips.txt")


def allowed(text: str) -> list[re.Pattern[str]]:
    """The patterns of a list: blank lines and comments left out."""
    lines = (line.split(" #")[0].strip() for line in text.splitlines())
    return [re.compile(line) for line in lines if line and not line.startswith("#")]


class FewSkips:
    """Collects every skip of a run; those that are not on the list are shown and fail it."""

    def __init__(self, patterns: list[re.Pattern[str]]):
        self._patterns = patterns
        self.unknown: list[str] = []

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        reason = (report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)).removeprefix("Skipped: ")
        if not any(pattern.fullmatch(reason) for pattern in self._patterns):
            self.unknown.append(f"{report.nodeid}: {reason}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unknown and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.unknown:
            terminalreporter.section("skips that tests/skips.txt does not know")
            for line in sorted(set(self.unknown)):
                terminalreporter.line(line)
