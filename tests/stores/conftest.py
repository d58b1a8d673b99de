"""The server that fails as it is told, and the clock that nobody waits for."""

from __future__ import annotations

import pytest

from tarviz.testing.faults import FakeClock, FaultServer


@pytest.fixture
def server():
    with FaultServer() as server:
        yield server


@pytest.fixture
def clock():
    return FakeClock()
