"""S3 as OpenStack Swift serves it: a store that others run in production, with its own notion of every detail."""

from __future__ import annotations

import pytest

from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.stores._remote import upload
from tarviz.stores.s3 import S3Store
from tarviz.testing.stores import DATA, StoreTests
from tests.servers.clock import FakeClock
from tests.servers.swift import KEYS
from tests.stores.conftest import s3_bucket

pytestmark = pytest.mark.programs


@pytest.fixture
def bucket(swift, monkeypatch):
    return s3_bucket(monkeypatch, swift.url, KEYS)


class TestSwift(StoreTests):
    """The contract of all stores."""

    @pytest.fixture
    def store(self):
        return S3Store(clock=FakeClock())

    @pytest.fixture
    def folder(self, bucket):
        return URL(f"s3://{bucket}/some/folder")

    def test_an_upload_in_parts_is_one_object(self, store, folder, monkeypatch):
        monkeypatch.setattr(upload, "PART", 5 << 20)
        url, data = URL(f"{folder}/large.tar"), DATA * (-(-(11 << 20) // len(DATA)))
        with store.create(url) as sink:
            sink.write(data)

        assert len(data) == store.stat(url).size
        assert data[-1000:] == store.read(url, len(data) - 1000, 2000)
        assert data[(5 << 20) - 10 :][:20] == store.read(url, (5 << 20) - 10, 20)

    def test_a_wrong_secret_is_refused(self, folder, monkeypatch):
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")

        with pytest.raises(StoreError, match="SignatureDoesNotMatch"):
            S3Store(clock=FakeClock()).stat(URL(f"{folder}/a.tar"))
