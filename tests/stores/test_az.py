"""Azure's blobs on azurite, Microsoft's own server for tests, which checks every signature."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tarviz.model.types import URL
from tarviz.stores._remote.access import Bearer
from tarviz.stores._remote.azure_keys import EMULATOR
from tarviz.stores._remote.wire import WRITTEN
from tarviz.stores.az import AzureStore
from tarviz.testing.faults import FaultServer
from tarviz.testing.stores import StoreTests
from tests.servers.clock import FakeClock
from tests.servers.local import azure_server, azurite_command


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


@pytest.mark.programs
@pytest.mark.skipif(azurite_command() is None, reason="azurite is not installed: make oracles, or npm install -g azurite")
class TestAzureStore(StoreTests):
    """The contract of all stores."""

    @pytest.fixture
    def store(self):
        return AzureStore(clock=FakeClock())

    @pytest.fixture
    def folder(self, container):
        return URL(f"az://{container}/some/folder")


class TestAccess:
    @pytest.mark.parametrize(
        ("settings", "token", "said"),
        [
            ({"KEY": "a2V5"}, None, "Check AZURE_STORAGE_KEY or"),
            ({"SAS_TOKEN": "sv=1"}, None, "Check AZURE_STORAGE_KEY or"),
            ({}, None, "No credentials were found: run az login"),
            ({}, Bearer("t", 4e9), "The identity may not do this"),
        ],
        ids=["a key", "a signature", "nobody", "somebody"],
    )
    def test_a_refusal_has_a_next_step(self, settings, token, said, monkeypatch):
        for name, value in {"ACCOUNT": "acct", **settings}.items():
            monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
        access = AzureStore().wire.access
        monkeypatch.setattr(access, "_token", lambda: token)

        assert access.denial_hint().startswith(said)

    @pytest.mark.parametrize(
        ("settings", "address", "headers"),
        [
            ({"SAS_TOKEN": "?sv=1&sig=a b"}, "?sv=1&sig=a+b", {"x-ms-version"}),
            ({"SAS_TOKEN": "sv=1", "KEY": "a2V5"}, "", {"x-ms-version", "x-ms-date", "Authorization"}),
            ({"SAS_TOKEN": "sv=1", "SKIP": "true"}, "", {"x-ms-version"}),
            ({}, "", {"x-ms-version", "x-ms-date", "Authorization"}),
        ],
        ids=["a signature", "a key first", "unsigned", "a token"],
    )
    def test_what_opens_the_account_is_in_the_address_or_beside_it(self, settings, address, headers, monkeypatch):
        for name, value in {"STORAGE_ACCOUNT": "acct", **{f"STORAGE_{name}": value for name, value in settings.items()}}.items():
            monkeypatch.setenv("AZURE_SKIP_SIGNATURE" if name == "STORAGE_SKIP" else f"AZURE_{name}", value)
        access = AzureStore().wire.access
        monkeypatch.setattr(access, "_token", lambda: Bearer("t", 4e9))
        place = access.address(URL("az://c/a b.tar"), {})

        assert f"https://acct.blob.core.windows.net/c/a%20b.tar{address}" == place
        assert headers == access.headers("GET", place, {}, b"").keys()

    def test_a_small_range_is_signed_and_its_connection_waits_for_the_next(self, monkeypatch):
        """A key signs the range, so each request has other headers."""
        with FaultServer() as server:
            for name, value in {"ACCOUNT": "acct", "KEY": "a2V5", "ENDPOINT": f"{server.url}/acct"}.items():
                monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
            server.put("/acct/c/a.tar", bytes(range(200)))
            store = AzureStore(clock=FakeClock())
            found = [store.read(URL("az://c/a.tar"), at, 10) for at in (5, 50, 190)]

            assert [bytes(range(at, at + 10)) for at in (5, 50, 190)] == found
            assert ["bytes=5-14", "bytes=50-59", "bytes=190-199"] == [request.headers["range"] for request in server.requests]
            assert 3 == len({request.headers["authorization"] for request in server.requests})
            assert [1] == [len(lines) for lines in store._ranges._kept.values()]
            assert 1 == server.taken
