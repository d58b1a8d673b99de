"""`az://container/name`: Azure's blobs; `abfs://container@account.dfs.core.windows.net/name` names the account too.

Environment: `AZURE_STORAGE_ACCOUNT` or `AZURE_STORAGE_CONNECTION_STRING` names the account. It is opened by
`AZURE_STORAGE_KEY` or `AZURE_STORAGE_SAS_TOKEN`, or else by whom azure-identity finds (extra `cloud`): a service principal
(`AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET`), a workload's or machine's identity, a login; without any, or with
`AZURE_SKIP_SIGNATURE=true`, public containers are read.
Storage options: `encryption_key` (a customer's own), `version`.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import formatdate
from typing import ClassVar

from tarviz.model.types import URL
from tarviz.stores._remote.access import TokenAccess
from tarviz.stores._remote.azure_keys import API, VARIABLES, find_account, find_token, host_of, shared_key, with_sas
from tarviz.stores._remote.buckets import bucket_and_name, path, with_query
from tarviz.stores._remote.listing import azure_pages
from tarviz.stores._remote.reader import BucketStore
from tarviz.stores._remote.upload import AzureUpload


class _AzureAccess(TokenAccess):
    """Requests signed with the account's key, or with a shared access signature, or with a token."""

    steady: ClassVar[bool] = False  # a key signs the range

    HINT_MISSING = "Check account, container and name (AZURE_STORAGE_ACCOUNT)."
    find = staticmethod(find_token)
    variables: ClassVar[tuple[str, ...]] = VARIABLES
    OPTIONS: ClassVar[Mapping[str, str]] = {"encryption_key": "x-ms-encryption-", "version": "versionid"}

    def address(self, url: URL, query: Mapping[str, str]) -> str:
        bucket, name = bucket_and_name(url)
        container, _, host = bucket.partition("@")
        account = find_account(host)
        place = with_query(account.endpoint + path(container, name), query)
        return with_sas(place, account.sas) if account.sas and not account.key and not account.anonymous else place

    def headers(self, method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        account = find_account(host_of(address))
        asked = {"x-ms-version": API}
        if account.anonymous or (account.sas and not account.key):
            return asked
        if account.key:
            return shared_key(method, address, headers, account)
        found = self._token()
        return asked | ({"Authorization": f"Bearer {found.token}", "x-ms-date": formatdate(usegmt=True)} if found else {})

    def denial_hint(self) -> str:
        account = find_account()
        if account.key or account.sas:
            return "Check AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN; AZURE_SKIP_SIGNATURE=true reads public containers."
        if self._token() is None:
            return "No credentials were found: run az login, or set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN."
        return "The identity may not do this: it needs the role Storage Blob Data Reader (or Contributor, to write)."


class AzureStore(BucketStore):
    """Blobs of Azure's containers. Writes large ones in blocks; nothing is visible before their list is accepted."""

    access = _AzureAccess
    pages = azure_pages
    upload = AzureUpload


store = AzureStore
