"""Google Cloud Storage by its XML interface, which a server of S3 on this machine speaks too."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.stores.gs import GoogleStore
from tarviz.testing.faults import FakeClock, Fault, FaultServer
from tarviz.testing.stores import StoreTests
from tests.servers.local import google_pool, token_server

NOT_YET = (Fault(method="HEAD", status=404), Fault(status=404))  # it is made between the look for it and the write


@pytest.fixture(scope="module")
def login(tmp_path_factory):
    """The file of an identity."""
    pytest.importorskip("google.auth", reason="identities are google-auth's: pip install 'tarviz[cloud]'")
    with token_server(access_token="token-of-the-test", expires_in=3600, token_type="Bearer", issued_token_type="access_token") as (url, _):
        yield google_pool(tmp_path_factory.mktemp("google"), url)


@pytest.fixture
def bucket(s3_address, login, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", s3_address)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(login))
    name = f"test-{uuid4()}"
    GoogleStore().wire.send("PUT", URL(f"gs://{name}/"), {}, 5.0).close()
    return name


class TestGoogleStore(StoreTests):
    """The contract of all stores."""

    @pytest.fixture
    def store(self):
        return GoogleStore(clock=FakeClock())

    @pytest.fixture
    def folder(self, bucket):
        return URL(f"gs://{bucket}/some/folder")

    def test_a_write_that_replaces_nothing_leaves_what_is_there(self, store, login, monkeypatch):
        """Google's own condition, which the server of S3 does not know."""
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(login))
        with FaultServer() as server:
            monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
            server.put("/data/a.tar", b"there", plan=[*NOT_YET, Fault(method="PUT", status=412), Fault(method="PUT", status=200)])
            late = store.create(URL("gs://data/a.tar"), replace=False)
            with pytest.raises(StoreError, match="left alone") as caught:
                late.commit()
            with store.create(URL("gs://data/a.tar")):
                pass

        assert "E_EXISTS" == caught.value.code
        assert ["0", None] == [request.headers.get("x-goog-if-generation-match") for request in server.requests if request.method == "PUT"]
