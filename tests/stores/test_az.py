"""Azure's blobs on azurite, Microsoft's own server for tests, which checks every signature."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tarviz.model.types import URL
from tarviz.stores._remote.azure_keys import EMULATOR
from tarviz.stores._remote.wire import WRITTEN
from tarviz.stores.az import AzureStore
from tarviz.testing.stores import StoreTests
from tests.servers.clock import FakeClock
from tests.servers.local import azure_server, azurite_command

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(azurite_command() is None, reason="azurite is not installed: make oracles, or npm install -g azurite"),
]


@pytest.fixture(scope="module")
def address():
    with azure_server() as url:
        yield url


@pytest.fixture
def container(address, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", EMULATOR[0])
    monkeypatch.setenv("AZURE_STORAGE_KEY", EMULATOR[1])
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", address)
    name = f"test-{uuid4()}"
    AzureStore().wire.send("PUT", URL(f"az://{name}"), {}, 5.0, query={"restype": "container"}, accept=WRITTEN).close()
    return name


class TestAzureStore(StoreTests):
    """The contract of all stores."""

    @pytest.fixture
    def store(self):
        return AzureStore(clock=FakeClock())

    @pytest.fixture
    def folder(self, container):
        return URL(f"az://{container}/some/folder")
