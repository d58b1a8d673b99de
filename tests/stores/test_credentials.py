"""Credentials found where each cloud's own tools find them, from services of this machine."""

from __future__ import annotations

import pytest

from tarviz.model.errors import StoreError, UsageError
from tarviz.stores._remote import aws_keys, azure_keys, google_tokens
from tarviz.stores._remote.access import Kept
from tarviz.stores._remote.google_tokens import Bearer
from tarviz.stores._remote.sigv4 import AwsKeys
from tarviz.testing.servers import free_port, token_server

ROLE = {"AccessKeyId": "AKID", "SecretAccessKey": "hidden", "Token": "also-hidden", "Expiration": "2030-01-01T00:00:00Z"}


@pytest.fixture(autouse=True)
def _nobody(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))


class TestAws:
    def test_a_container_has_a_role(self, monkeypatch):
        with token_server(**ROLE) as (url, _):
            monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url)
            found = aws_keys.find_keys()

        assert AwsKeys("AKID", "hidden", "also-hidden", 1893456000.0) == found
        assert "hidden" not in repr(found)

    def test_a_service_that_is_gone_is_named(self, monkeypatch):
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{free_port()}")

        with pytest.raises(StoreError, match="the container's AWS role got no answer"):
            aws_keys.find_keys()

    def test_a_process_gives_keys(self, monkeypatch, tmp_path):
        (tmp_path / "config").write_text("""[default]\ncredential_process = echo '{"AccessKeyId": "A", "SecretAccessKey": "B"}'\n""")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

        assert AwsKeys("A", "B") == aws_keys.find_keys()

    def test_nobody_has_none_at_once(self):
        assert aws_keys.find_keys() is None


class TestGoogle:
    def test_a_machine_has_an_account(self, monkeypatch):
        with token_server(access_token="hidden", expires_in=60) as (url, _):
            monkeypatch.setenv("GCE_METADATA_HOST", url.removeprefix("http://"))
            found = google_tokens.find_token()

        assert found is not None
        assert ("hidden", False) == (found.token, "hidden" in repr(found))

    def test_a_file_that_is_none_is_named(self, monkeypatch, tmp_path):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))

        with pytest.raises(StoreError, match=r"none\.json cannot be read: FileNotFoundError"):
            google_tokens.find_token()


class TestAzure:
    def test_a_service_principal_asks_for_a_token(self, monkeypatch):
        with token_server(access_token="hidden", expires_in=60) as (url, asked):
            for name, value in {"TENANT_ID": "t", "CLIENT_ID": "c", "CLIENT_SECRET": "s", "AUTHORITY_HOST": url}.items():
                monkeypatch.setenv(f"AZURE_{name}", value)
            found = azure_keys.find_token()

        assert found is not None
        assert ("hidden", True) == (found.token, b"client_secret=s" in asked[0])

    def test_a_managed_identity_has_a_token(self, monkeypatch):
        with token_server(access_token="hidden", expires_in="60") as (url, _):
            monkeypatch.setenv("IDENTITY_ENDPOINT", url)
            found = azure_keys.find_token()

        assert found is not None
        assert "hidden" == found.token

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

    def test_no_account_is_said(self):
        with pytest.raises(UsageError, match="Set AZURE_STORAGE_ACCOUNT"):
            azure_keys.find_account()


class TestKept:
    def test_it_is_looked_for_again_when_the_environment_changes(self, monkeypatch):
        found = []
        kept = Kept(lambda: found.append(1) or Bearer("t", 4e9), ["AWS_PROFILE"])

        assert kept() is kept()
        assert 1 == len(found)
        monkeypatch.setenv("AWS_PROFILE", "other")
        kept()
        assert 2 == len(found)
        assert (True, 2) == (kept.forget(), len(found))
        kept()
        assert 3 == len(found)
