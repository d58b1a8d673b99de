"""`gs://bucket/name`: Google Cloud Storage, by JSON, as Google's own libraries and the emulators speak.

Environment: who asks is google-auth's decision (extra `cloud`): `GOOGLE_APPLICATION_CREDENTIALS`, the login of gcloud, the machine;
without any, public buckets are read unsigned. `STORAGE_EMULATOR_HOST` names another server.
Storage options: `user_project` (who pays), `encryption_key` (a customer's own), `version` (a generation).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote

from tarviz.model.errors import NotFoundError, StoreError
from tarviz.model.types import URL
from tarviz.stores._remote.access import TokenAccess
from tarviz.stores._remote.buckets import bucket_and_name, with_query
from tarviz.stores._remote.google_tokens import VARIABLES, find_token
from tarviz.stores._remote.listing import google_pages
from tarviz.stores._remote.reader import BucketStore
from tarviz.stores._remote.upload import GoogleUpload


class _GoogleAccess(TokenAccess):
    """Requests with the token of a Google account."""

    HINT_MISSING = "Check bucket and name; STORAGE_EMULATOR_HOST names another server than Google's."
    find = staticmethod(find_token)
    variables: ClassVar[tuple[str, ...]] = VARIABLES

    described: ClassVar[Mapping[str, str]] = {"alt": "json"}
    OPTIONS: ClassVar[Mapping[str, str]] = {
        "user_project": "x-goog-user-project",
        "encryption_key": "x-goog-encryption-",
        "version": "generation",
    }

    def address(self, url: URL, query: Mapping[str, str]) -> str:
        """Of the object's bytes; of what is said of it, of a list or of an upload, where the query is one for that."""
        bucket, name = bucket_and_name(url)
        objects = f"/storage/v1/b/{quote(bucket)}/o"
        if "prefix" in query:
            return with_query(_endpoint() + objects, query)
        if "uploadType" in query:
            return with_query(f"{_endpoint()}/upload{objects}", {**query, "name": name})
        place = f"{objects}/{quote(name, safe='', errors='surrogateescape')}"
        if "alt" in query:
            return with_query(_endpoint() + place, query)
        return with_query(f"{_endpoint()}/download{place}", {**query, "alt": "media"})

    def headers(self, method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        found = self._token()
        return {"Authorization": f"Bearer {found.token}", **found.headers} if found else {}

    def denial_hint(self) -> str:
        if self._token() is None:
            return "No credentials were found: run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS."
        return "The account may not do this: check its roles, or choose another one by GOOGLE_APPLICATION_CREDENTIALS."


def _endpoint() -> str:
    place = os.environ.get("STORAGE_EMULATOR_HOST", "").rstrip("/")
    if not place:
        return "https://storage.googleapis.com"
    return place if "://" in place else f"http://{place}"


class GoogleStore(BucketStore):
    """Objects of Google's buckets. Writes large objects in parts; nothing is visible before the last one is accepted."""

    access = _GoogleAccess
    pages = google_pages
    upload = GoogleUpload

    def _asks_again(self, error: StoreError | NotFoundError) -> bool:
        return False  # what describes an object says why it does not


store = GoogleStore
