"""Listings of object stores: pages of XML, each fetched when it is wanted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Protocol
from xml.etree import ElementTree

from tarviz.model.errors import NotFoundError, StoreError
from tarviz.model.types import URL
from tarviz.stores._remote.version import Version
from tarviz.stores.base import Stat

_NAMESPACE = re.compile(rb'\sxmlns="[^"]*"')


class Pages(Protocol):
    """Asks for one page of the objects whose names begin with a prefix, up to the next slash."""

    def __call__(self, query: dict[str, str]) -> bytes: ...


def s3_pages(base: str, prefix: str, page: Pages, *, deep: bool = False) -> Iterator[Stat]:
    """The objects directly below `prefix`, sorted by name, a thousand at a time; `base` + name is their URL.

    `deep`: all whose names begin so, and it is no error that there are none.

    Source: docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html; Google's XML interface speaks it too.
    """
    query = {"list-type": "2", "prefix": prefix} | ({} if deep else {"delimiter": "/"})
    below = deep
    while True:
        root = _tree(page(query), base)
        below |= root.find("CommonPrefixes") is not None
        for entry in root.iter("Contents"):
            below = True
            name = entry.findtext("Key", "")
            if name != prefix:  # the folder itself, where somebody has made it an object
                yield Stat(URL(base + name), _size(entry.findtext("Size")), entry.findtext("ETag"), _time(entry.findtext("LastModified")))
        token = root.findtext("NextContinuationToken")
        if root.findtext("IsTruncated") != "true" or not token:
            break
        query = {**query, "continuation-token": token}
    _exists(below, base + prefix)


def azure_pages(base: str, prefix: str, page: Pages, *, deep: bool = False) -> Iterator[Stat]:
    """As `s3_pages`, of Azure. Source: learn.microsoft.com/rest/api/storageservices/list-blobs"""
    query = {"restype": "container", "comp": "list", "prefix": prefix} | ({} if deep else {"delimiter": "/"})
    below = deep
    while True:
        root = _tree(page(query), base)
        below |= next(root.iter("BlobPrefix"), None) is not None
        for entry in root.iter("Blob"):
            below = True
            name, etag = entry.findtext("Name", ""), entry.findtext("Properties/Etag")
            size, date = entry.findtext("Properties/Content-Length"), entry.findtext("Properties/Last-Modified")
            if name != prefix:
                etag = f'"{etag}"' if etag and not etag.startswith('"') else etag
                yield Stat(URL(base + name), _size(size), etag, _http_time(date))
        marker = root.findtext("NextMarker")
        if not marker:
            break
        query = {**query, "marker": marker}
    _exists(below, base + prefix)


def google_pages(base: str, prefix: str, page: Pages, *, deep: bool = False) -> Iterator[Stat]:
    """As `s3_pages`, of Google. Source: cloud.google.com/storage/docs/json_api/v1/objects/list"""
    query = {"prefix": prefix} | ({} if deep else {"delimiter": "/"})
    below = deep
    while True:
        found = _json(page(query), base)
        below |= bool(found.get("prefixes"))
        try:
            entries = [(each["name"], *Version.described(each)) for each in found.get("items") or ()]
        except (LookupError, TypeError, ValueError) as error:
            raise _unreadable(base) from error
        for name, version, size in entries:
            below = True
            if name != prefix:
                yield Stat(URL(base + name), size, version.token(size), version.mtime)
        token = found.get("nextPageToken")
        if not token:
            break
        query = {**query, "pageToken": token}
    _exists(below, base + prefix)


def _tree(page: bytes, url: str) -> ElementTree.Element:
    if b"<!DOCTYPE" in page or b"<!ENTITY" in page:
        raise StoreError("the server's list is a page with a document type, which no object store sends.", code="E_READ", shard=url)
    try:
        return ElementTree.fromstring(_NAMESPACE.sub(b"", page, count=1))
    except ElementTree.ParseError as error:
        raise _unreadable(url) from error


def _json(page: bytes, url: str) -> dict[str, Any]:
    try:
        found = json.loads(page)
    except ValueError as error:
        raise _unreadable(url) from error
    if not isinstance(found, dict):
        raise _unreadable(url)
    return found


def _unreadable(url: str) -> StoreError:
    hint = "Is this the address of an object store?"
    return StoreError("the server's list of this bucket cannot be read.", code="E_READ", shard=url, hint=hint)


def _size(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _time(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None


def _http_time(text: str | None) -> float | None:
    from tarviz.stores.retry import http_date

    return http_date(text) if text else None


def _exists(below: bool, folder: str) -> None:
    if not below:
        raise NotFoundError("nothing exists under this name.", shard=folder, hint="Check bucket and prefix.")
