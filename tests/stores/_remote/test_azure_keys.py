"""Accounts and tokens of Azure found where its own tools find them, and how a key signs."""

from __future__ import annotations

import pytest

from tarviz.model.errors import StoreError, UsageError
from tarviz.stores._remote import azure_keys


@pytest.fixture(autouse=True)
def _nobody(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))


class TestAzure:
    @pytest.mark.parametrize(
        ("text", "endpoint", "key"),
        [
            ("AccountName=a;AccountKey=a2V5", "https://a.blob.core.windows.net", "a2V5"),
            ("BlobEndpoint=http://127.0.0.1:1/a;SharedAccessSignature=sv=1&sig=x;AccountName=a", "http://127.0.0.1:1/a", None),
            ("UseDevelopmentStorage=true", "http://127.0.0.1:10000/devstoreaccount1", azure_keys.EMULATOR[1]),
        ],
    )
    def test_a_connection_string_names_the_account(self, monkeypatch, text, endpoint, key):
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
        found = azure_keys.find_account()

        assert (endpoint, key) == (found.endpoint, found.key)
        assert not key or key not in repr(found)

    @pytest.mark.parametrize(
        ("settings", "host", "expected"),
        [
            ({"ACCOUNT": "a", "KEY": "k"}, "", ("a", "https://a.blob.core.windows.net", "k")),
            ({"ACCOUNT_NAME": "a", "SAS_TOKEN": "?sv=1"}, "a", ("a", "https://a.blob.core.windows.net", None, "sv=1")),
            ({"ACCOUNT": "a", "KEY": "k"}, "a.blob.core.windows.net", ("a", "https://a.blob.core.windows.net", "k")),
            ({"ACCOUNT": "a", "KEY": "k"}, "b.blob.core.usgovcloudapi.net", ("b", "https://b.blob.core.usgovcloudapi.net")),
            ({"ACCOUNT": "a", "CONNECTION_STRING": "AccountKey=k;EndpointSuffix=z"}, "b", ("b", "https://b.blob.z")),
            ({"CONNECTION_STRING": "DefaultEndpointsProtocol=http;AccountName=a"}, "", ("a", "http://a.blob.core.windows.net")),
            ({"CONNECTION_STRING": "BlobEndpoint=https://a.z/;AccountKey=k"}, "", ("a", "https://a.z", "k")),
            ({"KEY": "k"}, "b", ("b", "https://b.blob.core.windows.net", "k")),
            (
                {"USE_EMULATOR": "true", "SAS_TOKEN": "sv=1"},
                "",
                ("devstoreaccount1", "http://127.0.0.1:10000/devstoreaccount1", None, "sv=1"),
            ),
        ],
    )
    def test_what_opens_an_account_is_shown_to_no_other(self, monkeypatch, settings, host, expected):
        for name, value in settings.items():
            monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)

        assert azure_keys.Account(*expected) == azure_keys.find_account(host)

    def test_no_account_is_said(self):
        with pytest.raises(UsageError, match="Set AZURE_STORAGE_ACCOUNT"):
            azure_keys.find_account()

    def test_a_connection_string_that_cannot_be_read_is_said(self, monkeypatch):
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName")
        with pytest.raises(UsageError, match="cannot be read"):
            azure_keys.find_account()


class TestSharedKey:
    ACCOUNT = azure_keys.Account("a", "https://a.blob.core.windows.net", "a2V5")

    def proof(self, monkeypatch, address="https://a.blob.core.windows.net/c/x.tar?b=2&a=1", method="GET", account=ACCOUNT, **headers):
        monkeypatch.setattr(azure_keys, "formatdate", lambda usegmt: "Mon, 27 Jul 2009 12:28:53 GMT")
        return azure_keys.shared_key(method, address, {name.replace("_", "-"): value for name, value in headers.items()}, account)

    def test_method_path_query_and_headers_are_all_signed(self, monkeypatch):
        base = self.proof(monkeypatch)
        others = [
            self.proof(monkeypatch, method="PUT"),
            self.proof(monkeypatch, address="https://a.blob.core.windows.net/c/y.tar?b=2&a=1"),
            self.proof(monkeypatch, address="https://a.blob.core.windows.net/c/x.tar?b=2&a=2"),
            self.proof(monkeypatch, range="bytes=0-1"),
            self.proof(monkeypatch, x_ms_blob_type="BlockBlob"),
        ]

        assert 6 == len({each["Authorization"] for each in [base, *others]})
        assert base == self.proof(monkeypatch, address="https://a.blob.core.windows.net/c/x.tar?a=1&b=2")
        assert base == self.proof(monkeypatch, content_length="0"), "a length of 0 is signed as none"
        assert base["Authorization"].startswith("SharedKey a:")

    def test_a_key_that_is_none_is_said(self, monkeypatch):
        with pytest.raises(StoreError, match="not base64"):
            self.proof(monkeypatch, account=azure_keys.Account("a", "https://a", "abc"))


def test_what_opens_an_account_is_not_shown():
    assert "planted" not in repr(azure_keys.Account("a", "https://a", "planted", "planted"))
