"""Addresses of requests: what belongs to one server, what is sent of them, and where a redirect may lead."""

from __future__ import annotations

import functools
import ipaddress
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

from tarviz.model.errors import StoreError, UsageError, redact
from tarviz.model.urls import PORTS

_PRINTED = "".join(map(chr, range(0x21, 0x7F)))


@functools.lru_cache(maxsize=4096)
def origin(url: str) -> str:
    """Scheme, host and port: what credentials belong to.

    >>> origin("HTTPS://me:pw@Host/a?b")
    'https://host:443'
    """
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        port = parts.port or PORTS.get(scheme)
    except ValueError as error:
        raise UsageError(f"the URL cannot be read: {error}.", shard=url) from error
    return f"{scheme}://{parts.hostname or ''}:{port}"


@functools.lru_cache(maxsize=4096)
def bare_address(address: str) -> str:
    """An address without user, password and fragment.

    >>> bare_address("https://me:pw@host/a?b#c")
    'https://host/a?b'
    """
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))


def redirect_target(url: str, target: str, place: str) -> str:
    """Where a redirect leads, if it may: to http(s), never away from TLS, never to the machine's own services.

    What is not ASCII in `place`, which http.client reads as Latin-1, is escaped byte by byte, as browsers do: servers send raw UTF-8.
    """
    try:
        new = urljoin(target, _escape(place))
        parts = urlsplit(new)
    except ValueError as error:
        raise StoreError(f"the server redirects to {redact(place)}, which is not a URL.", shard=url) from error
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise StoreError(f"the server redirects to {redact(new)}, which is not a http(s) URL.", shard=url)
    if parts.scheme.lower() == "http" and urlsplit(target).scheme.lower() == "https":
        raise StoreError(f"the server redirects from https to plain http ({redact(new)}), which is not followed.", shard=url)
    if _link_local(parts.hostname) and not _link_local(urlsplit(url).hostname or ""):
        raise StoreError(f"the server redirects to the link-local address {parts.hostname}, which is not followed.", shard=url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _escape(place: str) -> str:
    return place if place.isascii() else quote(place.encode("latin-1", "replace"), safe=_PRINTED)


def check_written(url: str, place: str, target: str) -> None:
    """`StoreError` where what is written to the address `place` would get another name at `target`, to which it was redirected.

    Seen of AIStore's S3 gateway, which does not escape a `?` in a name: the object would be made under the name before that sign.
    """
    before, now = (unquote(urlsplit(each).path) for each in (place, target))
    if before.rpartition("/")[2] != now.rpartition("/")[2]:
        what = f"the server redirects the write to another name ({redact(now)}), which is not followed: nothing was written."
        raise StoreError(what, code="E_WRITE", shard=url)


def _link_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_link_local
    except ValueError:
        return False
