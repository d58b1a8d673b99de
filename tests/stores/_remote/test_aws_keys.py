"""Keys of AWS found where its own tools find them, in their order, from services of this machine."""

from __future__ import annotations

import pytest

from tarviz.model.errors import StoreError, UsageError
from tarviz.stores._remote import aws_keys
from tarviz.stores._remote.sigv4 import AwsKeys
from tests.servers.daemons import free_port
from tests.servers.local import token_server

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

    def test_the_environment_comes_before_a_profile_and_a_profile_before_a_role(self, monkeypatch, tmp_path):
        (tmp_path / "credentials").write_text("[default]\naws_access_key_id = P\naws_secret_access_key = Q\n")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{free_port()}")
        assert AwsKeys("P", "Q") == aws_keys.find_keys()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "E")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "F")

        assert AwsKeys("E", "F") == aws_keys.find_keys()

    def test_a_profile_is_made_of_both_files(self, monkeypatch, tmp_path):
        (tmp_path / "config").write_text("[profile other]\nregion = eu-north-1\n")
        (tmp_path / "credentials").write_text("[other]\naws_access_key_id = A\naws_secret_access_key = B\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
        monkeypatch.setenv("AWS_PROFILE", "other")

        assert {"region": "eu-north-1", "aws_access_key_id": "A", "aws_secret_access_key": "B"} == aws_keys.profile()

    def test_a_profile_that_is_not_there_is_said(self, monkeypatch):
        monkeypatch.setenv("AWS_PROFILE", "nobody")
        with pytest.raises(UsageError, match="there is no AWS profile 'nobody'"):
            aws_keys.find_keys()

    def test_a_process_that_fails_is_named_without_its_words(self, monkeypatch, tmp_path):
        (tmp_path / "config").write_text("[default]\ncredential_process = sh -c 'echo hidden; exit 3'\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        with pytest.raises(StoreError, match="credential_process of the AWS profile failed") as caught:
            aws_keys.find_keys()

        assert "hidden" not in str(caught.value)
