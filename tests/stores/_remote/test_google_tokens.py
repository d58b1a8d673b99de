"""Tokens of Google found where its own tools find them, from services of this machine."""

from __future__ import annotations

import json

import pytest

from tarviz.model.errors import StoreError
from tarviz.stores._remote import google_tokens
from tests.servers.local import token_server


@pytest.fixture(autouse=True)
def _nobody(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))


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

    def test_a_login_is_refreshed(self, monkeypatch, tmp_path):
        with token_server(access_token="hidden", expires_in=60) as (url, asked):
            login = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r", "token_uri": url}
            (tmp_path / "login.json").write_text(json.dumps(login))
            monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "login.json"))
            found = google_tokens.find_token()

        assert found is not None
        assert ("hidden", [b"grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r"]) == (found.token, asked)

    def test_an_answer_without_a_token_is_said(self, monkeypatch):
        with token_server(nothing=1) as (url, _):
            monkeypatch.setenv("GCE_METADATA_HOST", url.removeprefix("http://"))
            with pytest.raises(StoreError, match="holds no token"):
                google_tokens.find_token()

    def test_an_emulator_is_asked_without_one(self, monkeypatch):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
        monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:1")

        assert google_tokens.find_token() is None
