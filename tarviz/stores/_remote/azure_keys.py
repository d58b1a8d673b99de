"""Accounts of Azure and what opens them: a key, which signs here, a shared access signature, or a token that azure-identity gets."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from urllib.parse import parse_qsl, urlencode, urlsplit

from tarviz.model.errors import MissingPackageError, StoreError, UsageError
from tarviz.stores._remote.access import Bearer
from tarviz.stores._remote.machine import machine_says

API = "2023-11-03"
EMULATOR = ("devstoreaccount1", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")  # public
_KEYS = ("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY")
VARIABLES = ("AZURE_*", "IDENTITY_*", "MSI_*", "PATH", "HOME")
_IDENTITIES = (
    *("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_TOKEN_CREDENTIALS"),
    *("IDENTITY_ENDPOINT", "MSI_ENDPOINT"),
)
_LOGINS = ("az", "azd", "pwsh")
_CHASSIS = "7783-7084-3265-9085-8269-3286-77"  # every Azure machine has this one
_QUIET = logging.NullHandler()
_SCOPE = "https://storage.azure.com/.default"
_REASON = re.compile(r"AADSTS\d+")
_HOST = re.compile(r"([^.]+)\.(?:blob|dfs)\.(core\.(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net))")
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


def find_account(host: str = "") -> Account:
    """The account of the environment, as the Azure command line finds it; `UsageError` when nothing names one.

    `host`: that of a URL, or the name of an account. What opens the account of the environment is not shown to another one.
    """
    env = os.environ
    settings = _connection(env.get("AZURE_STORAGE_CONNECTION_STRING", ""))
    emulated = _true("AZURE_STORAGE_USE_EMULATOR") or settings.get("usedevelopmentstorage", "").lower() == "true"
    endpoint = env.get("AZURE_STORAGE_ENDPOINT") or settings.get("blobendpoint")
    own = env.get("AZURE_STORAGE_ACCOUNT") or env.get("AZURE_STORAGE_ACCOUNT_NAME") or settings.get("accountname")
    own = own or (EMULATOR[0] if emulated else (urlsplit(endpoint or "").hostname or "").partition(".")[0])
    there = _HOST.fullmatch(host)
    name = host.partition(".")[0] or own
    if not name:
        raise UsageError("az:// URLs need a storage account.", hint="Set AZURE_STORAGE_ACCOUNT, or AZURE_STORAGE_CONNECTION_STRING.")
    suffix = there[2] if there else settings.get("endpointsuffix", "core.windows.net")
    usual = f"{settings.get('defaultendpointsprotocol', 'https')}://{name}.blob.{suffix}"
    anonymous = _true("AZURE_SKIP_SIGNATURE")
    if own and name != own:
        return Account(name, usual, anonymous=anonymous)
    key, sas = _opens(settings)
    if emulated:
        key = key or (None if sas else EMULATOR[1])
        endpoint = endpoint or f"http://127.0.0.1:10000/{name}"
    return Account(name, (endpoint or usual).rstrip("/"), key, sas, anonymous)


def _opens(settings: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Key and shared access signature of the environment's account."""
    env = os.environ
    sas = env.get("AZURE_STORAGE_SAS_TOKEN") or env.get("AZURE_STORAGE_SAS_KEY") or settings.get("sharedaccesssignature")
    return next(filter(None, (*map(env.get, _KEYS), settings.get("accountkey"))), None), sas.lstrip("?") if sas else None


def host_of(address: str) -> str:
    """The host of an address where it is one of Azure's, which names the account; or nothing."""
    host = urlsplit(address).hostname or ""
    return host if _HOST.fullmatch(host) else ""


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
    """A token of Entra for whom azure-identity chooses: principal, workload, machine or login; None: nobody is named here."""
    env = os.environ
    said = any(map(env.get, _IDENTITIES))
    if not (said or any(map(shutil.which, _LOGINS)) or machine_says("chassis_asset_tag", _CHASSIS)):
        return None
    try:
        from azure.core.exceptions import AzureError
        from azure.identity import DefaultAzureCredential
    except ImportError as error:
        if not said:
            return None  # a program that may hold a login is no wish to use it: public containers need none
        raise MissingPackageError.of("azure-identity", "an identity of Azure", "cloud") from error
    logging.getLogger("azure.identity").addHandler(_QUIET)  # what it warns of, the error below says
    try:
        with DefaultAzureCredential() as chain:
            found = chain.get_token(_SCOPE)
    except (AzureError, OSError, ValueError) as error:  # a file that is named may not be there
        if not said:
            return None  # nobody is logged in, or a machine without an identity
        reason = _REASON.search(str(error))  # the rest of the words may hold secrets
        what = f"azure-identity gets no token ({reason[0] if reason else type(error).__name__})."
        hint = "Check AZURE_TENANT_ID, AZURE_CLIENT_ID and what proves it; az login is another way."
        raise StoreError(what, code="E_AUTH", hint=hint) from None
    return Bearer(found.token, found.expires_on)


def with_sas(address: str, sas: str) -> str:
    """The address with a shared access signature added to its query."""
    return f"{address}{'&' if urlsplit(address).query else '?'}{sas if '%' in sas else urlencode(parse_qsl(sas))}"
