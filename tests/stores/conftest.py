"""The server that fails as it is told, and the clock that nobody waits for."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tarviz.model.types import URL
from tarviz.stores.s3 import S3Store
from tarviz.testing.faults import FakeClock, FaultServer


@pytest.fixture
def server():
    with FaultServer() as server:
        yield server


@pytest.fixture
def clock():
    return FakeClock()


def s3_bucket(monkeypatch, address, keys):
    """A new bucket of the server there, which the settings of the environment name from now on."""
    for name, value in zip(("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), (address, *keys), strict=True):
        monkeypatch.setenv(name, value)
    bucket = f"test-{uuid4()}"
    S3Store().wire.send("PUT", URL(f"s3://{bucket}/"), {}, 30.0).close()
    return bucket
