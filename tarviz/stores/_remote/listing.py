"""Listings of object stores: pages of XML or JSON, each fetched when it is wanted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias
from xml.etree import ElementTree

from tarviz.model.errors import NotFoundError, StoreError
from tarviz.model.types import URL
from tarviz.stores._remote.version import Version
from tarviz.stores.base import Stat
from tarviz.stores.retry import http_date

_NAMESPACE = re.compile(rb'\sxmlns="[^"]*"')
Row: TypeAlias = tuple[str, int | None, str | None, float | None]  # of an object: name, size, version, time


class ListingPage(NamedTuple):
    """What a page holds: objects, whether there are folders, and what asks for the next page."""

    rows: Sequence[Row]
    folders: bool
    following: str | None


@dataclass(frozen=True, slots=True)
class ListingForm:
    """How one kind of server lists: what it is asked, the name of what asks for the next page, and how a page is read."""

    query: Mapping[str, str]
    token: str
    read: Callable[[bytes, str], ListingPage]

    def __call__(self, base: str, prefix: str, page: Callable[[dict[str, str]], bytes], *, deep: bool = False) -> Iterator[Stat]:
        """The objects directly below `prefix`, sorted by name, a page at a time; `base` + name is their URL. `page` asks for one.

        `deep`: all whose names begin so, and it is no error that there are none.
        """
        query = {**self.query, "prefix": prefix} | ({} if deep else {"delimiter": "/"})
        below = deep
        while query:
            rows, folders, following = self.read(page(query), base)
            below |= folders or bool(rows)
            for name, size, etag, mtime in rows:
                if name != prefix:  # the folder itself, where somebody has made it an object
                    yield Stat(URL(base + name), size, etag, mtime)
            query = {**query, self.token: following} if following else {}
        if not below:
            raise NotFoundError("nothing exists under this name.", shard=base + prefix, hint="Check bucket and prefix.")


def _s3(page: bytes, url: str) -> ListingPage:
    root = _tree(page, url)
    rows = [
        (each.findtext("Key", ""), _size(each.findtext("Size")), each.findtext("ETag"), _time(each.findtext("LastModified")))
        for each in root.iter("Contents")
    ]
    more = root.findtext("IsTruncated") == "true"
    return ListingPage(rows, root.find("CommonPrefixes") is not None, root.findtext("NextContinuationToken") if more else None)


def _azure(page: bytes, url: str) -> ListingPage:
    root = _tree(page, url)
    rows: list[Row] = []
    for each in root.iter("Blob"):
        etag, date = each.findtext("Properties/Etag"), each.findtext("Properties/Last-Modified")
        etag = f'"{etag}"' if etag and not etag.startswith('"') else etag
        rows.append((each.findtext("Name", ""), _size(each.findtext("Properties/Content-Length")), etag, http_date(date or "")))
    return ListingPage(rows, next(root.iter("BlobPrefix"), None) is not None, root.findtext("NextMarker"))


def _google(page: bytes, url: str) -> ListingPage:
    try:
        found = json.loads(page)
        told = [(each["name"], *Version.of_description(each)) for each in found.get("items") or ()]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise _unreadable(url) from error
    rows = [(name, size, version.token(size), version.mtime) for name, version, size in told]
    return ListingPage(rows, bool(found.get("prefixes")), found.get("nextPageToken"))


def _tree(page: bytes, url: str) -> ElementTree.Element:
    if b"<!DOCTYPE" in page or b"<!ENTITY" in page:
        raise StoreError("the server's list is a page with a document type, which no object store sends.", code="E_READ", shard=url)
    try:
        return ElementTree.fromstring(_NAMESPACE.sub(b"", page, count=1))
    except ElementTree.ParseError as error:
        raise _unreadable(url) from error


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


# Sources: docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html, learn.microsoft.com/rest/api/storageservices/list-blobs,
# cloud.google.com/storage/docs/json_api/v1/objects/list
s3_pages = ListingForm({"list-type": "2"}, "continuation-token", _s3)
azure_pages = ListingForm({"restype": "container", "comp": "list"}, "marker", _azure)
google_pages = ListingForm({}, "pageToken", _google)
