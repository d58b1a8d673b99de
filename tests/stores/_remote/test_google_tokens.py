"""Who asks Google, held against google-auth: each configuration through its own session, and through us."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.stores._remote import google_tokens
from tarviz.stores.gs import GoogleStore
from tests.servers.clouds import cloud_server, name_as_proxy

SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
STS = {
    "audience": "//iam.googleapis.com/pool",
    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    "token_url": "https://sts.googleapis.com/v1/token",
}
BEHALF = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/robot@p.iam.gserviceaccount.com:generateAccessToken"
USER = {"type": "authorized_user", "client_id": "me", "client_secret": "s", "refresh_token": "r"}
ROBOT = {
    "type": "service_account",
    "client_email": "robot@p.iam.gserviceaccount.com",
    "token_uri": "https://oauth2.googleapis.com/token",
    "private_key_id": "1",
}
POOL = {"type": "external_account", **STS}
FILE = {"credential_source": {"file": "$FOLDER/subject"}}
PROGRAM = {"executable": {"command": "$FOLDER/program", "timeout_millis": 5000}}
NAMED = {"GOOGLE_APPLICATION_CREDENTIALS": "$FOLDER/named.json"}
HOSTS = ("*.googleapis.com",)

# name: (variables, the file of the credentials, where it lies); $HERE is the server, $FOLDER the folder
OBJECT = "/storage/v1/b/data/o/a%20b.tar?alt=json"
CASES: dict[str, tuple[dict[str, str], dict[str, object], str]] = {
    "service account": (NAMED, ROBOT, "named.json"),
    "service account that pays for another project": (NAMED, {**ROBOT, "quota_project_id": "paying"}, "named.json"),
    "login": (NAMED, USER, "named.json"),
    "login that pays": (NAMED, {**USER, "quota_project_id": "paying"}, "named.json"),
    "login, another project pays": ({**NAMED, "GOOGLE_CLOUD_QUOTA_PROJECT": "other"}, {**USER, "quota_project_id": "paying"}, "named.json"),
    "login of gcloud": ({}, USER, ".config/gcloud/application_default_credentials.json"),
    "login of gcloud elsewhere": ({"CLOUDSDK_CONFIG": "$FOLDER/sdk"}, USER, "sdk/application_default_credentials.json"),
    "named before the login": ({**NAMED, "CLOUDSDK_CONFIG": "$FOLDER/sdk"}, ROBOT, "named.json"),
    "service account with a place for tokens": (NAMED, {**ROBOT, "token_uri": "$HERE/token"}, "named.json"),
    "pool, by a file": (NAMED, {**POOL, **FILE}, "named.json"),
    "pool, by JSON in a file": (
        NAMED,
        {**POOL, "credential_source": {"file": "$FOLDER/subject.json", "format": {"type": "json", "subject_token_field_name": "t"}}},
        "named.json",
    ),
    "pool, by an address": (
        NAMED,
        {**POOL, "credential_source": {"url": "$HERE/token", "format": {"type": "json", "subject_token_field_name": "access_token"}}},
        "named.json",
    ),
    "pool, by a program": (
        {**NAMED, "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES": "1"},
        {**POOL, "credential_source": PROGRAM},
        "named.json",
    ),
    "pool, for an account": (NAMED, {**POOL, **FILE, "service_account_impersonation_url": BEHALF}, "named.json"),
    "people of a pool": (
        NAMED,
        {**USER, "type": "external_account_authorized_user", "token_url": STS["token_url"]},
        "named.json",
    ),
    "login for an account": (
        NAMED,
        {"type": "impersonated_service_account", "source_credentials": USER, "service_account_impersonation_url": BEHALF},
        "named.json",
    ),
    "emulator": ({"STORAGE_EMULATOR_HOST": "$HERE"}, USER, ".config/gcloud/application_default_credentials.json"),
    "emulator with an account": ({**NAMED, "STORAGE_EMULATOR_HOST": "$HERE"}, ROBOT, "named.json"),
    "nobody": ({}, {}, "none.json"),
}  # fmt: skip


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    return tmp_path_factory.mktemp("google")


@pytest.fixture(scope="module")
def server(certified):
    with cloud_server(certified, HOSTS) as found:
        yield found


@pytest.fixture
def folder(server, certified, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    name_as_proxy(monkeypatch, server, certified)
    server.asked.clear()
    (tmp_path / "subject").write_text("token-of-the-pool")
    (tmp_path / "subject.json").write_text('{"t": "token-of-the-pool"}')
    answer = {
        "version": 1,
        "success": True,
        "token_type": STS["subject_token_type"],
        "id_token": "of-the-program",
        "expiration_time": 4070908800,
    }
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return tmp_path


def configure(case, server, folder, certified, monkeypatch):
    variables, content, place = CASES[case]

    def filled(text):
        return text.replace("$HERE", server.url).replace("$FOLDER", str(folder))

    for name, value in variables.items():
        monkeypatch.setenv(name, filled(value))
    if content:
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        found = json.loads(filled(json.dumps(content)))
        if content.get("type") == "service_account":
            found["private_key"] = (certified / "key.pem").read_text()
        (folder / place).write_text(json.dumps(found))


def of_the_library():
    """Has google-auth's session ask for the object."""
    google = pytest.importorskip("google.auth", reason="google-auth is what Google is held against: pip install 'tarviz[cloud]'")
    from google.auth.credentials import AnonymousCredentials
    from google.auth.exceptions import DefaultCredentialsError
    from google.auth.transport.requests import AuthorizedSession

    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    try:
        named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS") or not emulator
        who = google.default(scopes=[SCOPE])[0] if named else AnonymousCredentials()
    except DefaultCredentialsError:
        who = AnonymousCredentials()
    with AuthorizedSession(who) as session:
        session.get(f"{emulator or 'https://storage.googleapis.com'}{OBJECT}")


def seen(asked):
    """What says who asks for what."""
    return asked.method, asked.address, asked.headers.get("authorization"), asked.headers.get("x-goog-user-project")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.matrix
def test_we_ask_as_google_auth_does(case, server, folder, certified, monkeypatch):
    configure(case, server, folder, certified, monkeypatch)
    of_the_library()
    GoogleStore().stat(URL("gs://data/a b.tar"))

    first, second = (seen(each) for each in server.asked if each.address.endswith(OBJECT))
    assert first == second
    assert (case in ("nobody", "emulator")) == (first[2] is None)


@pytest.mark.parametrize("variable", ["GCE_METADATA_HOST", "GCE_METADATA_ROOT"])
@pytest.mark.matrix
def test_a_machine_has_an_account(variable, server, folder, monkeypatch):
    """In a process of its own: google-auth looks at these variables once."""
    pytest.importorskip("google.auth", reason="google-auth is what Google is held against: pip install 'tarviz[cloud]'")
    monkeypatch.delenv("NO_GCE_CHECK")
    for name in (
        ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP") if variable == "GCE_METADATA_HOST" else (variable, "GCE_METADATA_IP")
    ):
        monkeypatch.setenv(name, server.url.removeprefix("http://"))
    text = """
import google.auth
from google.auth.transport.requests import AuthorizedSession
from tarviz.stores.gs import GoogleStore
who, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/devstorage.read_write"])
AuthorizedSession(who).get("https://storage.googleapis.com/storage/v1/b/data/o/a%20b.tar?alt=json")
GoogleStore().stat("gs://data/a b.tar")
"""
    done = subprocess.run([sys.executable, "-c", text], check=False, cwd=Path(__file__).parents[3])

    assert 0 == done.returncode
    first, second = (seen(each) for each in server.asked if each.address.endswith(OBJECT))
    assert first == second
    assert first[2]


@pytest.mark.parametrize("content", [None, "{}", "planted-secret", '{"type": "authorized_user", "client_secret": "planted-secret"}'])
def test_a_file_that_is_none_is_named_without_what_it_holds(content, folder, monkeypatch):
    pytest.importorskip("google.auth", reason="identities are google-auth's: pip install 'tarviz[cloud]'")
    if content is not None:
        (folder / "mine.json").write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(folder / "mine.json"))
    with pytest.raises(StoreError, match=r"google-auth gets no token by .*mine\.json") as caught:
        google_tokens.find_token()

    assert "E_AUTH" == caught.value.code
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize(("case", "needs"), [("nobody", False), ("emulator", False), ("login", True)])
@pytest.mark.matrix
def test_public_buckets_need_no_library_and_an_identity_names_the_extra(case, needs, server, folder, certified, monkeypatch):
    configure(case, server, folder, certified, monkeypatch)
    text = f"""
import sys
sys.modules["google"] = sys.modules["google.auth"] = None
from tarviz.stores.gs import GoogleStore
from tarviz.model.errors import MissingPackageError
try:
    GoogleStore().stat("gs://data/a b.tar")
    assert {not needs}
except MissingPackageError as error:
    assert {needs} and "tarviz[cloud]" in str(error), error
"""

    assert 0 == subprocess.run([sys.executable, "-c", text], check=False, cwd=Path(__file__).parents[3]).returncode
