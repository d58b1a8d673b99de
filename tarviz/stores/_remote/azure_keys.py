"""Where Azure keeps its credentials: account key, shared access signature, or a token of Entra; and how a key signs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from tarviz.model.errors import StoreError, UsageError
from tarviz.stores._remote.ask import machine_says, token
from tarviz.stores._remote.google_tokens import Bearer

API = "2023-11-03"
EMULATOR = ("devstoreaccount1", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")  # public
_KEYS = ("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY")
VARIABLES = (
    *("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_USE_EMULATOR", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME", *_KEYS),
    *("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_ENDPOINT", "AZURE_SKIP_SIGNATURE"),
)
_RESOURCE = "https://storage.azure.com/"
_SIGNED = ("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date", "if-modified-since",
           "if-match", "if-none-match", "if-unmodified-since", "range")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Account:
    """A storage account: where its blobs are, and the key or shared access signature that opens them, if there is one."""

    name: str
    endpoint: str
    key: str | None = field(default=None, repr=False)
    sas: str | None = field(default=None, repr=False)
    anonymous: bool = False


def find_account(named: str | None = None) -> Account:
    """The account of the environment, as the Azure command line finds it; `UsageError` when nothing names one."""
    env = os.environ
    settings = _connection(env.get("AZURE_STORAGE_CONNECTION_STRING", ""))
    emulated = _true("AZURE_STORAGE_USE_EMULATOR") or settings.get("usedevelopmentstorage", "").lower() == "true"
    name = named or env.get("AZURE_STORAGE_ACCOUNT") or env.get("AZURE_STORAGE_ACCOUNT_NAME") or settings.get("accountname")
    key = next(filter(None, (*map(env.get, _KEYS), settings.get("accountkey"))), None)
    sas = env.get("AZURE_STORAGE_SAS_TOKEN") or env.get("AZURE_STORAGE_SAS_KEY") or settings.get("sharedaccesssignature")
    endpoint = env.get("AZURE_STORAGE_ENDPOINT") or settings.get("blobendpoint")
    if emulated:
        name, key = name or EMULATOR[0], key or EMULATOR[1]
        endpoint = endpoint or f"http://127.0.0.1:10000/{name}"
    if not name and endpoint:
        name = (urlsplit(endpoint).hostname or "").partition(".")[0]
    if not name:
        raise UsageError("az:// URLs need a storage account.", hint="Set AZURE_STORAGE_ACCOUNT, or AZURE_STORAGE_CONNECTION_STRING.")
    suffix = settings.get("endpointsuffix", "core.windows.net")
    place = (endpoint or f"{settings.get('defaultendpointsprotocol', 'https')}://{name}.blob.{suffix}").rstrip("/")
    return Account(name, place, key, sas.lstrip("?") if sas else None, _true("AZURE_SKIP_SIGNATURE"))


def _true(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true", "yes")


def _connection(text: str) -> dict[str, str]:
    found = {}
    for part in filter(None, text.split(";")):
        name, equals, value = part.partition("=")
        if not equals:
            raise UsageError("AZURE_STORAGE_CONNECTION_STRING cannot be read.", hint="It is made of name=value; pairs.")
        found[name.strip().lower()] = value.strip()
    return found


def shared_key(method: str, address: str, headers: Mapping[str, str], account: Account) -> dict[str, str]:
    """The headers that prove with the account's key who sends a request.

    Source: learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
    """
    assert account.key is not None
    added = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": API}
    all_headers = {name.lower(): value.strip() for name, value in {**headers, **added}.items()}
    if all_headers.get("content-length") == "0":
        del all_headers["content-length"]
    parts = urlsplit(address)
    lines = [method, *(all_headers.get(name, "") for name in _SIGNED)]
    lines += [f"{name}:{all_headers[name]}" for name in sorted(all_headers) if name.startswith("x-ms-")]
    lines.append(f"/{account.name}{parts.path}")
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        query.setdefault(name.lower(), []).append(value)
    lines += [f"{name}:{','.join(sorted(query[name]))}" for name in sorted(query)]
    try:
        proof = hmac.new(base64.b64decode(account.key), "\n".join(lines).encode(), hashlib.sha256).digest()
    except ValueError as error:
        raise StoreError("the key of the storage account is not base64.", code="E_AUTH", hint="Check AZURE_STORAGE_KEY.") from error
    added["Authorization"] = f"SharedKey {account.name}:{base64.b64encode(proof).decode()}"
    return added


def find_token() -> Bearer | None:
    """A token of Entra: service principal, workload identity, managed identity or the login of the Azure command line."""
    env = os.environ
    tenant, client = env.get("AZURE_TENANT_ID"), env.get("AZURE_CLIENT_ID")
    if tenant and client and (env.get("AZURE_CLIENT_SECRET") or env.get("AZURE_FEDERATED_TOKEN_FILE")):
        return _principal(tenant, client)
    return _managed(client) or _command_line()


def _principal(tenant: str, client: str) -> Bearer:
    env = os.environ
    fields = {"client_id": client, "grant_type": "client_credentials", "scope": f"{_RESOURCE}.default"}
    if secret := env.get("AZURE_CLIENT_SECRET"):
        fields["client_secret"] = secret
    else:
        path = Path(env["AZURE_FEDERATED_TOKEN_FILE"])
        fields["client_assertion_type"] = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        try:
            fields["client_assertion"] = path.read_text("utf-8").strip()
        except OSError as error:
            raise StoreError(f"Azure's token file {path} cannot be read: {error.strerror}.", code="E_AUTH") from error
    host = (env.get("AZURE_AUTHORITY_HOST") or "https://login.microsoftonline.com").rstrip("/")
    return _of(token("Azure's service principal", f"{host}/{tenant}/oauth2/v2.0/token", method="POST", body=urlencode(fields).encode()))


def _managed(client: str | None) -> Bearer | None:
    env = os.environ
    who = {"client_id": client} if client else {}
    if place := env.get("IDENTITY_ENDPOINT"):
        query = urlencode({"api-version": "2019-08-01", "resource": _RESOURCE, **who})
        headers = {"X-IDENTITY-HEADER": env.get("IDENTITY_HEADER", "")}
        return _of(token("Azure's managed identity", f"{place}?{query}", headers=headers, near=True))
    if not machine_says("chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77"):  # every Azure machine has this one
        return None
    query = urlencode({"api-version": "2018-02-01", "resource": _RESOURCE, **who})
    place = f"http://169.254.169.254/metadata/identity/oauth2/token?{query}"
    try:
        return _of(token("Azure's managed identity", place, headers={"Metadata": "true"}, near=True))
    except StoreError:
        return None  # a machine without an identity


def _command_line() -> Bearer | None:
    command = shutil.which("az")
    if command is None:
        return None
    argv = [command, "account", "get-access-token", "--resource", _RESOURCE, "--output", "json"]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=30, check=True, start_new_session=True)
        return _of(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None  # nobody is logged in


def _of(found: dict[str, Any]) -> Bearer:
    token = found.get("access_token") or found.get("accessToken")
    if not token:
        raise StoreError("Azure's answer holds no token.", code="E_AUTH")
    return Bearer(str(token), time.time() + float(found.get("expires_in") or 300))


def with_sas(address: str, sas: str) -> str:
    """The address with a shared access signature added to its query."""
    return f"{address}{'&' if urlsplit(address).query else '?'}{sas if '%' in sas else urlencode(parse_qsl(sas))}"


def plain_path(address: str) -> str:
    """The path of an address without its escapes.

    >>> plain_path("https://host/a%20b")
    '/a b'
    """
    return unquote(urlsplit(address).path)
