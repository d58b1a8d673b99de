"""`gs://bucket/name`: Google Cloud Storage, by its XML interface.

Environment: who asks is google-auth's decision (extra `cloud`): `GOOGLE_APPLICATION_CREDENTIALS`, the login of gcloud, the machine;
without any, public buckets are read unsigned. `STORAGE_EMULATOR_HOST` names another server.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

from tarviz.model.types import URL
from tarviz.stores._remote.access import Access, Kept
from tarviz.stores._remote.buckets import bucket_and_name, path, with_query
from tarviz.stores._remote.google_tokens import VARIABLES, find_token
from tarviz.stores._remote.s3_like import S3LikeStore


class _GoogleAccess(Access):
    """Requests with the token of a Google account."""

    variables: ClassVar[tuple[str, ...]] = VARIABLES

    def __init__(self) -> None:
        self._token = Kept(find_token, VARIABLES)

    def address(self, url: URL, query: Mapping[str, str]) -> str:
        return with_query(_endpoint() + path(*bucket_and_name(url)), query)

    def headers(self, method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        found = self._token()
        return {"Authorization": f"Bearer {found.token}", **found.headers} if found else {}

    def renew(self, url: URL, status: int, headers: Mapping[str, str], said: str) -> bool:
        return status == 401 and self._token.forget()

    def hint(self, status: int, code: str) -> str:
        if status in (404, 410):
            return "Check bucket and name; STORAGE_EMULATOR_HOST names another server than Google's."
        if self._token() is None:
            return "No credentials were found: run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS."
        return "The account may not do this: check its roles, or choose another one by GOOGLE_APPLICATION_CREDENTIALS."


def _endpoint() -> str:
    place = os.environ.get("STORAGE_EMULATOR_HOST", "").rstrip("/")
    if not place:
        return "https://storage.googleapis.com"
    return place if "://" in place else f"http://{place}"


class GoogleStore(S3LikeStore):
    """Objects of Google's buckets. Writes large objects in parts; nothing is visible before the last one is accepted."""

    absent: ClassVar[Mapping[str, str]] = {"x-goog-if-generation-match": "0"}

    def _access(self) -> Access:
        return _GoogleAccess()


def store() -> GoogleStore:
    """The store of `gs://`."""
    return GoogleStore()
