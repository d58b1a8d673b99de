"""One HTTP request: connections, proxies, credentials, redirects, and what a status means."""

from __future__ import annotations

import base64
import functools
import http.client
import ipaddress
import json
import logging
import os
import re
import ssl
import urllib.request
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import urllib3
from urllib3 import exceptions
from urllib3.connection import HTTPConnection, HTTPSConnection

import tarviz
from tarviz.model.errors import NotFoundError, StoreError, UsageError, redact
from tarviz.model.types import URL
from tarviz.stores.retry import Clock, RetryError, retry_after

REDIRECTS = 5
CONNECT_TIMEOUT = 10.0
_TEMPORARY = {408, 425, 429} | set(range(500, 600)) - {501, 505}
_ERROR_BODY = 4096
_PROXY_NAMES = [spelt for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for spelt in (name, name.upper())]
_CODE = re.compile(rb"<Code>\s*([\w.]{1,60})\s*</Code>")
_MESSAGE = re.compile(rb"<Message>([^<]{1,300})</Message>")


class _Excess(http.client.HTTPException):
    """The body goes on where Content-Length says that it ends."""


class _Body(http.client.HTTPResponse):
    """A response that notices bytes behind its declared end, where http.client would leave them lying."""

    def __init__(self, sock: object, *args: object, **options: object) -> None:
        super().__init__(sock, *args, **options)  # type: ignore[arg-type]
        self.wire = sock

    def read1(self, n: int = -1) -> bytes:
        if self.fp is None or self.chunked or not self.length or self._method == "HEAD":  # type: ignore[attr-defined]
            return super().read1(n)
        data: bytes = self.fp.read1(self.length if n < 0 else min(n, self.length))
        self.length -= len(data)
        if self.length == 0 and self._behind().strip(b"\r\n"):
            raise _Excess
        return data

    def _behind(self) -> bytes:
        """What has arrived behind the body, without waiting for it."""
        before = self.wire.gettimeout()  # type: ignore[attr-defined]
        self.wire.settimeout(0)  # type: ignore[attr-defined]
        try:
            return self.fp.peek(1)
        except OSError:  # nothing there (TLS), or reset by the server: the body is complete all the same
            return b""
        finally:
            self.wire.settimeout(before)  # type: ignore[attr-defined]


class _Connection(HTTPConnection):
    response_class = _Body


class _SecureConnection(HTTPSConnection):
    response_class = _Body


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class _Redact(logging.Filter):
    """urllib3 logs the target of every request at DEBUG level: signatures are taken out of it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(redact(each) if isinstance(each, str) else each for each in record.args)
        return True


@functools.cache
def _quiet_log() -> None:
    logging.getLogger("urllib3.connectionpool").addFilter(_Redact())


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


@dataclass
class Wire:
    """Sends requests over pooled connections; threads share it, a forked child gets new connections."""

    headers: dict[str, str] = field(default_factory=dict, repr=False)
    clock: Clock = field(default_factory=Clock, repr=False)
    reached: set[str] = field(default_factory=set, repr=False)
    _managers: tuple[int, dict[str, urllib3.PoolManager]] = field(default=(0, {}), repr=False)  # process id, by proxy

    def send(self, method: str, url: URL, headers: dict[str, str], stall_timeout: float) -> urllib3.BaseHTTPResponse:
        """The answer, its body unread: 200, 206, 412 or 416.

        `RetryError` for what may pass, `NotFoundError`, `E_AUTH` and other `StoreError` at once for what will not.
        """
        origin(url)  # a URL that cannot be fails here
        target: str = url
        for _ in range(REDIRECTS + 1):
            answer = self._send(method, url, target, headers, stall_timeout)
            self.reached.add(origin(target))
            place = answer.headers.get("Location")
            if answer.status not in (301, 302, 303, 307, 308) or not place:
                self._judge(answer, url, target)
                return answer
            _let_go(answer)
            target = _redirect(url, target, place)
        raise StoreError(f"the server redirects more than {REDIRECTS} times, last to {redact(target)}.", shard=url)

    def _send(self, method: str, url: str, target: str, headers: dict[str, str], stall_timeout: float) -> urllib3.BaseHTTPResponse:
        parts = urlsplit(target)
        if not parts.hostname:
            raise UsageError("the URL names no host.", shard=url)
        bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
        sent = {"Accept-Encoding": "identity", "User-Agent": f"tarviz/{tarviz.__version__}"} | self._credentials(url, target) | headers
        timeout = urllib3.Timeout(connect=min(CONNECT_TIMEOUT, stall_timeout), read=stall_timeout)
        try:
            manager = self._manager(parts.scheme.lower(), parts.netloc.rpartition("@")[2])
            return manager.request(
                method, bare, headers=sent, timeout=timeout, retries=False, redirect=False, preload_content=False, decode_content=False
            )
        except (exceptions.HTTPError, http.client.HTTPException, OSError, ValueError) as error:
            _raise(error, url, parts.hostname)

    def _credentials(self, url: str, target: str) -> dict[str, str]:
        """Headers for this request: those set for its origin, and those of the URL while the origin is the URL's."""
        found = dict(_configured().get(origin(target), {}))
        if origin(url) == origin(target):
            found |= self.headers
            user = urlsplit(url).netloc.rpartition("@")[0]
            if user:
                found["Authorization"] = "Basic " + base64.b64encode(unquote(user).encode()).decode()
        return found

    def _manager(self, scheme: str, host: str) -> urllib3.PoolManager:
        owner, managers = self._managers
        if owner != os.getpid():  # sockets of a parent process are not ours to use
            managers = {}
            self._managers = os.getpid(), managers
            _quiet_log()
        proxy = _proxy(scheme, host, tuple(map(os.environ.get, _PROXY_NAMES)))
        if proxy not in managers:
            managers[proxy] = _make_manager(proxy)
        return managers[proxy]

    def _judge(self, answer: urllib3.BaseHTTPResponse, url: str, target: str) -> None:
        if answer.status in (200, 206, 412, 416):
            return
        text = f"{answer.status} {answer.reason or http.client.responses.get(answer.status, '')}".strip()
        after = retry_after(answer.headers.get("Retry-After"), answer.headers.get("Date"), self.clock)
        said = _said(answer)
        where = f" ({redact(target)}, where the server redirected to)" if target != url else ""
        if answer.status in _TEMPORARY:
            raise RetryError(f"the server answers {text}{said}", after=after)
        if answer.status in (404, 410):
            raise NotFoundError(f"the server has no such object: {text}{said}{where}.", shard=url, hint="Check the URL.")
        if answer.status in (401, 403, 407):
            hint = "Sign the URL again, or set credentials (https://user:password@host/… or TARVIZ_HTTP_HEADERS)."
            raise StoreError(f"the server refuses access: {text}{said}{where}.", code="E_AUTH", shard=url, hint=hint)
        raise StoreError(f"the server answers {text}{said}{where}.", shard=url, details={"status": answer.status})


@functools.lru_cache(maxsize=256)
def _proxy(scheme: str, host: str, _: tuple[str | None, ...]) -> str:
    """The proxy for a host, or nothing; asked again when the environment changes."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    return "" if proxy and urllib.request.proxy_bypass(host) else proxy


def _make_manager(proxy: str) -> urllib3.PoolManager:
    manager: urllib3.PoolManager
    if proxy:
        address = proxy if "://" in proxy else f"http://{proxy}"
        user = urlsplit(address).netloc.rpartition("@")[0]
        headers = urllib3.make_headers(proxy_basic_auth=unquote(user)) if user else None
        manager = urllib3.ProxyManager(address, num_pools=32, maxsize=64, proxy_headers=headers)
    else:
        manager = urllib3.PoolManager(num_pools=32, maxsize=64)
    manager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    return manager


@functools.lru_cache(maxsize=4)
def _parse_headers(text: str) -> dict[str, dict[str, str]]:
    try:
        table = json.loads(text)
        return {origin(place): {str(name): str(value) for name, value in headers.items()} for place, headers in table.items()}
    except (ValueError, AttributeError) as error:
        raise UsageError(
            "TARVIZ_HTTP_HEADERS cannot be read.", hint='Write JSON: {"https://host": {"Authorization": "Bearer …"}}.'
        ) from error


def _configured() -> dict[str, dict[str, str]]:
    text = os.environ.get("TARVIZ_HTTP_HEADERS", "")
    return _parse_headers(text) if text else {}


def _redirect(url: str, target: str, place: str) -> str:
    """Where a redirect leads, if it may: to http(s), never away from TLS, never to the machine's own services."""
    try:
        new = urljoin(target, place)
        parts = urlsplit(new)
    except ValueError as error:
        raise StoreError(f"the server redirects to {redact(place)}, which is no URL.", shard=url) from error
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise StoreError(f"the server redirects to {redact(new)}, which is no http(s) URL.", shard=url)
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


def _let_go(answer: urllib3.BaseHTTPResponse) -> None:
    """Keep the connection when what is left of the answer is small, close it otherwise."""
    if (answer.headers.get("Content-Length") or "x").isdecimal() and int(answer.headers["Content-Length"]) <= 1 << 16:
        answer.drain_conn()
    answer.close()


def excess(error: BaseException) -> bool:
    """Whether an error of a body means that it is longer than its Content-Length."""
    return any(isinstance(each, _Excess) for each in (*error.args, error.__cause__))


def _said(answer: urllib3.BaseHTTPResponse) -> str:
    """The reason that an XML answer of an object store gives, in brackets."""
    try:
        head = answer.read(_ERROR_BODY)
    except (exceptions.HTTPError, OSError):
        head = b""
    answer.close()
    found = [match[1].decode("utf-8", "replace") for match in (_CODE.search(head), _MESSAGE.search(head)) if match]
    return f" ({redact(': '.join(found))})" if found else ""


def _raise(error: Exception, url: str, host: str) -> NoReturn:
    """The error of a request that got no answer, sorted by whether another attempt may help."""
    if isinstance(error, exceptions.ProxyError):
        if "Tunnel connection failed: 4" in str(error):
            raise StoreError(f"the proxy refuses: {redact(str(error.original_error))}.", code="E_AUTH", shard=url) from error
        raise RetryError("the proxy could not be reached", unreached=True) from error
    if isinstance(error, exceptions.NameResolutionError):
        raise RetryError(f"the host name {host} could not be looked up", unreached=True) from error
    if isinstance(error, exceptions.NewConnectionError):
        raise RetryError(f"no connection to {host}: {_last(error)}", unreached=True) from error
    if isinstance(error, exceptions.ConnectTimeoutError):
        raise RetryError(f"no connection to {host} in time", code="E_STALL", unreached=True) from error
    if isinstance(error, exceptions.ReadTimeoutError):
        raise RetryError("no answer in time", code="E_STALL") from error
    if isinstance(error, exceptions.SSLError):
        if error.args and isinstance(error.args[0], ssl.SSLEOFError | ssl.SSLZeroReturnError):
            raise RetryError("the connection was closed in the TLS handshake", at_once=True) from error
        hint = "The certificate is not trusted here; SSL_CERT_FILE may name the right authority. Verification is never switched off."
        raise StoreError(f"TLS failed: {error.args[0] if error.args else error}.", shard=url, hint=hint) from error
    if isinstance(error, exceptions.LocationValueError | http.client.InvalidURL | ValueError):
        raise UsageError(f"the URL or a header cannot be sent: {redact(str(error))}.", shard=url) from error
    cause: object = error.args[1] if len(error.args) > 1 else error
    if isinstance(cause, http.client.BadStatusLine) and not isinstance(cause, http.client.RemoteDisconnected):
        raise StoreError(f"{host} answers, but does not speak HTTP.", shard=url) from error
    raise RetryError(f"the connection broke before the answer: {_last(error)}", at_once=True) from error


def _last(error: BaseException) -> str:
    """The words of the system under an error of urllib3."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return getattr(error, "strerror", None) or redact(str(error)) or type(error).__name__
