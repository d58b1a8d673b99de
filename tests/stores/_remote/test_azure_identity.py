"""Who asks Azure and where, held against azure-storage-blob and azure-identity: each configuration through them, and through us."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest

from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.stores._remote import azure_keys
from tarviz.stores.az import AzureStore
from tests.servers.clouds import cloud_server, name_as_proxy

KEY = {"AZURE_STORAGE_ACCOUNT": "acct", "AZURE_STORAGE_KEY": "a2V5LW9mLWFjY3Q="}
SAS = "sv=2023-11-03&sp=r&sig=a%2Bb%2Fc%3D"
WHO = {"AZURE_STORAGE_ACCOUNT": "acct", "AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "me"}
PAIR = "AccountName=acct;AccountKey=a2V5LW9mLWFjY3Q="
CHINA, GOVERNMENT = "core.chinacloudapi.cn", "core.usgovcloudapi.net"
NAMES = ("*.blob.core.windows.net", f"*.blob.{CHINA}", f"*.blob.{GOVERNMENT}", "login.microsoftonline.com", "login.chinacloudapi.cn")
PLACE = "data/a b+é.tar"

# name: (variables, where $HERE is the server and $FOLDER a folder with what they name; the account's place; our URL, if it is no plain one)
USUAL = "https://acct.blob.core.windows.net"
CASES: dict[str, tuple[dict[str, str], str, str]] = {
    "key": (KEY, USUAL, ""),
    "key, another name of it": ({"AZURE_STORAGE_ACCOUNT_NAME": "acct", "AZURE_STORAGE_ACCESS_KEY": "a2V5LW9mLWFjY3Q="}, USUAL, ""),
    "key at an endpoint": ({**KEY, "AZURE_STORAGE_ENDPOINT": "$HERE/acct"}, "$HERE/acct", ""),
    "SAS": ({"AZURE_STORAGE_ACCOUNT": "acct", "AZURE_STORAGE_SAS_TOKEN": SAS}, USUAL, ""),
    "SAS with its question mark": ({"AZURE_STORAGE_ACCOUNT": "acct", "AZURE_STORAGE_SAS_TOKEN": f"?{SAS}"}, USUAL, ""),
    "nobody": ({"AZURE_STORAGE_ACCOUNT": "acct"}, USUAL, ""),
    "signature skipped": ({**KEY, "AZURE_SKIP_SIGNATURE": "true"}, USUAL, ""),
    "string": ({"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=https;{PAIR};EndpointSuffix=core.windows.net"}, "", ""),
    "string, http": ({"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;{PAIR};EndpointSuffix=core.windows.net"}, "", ""),
    "string of China": ({"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=https;{PAIR};EndpointSuffix={CHINA}"}, "", ""),
    "string with an endpoint": ({"AZURE_STORAGE_CONNECTION_STRING": f"{PAIR};BlobEndpoint=$HERE/acct;"}, "", ""),
    "string with a SAS": ({"AZURE_STORAGE_CONNECTION_STRING": f"BlobEndpoint=$HERE/acct;SharedAccessSignature={SAS}"}, "", ""),
    "URL that names the account": ({}, USUAL, "abfs://data@acct.dfs.core.windows.net/"),
    "URL and its key": (KEY, USUAL, "abfs://data@acct.dfs.core.windows.net/"),
    "URL of the government": ({}, f"https://acct.blob.{GOVERNMENT}", f"abfs://data@acct.dfs.{GOVERNMENT}/"),
    "URL of China": (KEY, f"https://acct.blob.{CHINA}", f"abfs://data@acct.dfs.{CHINA}/"),
    "principal": ({**WHO, "AZURE_CLIENT_SECRET": "secret"}, USUAL, ""),
    "principal of China": (
        {**WHO, "AZURE_CLIENT_SECRET": "secret", "AZURE_AUTHORITY_HOST": "https://login.chinacloudapi.cn"},
        f"https://acct.blob.{CHINA}",
        f"abfs://data@acct.dfs.{CHINA}/",
    ),
    "principal with a certificate": ({**WHO, "AZURE_CLIENT_CERTIFICATE_PATH": "$FOLDER/both.pem"}, USUAL, ""),
    "workload": ({**WHO, "AZURE_FEDERATED_TOKEN_FILE": "$FOLDER/token"}, USUAL, ""),
    "App Service": ({"AZURE_STORAGE_ACCOUNT": "acct", "IDENTITY_ENDPOINT": "$HERE/msi", "IDENTITY_HEADER": "h"}, USUAL, ""),
    "App Service, one of several": (
        {"AZURE_STORAGE_ACCOUNT": "acct", "AZURE_CLIENT_ID": "second", "IDENTITY_ENDPOINT": "$HERE/msi", "IDENTITY_HEADER": "h"},
        USUAL,
        "",
    ),
    "Cloud Shell": ({"AZURE_STORAGE_ACCOUNT": "acct", "MSI_ENDPOINT": "$HERE/msi"}, USUAL, ""),
    "Azure ML": ({"AZURE_STORAGE_ACCOUNT": "acct", "MSI_ENDPOINT": "$HERE/msi", "MSI_SECRET": "s"}, USUAL, ""),
    "login of the command line": ({"AZURE_STORAGE_ACCOUNT": "acct", "PATH": "$FOLDER/bin:/usr/bin:/bin"}, USUAL, ""),
    "the one kind that is named": (
        {**WHO, "AZURE_CLIENT_SECRET": "s", "AZURE_TOKEN_CREDENTIALS": "AzureCliCredential", "PATH": "$FOLDER/bin:/usr/bin:/bin"},
        USUAL,
        "",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("azure")
    (found / "token").write_text("e30.e30.e30")
    (found / "bin").mkdir()
    program = found / "bin/az"
    program.write_text(
        """#!/bin/sh\necho '{"accessToken": "of-the-login", "expires_on": 4070908800, "expiresOn": "2099-01-01 00:00:00.0"}'\n"""
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return found


@pytest.fixture(scope="module")
def server(folder):
    with cloud_server(folder, NAMES) as found:
        (folder / "both.pem").write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
        yield found


@pytest.fixture(autouse=True)
def _place(server, folder, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    name_as_proxy(monkeypatch, server, folder)
    server.asked.clear()
    server.tokens.clear()


def configure(case, server, folder, monkeypatch):
    """The place of the account, and our URL."""
    variables, place, ours = CASES[case]
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("$HERE", server.url).replace("$FOLDER", str(folder)))
    name = PLACE.partition("/")[2]
    return place.replace("$HERE", server.url), URL(f"{ours}{name}" if ours else f"az://{PLACE}")


def of_the_library(place):
    """Has azure-storage-blob ask for the properties of the object."""
    blob = pytest.importorskip("azure.storage.blob", reason="azure-storage-blob is what Azure is held against: pip install 'tarviz[cloud]'")
    from azure.identity import DefaultAzureCredential

    env, (container, _, name) = os.environ, PLACE.partition("/")
    if text := env.get("AZURE_STORAGE_CONNECTION_STRING"):
        client = blob.BlobClient.from_connection_string(text, container, name, retry_total=0)
    else:
        key = env.get("AZURE_STORAGE_KEY") or env.get("AZURE_STORAGE_ACCESS_KEY")
        identity = None
        if env.get("AZURE_SKIP_SIGNATURE"):
            proof = None
        elif key or env.get("AZURE_STORAGE_SAS_TOKEN"):
            proof = {"account_name": "acct", "account_key": key} if key else env["AZURE_STORAGE_SAS_TOKEN"]
        else:
            said = any(name.startswith(("AZURE_C", "AZURE_T", "IDENTITY_", "MSI_")) for name in env) or str(env["PATH"]).count("/bin") == 3
            proof = identity = DefaultAzureCredential() if said else None
        client = blob.BlobClient(place, container, name, credential=proof, retry_total=0)
    with client:
        client.get_blob_properties()
    if not text and identity:
        identity.close()


def seen(asked):
    """Method, place, query and proof of a request; a key's proof is its account and whether each signs it as the other one does."""
    parts = urlsplit(asked.address)
    kind, _, proof = asked.headers.get("authorization", "").partition(" ")
    if kind == "SharedKey":
        assert asked.headers["authorization"] == by_the_library(asked) == by_us(asked)
        proof = proof.partition(":")[0]
    return asked.method, parts.scheme, parts.netloc, parts.path, sorted(parse_qsl(parts.query)), kind, proof


def by_the_library(asked):
    from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy

    headers = {name: value for name, value in asked.headers.items() if name != "authorization"}
    query = dict(parse_qsl(urlsplit(asked.address).query))
    request = SimpleNamespace(method=asked.method, headers=headers, url=asked.address, query=query)
    SharedKeyCredentialPolicy("acct", KEY["AZURE_STORAGE_KEY"]).on_request(
        SimpleNamespace(http_request=request, context=SimpleNamespace(transport=None))
    )
    return request.headers["Authorization"]


def by_us(asked):
    headers = {name: value for name, value in asked.headers.items() if name != "authorization"}
    account = azure_keys.Account("acct", "", KEY["AZURE_STORAGE_KEY"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(azure_keys, "formatdate", lambda usegmt: headers["x-ms-date"])
        patch.setattr(azure_keys, "API", headers["x-ms-version"])
        return azure_keys.shared_key(asked.method, asked.address, headers, account)["Authorization"]


@pytest.mark.parametrize("case", CASES)
def test_we_ask_as_azure_storage_blob_does(case, server, folder, monkeypatch):
    place, url = configure(case, server, folder, monkeypatch)
    of_the_library(place)
    AzureStore().stat(url)

    first, second = map(seen, server.asked)
    assert first == second


def test_what_opens_one_account_is_not_shown_to_another(server, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "acct")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", SAS)
    AzureStore().stat(URL("abfs://data@other.dfs.core.windows.net/a.tar"))

    assert ["https://other.blob.core.windows.net/data/a.tar"] == [each.address for each in server.asked]


@pytest.mark.parametrize(
    ("proof", "content", "reason"),
    [
        ("AZURE_CLIENT_SECRET", "wrong-planted", "AADSTS7000215"),
        ("AZURE_CLIENT_CERTIFICATE_PATH", "/nowhere/planted.pem", "FileNotFoundError"),
    ],
)
def test_a_refusal_says_its_number_and_no_secret(proof, content, reason, monkeypatch):
    pytest.importorskip("azure.identity", reason="identities are azure-identity's: pip install 'tarviz[cloud]'")
    for name, value in {**WHO, proof: content}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match=re.escape(f"azure-identity gets no token ({reason})")) as caught:
        azure_keys.find_token()

    assert "E_AUTH" == caught.value.code
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize(("case", "needs"), [("key", False), ("SAS", False), ("nobody", False), ("principal", True), ("App Service", True)])
@pytest.mark.matrix
def test_keys_need_no_library_and_an_identity_names_the_extra(case, needs, server, folder, monkeypatch):
    _, url = configure(case, server, folder, monkeypatch)
    text = f"""
import sys
sys.modules["azure"] = sys.modules["azure.identity"] = sys.modules["azure.core"] = None
from tarviz.stores.az import AzureStore
from tarviz.model.errors import MissingPackageError
try:
    AzureStore().stat({url!r})
    assert {not needs}
except MissingPackageError as error:
    assert {needs} and "tarviz[cloud]" in str(error), error
"""

    assert 0 == subprocess.run([sys.executable, "-c", text], check=False, cwd=Path(__file__).parents[3]).returncode
