"""Addresses of requests: what belongs to one server, what is sent of them, and where a redirect may lead."""

from __future__ import annotations

import functools
import ipaddress
from urllib.parse import urljoin, urlsplit, urlunsplit

from tarviz.model.errors import StoreError, UsageError, redact


@functools.lru_cache(maxsize=4096)
def origin(url: str) -> str:
    """Scheme, host and port: what credentials belong to.

    >>> origin("HTTPS://me:pw@Host/a?b")
    'https://host:443'
    """
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        port = parts.port or {"http": 80, "https": 443}.get(scheme)
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


def redirected(url: str, target: str, place: str) -> str:
    """Where a redirect leads, if it may: to http(s), never away from TLS, never to the machine's own services."""
    try:
        new = urljoin(target, place)
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


def _link_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_link_local
    except ValueError:
        return False
