"""Folder pages of web servers: the links of an HTML index, or the entries of a JSON one."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit, urlunsplit

from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.stores.base import Stat
from tarviz.stores.retry import http_date


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]


def children(folder: URL, page: bytes) -> list[Stat]:
    """The objects directly in `folder`, sorted by name: what http.server, nginx and Apache show.

    nginx's JSON (`autoindex_format json`) gives sizes and dates too. Links elsewhere, to folders, and to other
    orders of the page are left out.
    """
    text = page.decode("utf-8", "surrogateescape")
    if text.lstrip().startswith("["):
        return _entries(folder, text)
    if "<" not in text:
        raise StoreError("the server shows no list of this folder.", code="E_READ", shard=folder, hint="Name the shards with a template.")
    links = _Links()
    links.feed(text)
    base = urlsplit(folder)
    names: set[str] = set()
    for link in links.found:
        parts = urlsplit(urljoin(folder, link))
        place, _, name = parts.path.rpartition("/")
        here = (parts.scheme, parts.netloc, unquote(f"{place}/")) == (base.scheme, base.netloc, unquote(base.path))  # however it is escaped
        if here and name and not parts.query:
            names.add(name)
    return [Stat(_child(base, name)) for name in sorted(names, key=unquote)]


def _entries(folder: URL, text: str) -> list[Stat]:
    base = urlsplit(folder)
    try:
        rows = [row for row in json.loads(text) if row["type"] == "file"]
        found = [(str(row["name"]), int(row["size"]), http_date(str(row.get("mtime", "")))) for row in rows]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StoreError("the server's list of this folder cannot be read.", code="E_READ", shard=folder) from error
    return [Stat(_child(base, quote(name)), size, None, mtime) for name, size, mtime in sorted(found) if "/" not in name]


def _child(folder: SplitResult, name: str) -> URL:
    return URL(urlunsplit(folder._replace(path=folder.path + name, fragment="")))
