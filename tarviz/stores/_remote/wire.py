"""One HTTP request: connections, proxies, credentials, redirects, and what a status means."""

from __future__ import annotations

import base64
import functools
import http.client
import json
import logging
import os
import re
import socket
import ssl
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3 import exceptions

import tarviz
from tarviz.model.environment import Watched
from tarviz.model.errors import NotFoundError, StoreError, UsageError, redact
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL
from tarviz.stores._remote.access import ABSENT, REFUSED, Access
from tarviz.stores._remote.addresses import bare_address, check_written, origin, redirect_target
from tarviz.stores._remote.connections import asking, floods, make_manager, release
from tarviz.stores._remote.version import Version, total_of
from tarviz.stores.base import Stat
from tarviz.stores.retry import Clock, RetryError, retry_after

REDIRECTS = 5
CONNECT_TIMEOUT = 10.0
MOVED = {301, 302, 303, 307, 308}
TEMPORARY = {408, 425, 429} | set(range(500, 600)) - {501, 505}
_ERROR_BODY = 4096
_DESCRIPTION = 1 << 20
_PROXIES = [spelt for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for spelt in (name, name.upper())]
_WATCHED = Watched(_PROXIES)
_CODE = re.compile(rb"<Code>\s*([\w.]{1,60})\s*</Code>")
_MESSAGE = re.compile(rb"<Message>([^<]{1,300})</Message>")
_BUSY = {"SlowDown", "RequestTimeout", "ServerBusy", "OperationTimedOut"}
_NO_BUCKET = {"NoSuchBucket", "ContainerNotFound", "ErrBckNotFound"}
_PASSING = 10.0  # seconds for which a refusal that passes is borne
_BAD_KEYS = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AuthenticationFailed"}
VARIABLES = (*_PROXIES, "TARVIZ_HTTP_HEADERS")
USUAL = {"Accept-Encoding": "identity", "User-Agent": f"tarviz/{tarviz.__version__}"}
READ = frozenset({200, 206, 412, 416})
WRITTEN = frozenset({200, 201, 202, 204})


@dataclass(frozen=True, slots=True)
class _Ask:
    """One request as the caller means it, whatever address it goes to."""

    method: str
    url: URL
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    stall_timeout: float
    waits: Callable[[socket.socket], object] | None = field(default=None, repr=False)
    told: Mapping[str, str] = field(default_factory=dict, repr=False)  # headers for its origin alone

    __repr__ = redacted_repr


def _redact_record(record: logging.LogRecord) -> bool:
    """urllib3 logs the target of every request at DEBUG level: signatures are taken out of it."""
    if isinstance(record.args, tuple):
        record.args = tuple(redact(each) if isinstance(each, str) else each for each in record.args)
    return True


class Wire:
    """Sends requests over pooled connections; threads share it, a forked child gets new connections.

    `access` says how URLs become addresses.
    """

    def __init__(self, clock: Clock, access: Access) -> None:
        self.clock = clock
        self.access = access
        self._reached: set[str] = set()
        # of the process with this id, by proxy and what TLS trusts
        self._managers: tuple[int, dict[tuple[str, ssl.SSLContext | None], urllib3.PoolManager]] = 0, {}

    def has_answered(self, url: URL) -> bool:
        """Whether the server of a URL has ever answered."""
        return origin(self.access.address(url, {})) in self._reached

    def note_answer(self, place: str) -> None:
        """The server of an address has answered."""
        self._reached.add(origin(place))

    def send(
        self,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        stall_timeout: float,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        accept: frozenset[int] = READ,
        waits: Callable[[socket.socket], object] | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """The answer, its body unread, with a status of `accept`.

        `waits` gets the socket before the answer is waited for, so that another thread can end that. `RetryError` for what may pass,
        `NotFoundError`, `E_AUTH` and other `StoreError` at once for what will not.
        """
        told, more = self.access.asks(method, url, query or {})
        ask = _Ask(method, url, dict(headers), body, stall_timeout, waits, told)
        for last in (False, True):
            place = self.access.address(url, {**more, **(query or {})})
            origin(place)  # a URL that cannot be fails here
            answer, target = self._follow(ask, place)
            if answer.status in accept:
                self.access.note(url)
                break
            found, said = _read_refusal(answer)
            if last or not self.access.renew(url, answer.status, answer.headers, found):
                self._refuse(answer, ask, place, target, found, said)
        return answer

    def head(self, url: URL, stall_timeout: float, query: Mapping[str, str] | None = None) -> tuple[Stat, Version]:
        """What the server says of an object without its bytes."""
        described = self.access.described
        answer = self.send("GET" if described else "HEAD", url, {}, stall_timeout, query={**(query or {}), **described})
        if not described:
            release(answer)
            return stat_of(url, answer), Version.of(answer.headers)
        try:
            version, size = Version.of_description(json.loads(read_whole(answer, _DESCRIPTION)))
        except ValueError as error:
            hint = "Is this the address of a store that speaks Google's JSON?"
            raise StoreError("the server does not say in JSON what the object is.", code="E_READ", shard=url, hint=hint) from error
        return Stat(url, size, version.token(size), version.mtime), version

    def _follow(self, ask: _Ask, place: str) -> tuple[urllib3.BaseHTTPResponse, str]:
        """The answer after all redirects, and its address."""
        target = place
        for _ in range(REDIRECTS + 1):
            answer = self._send(ask, place, target)
            self.note_answer(target)
            to = answer.headers.get("Location")
            if answer.status not in MOVED or not to:
                return answer, target
            _let_go(answer)
            target = redirect_target(ask.url, target, to)
            if ask.method in ("PUT", "POST", "DELETE"):
                check_written(ask.url, place, target)
        raise StoreError(f"the server redirects more than {REDIRECTS} times, last to {redact(target)}.", shard=ask.url)

    def _send(self, ask: _Ask, place: str, target: str) -> urllib3.BaseHTTPResponse:
        parts = urlsplit(target)
        if not parts.hostname:
            raise UsageError("the URL names no host.", shard=ask.url)
        bare = bare_address(target)
        sent = USUAL | ask.headers
        if ask.method in ("PUT", "POST"):
            sent["Content-Length"] = str(len(ask.body))
        if self._trusts(place, target):
            sent |= ask.told
        sent |= self.credentials(ask.method, place, target, sent, ask.body)
        timeout = urllib3.Timeout(connect=min(CONNECT_TIMEOUT, ask.stall_timeout), read=ask.stall_timeout)
        options = {"timeout": timeout, "retries": False, "redirect": False, "preload_content": False, "decode_content": False}
        try:
            manager = self._manager(parts.scheme.lower(), parts.netloc.rpartition("@")[2])
            asking.waits = ask.waits
            return manager.request(ask.method, bare, headers=sent, body=ask.body or None, **options)  # type: ignore[arg-type]
        except (exceptions.HTTPError, http.client.HTTPException, OSError, ValueError) as error:
            _raise(error, ask.url, parts.hostname, self.access.HINT_TLS)
        finally:
            asking.waits = None

    def credentials(self, method: str, place: str, target: str, sent: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Headers for this request: those set for its origin, and those of the URL while the origin is the URL's."""
        found = dict(_parse_headers(os.environ.get("TARVIZ_HTTP_HEADERS") or "{}").get(origin(target), {}))
        if origin(place) == origin(target):
            user, colon, password = urlsplit(place).netloc.rpartition("@")[0].partition(":")
            if user or colon:  # RFC 7617 §2: the colon is there without a password, too
                found["Authorization"] = "Basic " + base64.b64encode(unquote(f"{user}:{password}").encode()).decode()
        if self._trusts(place, target):
            found |= self.access.headers(method, bare_address(target), sent, body)
        return found

    def _trusts(self, place: str, target: str) -> bool:
        """Whether what is for the address alone goes on to where it led."""
        return origin(place) == origin(target) or self.access.follows(place, target)

    def _manager(self, scheme: str, host: str) -> urllib3.PoolManager:
        owner, managers = self._managers
        if owner != os.getpid():  # sockets of a parent process are not ours to use
            managers = {}
            self._managers = os.getpid(), managers
            logging.getLogger("urllib3.connectionpool").addFilter(_redact_record)  # once, however often it is added
        way = proxy_of(scheme, host), self.access.tls()
        if way not in managers:
            managers[way] = make_manager(*way)
        return managers[way]

    def _refuse(self, answer: urllib3.BaseHTTPResponse, ask: _Ask, place: str, target: str, found: str, said: str) -> NoReturn:
        text = f"{answer.status} {answer.reason or http.client.responses.get(answer.status, '')}".strip()
        after = retry_after(answer.headers.get("Retry-After"), answer.headers.get("Date"), self.clock)
        where = f" ({redact(target)}, where the server redirected to)" if target != place else ""
        if answer.status in TEMPORARY or found in _BUSY:
            raise RetryError(f"the server answers {text}{said}", after=after)
        if self.access.passes(ask.url, answer.status, found):
            raise RetryError(f"the server answers {text}{said}, which passes where a cluster changes", limit=_PASSING)
        refused = answer.status in REFUSED or found in _BAD_KEYS
        hint = self.access.denial_hint() if refused else self.access.hint(answer.status)
        if answer.status in ABSENT:
            what = "bucket" if found in _NO_BUCKET else "object"
            raise NotFoundError(f"the server has no such {what}: {text}{said}{where}.", shard=ask.url, hint=hint)
        details = {"status": answer.status}
        if refused:
            raise StoreError(f"the server refuses access: {text}{said}{where}.", code="E_AUTH", shard=ask.url, hint=hint, details=details)
        raise StoreError(f"the server answers {text}{said}{where}.", shard=ask.url, hint=hint, details=details)


def read_whole(answer: urllib3.BaseHTTPResponse, most: int | None = None) -> bytes:
    """The body of an answer, `most` bytes of it at most. `RetryError` where it breaks off."""
    try:
        with answer:
            return answer.read(most)
    except exceptions.HTTPError as error:
        raise RetryError("the connection broke before the answer was whole", at_once=True) from error


def stat_of(url: URL, answer: urllib3.BaseHTTPResponse) -> Stat:
    """What the headers of an answer tell of an object."""
    version, part = Version.of(answer.headers), answer.status != 200
    length = answer.headers.get("Content-Length", "")
    size = total_of(answer) if part else int(length) if length.isdecimal() else None
    ranges = part or (answer.headers.get("Accept-Ranges", "").lower() == "bytes" and not version.coded)
    return Stat(url, size, version.token(size), version.mtime, ranges)


def proxy_of(scheme: str, host: str) -> str:
    """The proxy that the environment names for a host, or nothing."""
    return _proxy(scheme, host, _WATCHED.state())


@functools.lru_cache(maxsize=256)
def _proxy(scheme: str, host: str, _: tuple[bytes | str, ...]) -> str:
    proxies = urllib.request.getproxies()
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    return "" if proxy and urllib.request.proxy_bypass(host) else proxy


@functools.lru_cache(maxsize=4)
def _parse_headers(text: str) -> dict[str, dict[str, str]]:
    try:
        table = json.loads(text)
        return {origin(place): {str(name): str(value) for name, value in headers.items()} for place, headers in table.items()}
    except (ValueError, AttributeError) as error:
        hint = 'Write JSON: {"https://host": {"Authorization": "Bearer …"}}.'
        raise UsageError("TARVIZ_HTTP_HEADERS cannot be read.", hint=hint) from error


def _let_go(answer: urllib3.BaseHTTPResponse) -> None:
    """Keep the connection when what is left of the answer is small, close it otherwise."""
    if (answer.headers.get("Content-Length") or "x").isdecimal() and int(answer.headers["Content-Length"]) <= 1 << 16:
        answer.drain_conn()
    answer.close()


def _read_refusal(answer: urllib3.BaseHTTPResponse) -> tuple[str, str]:
    """The code that the answer of an object store gives for a refusal, and code and reason in brackets."""
    head = b""
    try:
        while len(head) < _ERROR_BODY and (more := answer.read(_ERROR_BODY - len(head))):
            head += more
    except (exceptions.HTTPError, OSError):
        pass  # what came is enough
    answer.close()
    code, text = _CODE.search(head), _MESSAGE.search(head)
    found = code[1].decode() if code else answer.headers.get("x-ms-error-code", "")
    words = " ".join(text[1].decode("utf-8", "replace").split()) if text else ""
    if not words:
        found, words = json_error(head, found)
    told = list(filter(None, (found, words)))
    return found, f" ({redact(': '.join(told))})" if told else ""


def json_error(body: bytes | str, code: str = "") -> tuple[str, str]:
    """Code and text of an error in JSON; `code` and "" where it is none, but a page for people."""
    try:
        found = json.loads(body)
    except ValueError:
        return code, ""
    if not isinstance(found, dict):
        return code, ""
    found = inner if isinstance(inner := found.get("error"), dict) else found
    text = found.get("message") or found.get("error")
    return code or str(found.get("tcode") or ""), " ".join(text.split())[:300] if isinstance(text, str) else ""


def _raise(error: Exception, url: str, host: str, hint: str = Access.HINT_TLS) -> NoReturn:
    """The error of a request that got no answer, sorted by whether another attempt may help."""
    if isinstance(error, exceptions.ProxyError):
        if _says(_NO_TUNNEL, error):
            raise StoreError(f"the proxy refuses: {redact(str(error.original_error))}.", code="E_AUTH", shard=url) from error
        raise RetryError("the proxy could not be reached", unreached=True) from error
    if isinstance(error, exceptions.NameResolutionError):
        raise RetryError(f"the host name {host} could not be looked up", unreached=True, refused=True) from error
    if isinstance(error, exceptions.NewConnectionError):
        refused = any(isinstance(each, ConnectionRefusedError) for each in causes(error))
        raise RetryError(f"no connection to {host}: {_last(error)}", unreached=True, refused=refused) from error
    if isinstance(error, exceptions.ConnectTimeoutError):
        raise RetryError(f"no connection to {host} in time", code="E_STALL", unreached=True) from error
    if isinstance(error, exceptions.ReadTimeoutError):
        raise RetryError("no answer in time", code="E_STALL") from error
    if isinstance(error, exceptions.SSLError):
        if error.args and isinstance(error.args[0], ssl.SSLEOFError | ssl.SSLZeroReturnError):
            raise RetryError("the connection was closed in the TLS handshake", at_once=True) from error
        raise StoreError(f"TLS failed: {error.args[0] if error.args else error}.", shard=url, hint=tls_hint(error, hint)) from error
    if isinstance(error, exceptions.LocationValueError | http.client.InvalidURL | ValueError):
        if _says(_NO_HEADER, error):  # the text shows it, and it may be a token read with its line's end
            raise UsageError("a header holds what cannot be sent, such as the end of a line.", shard=url) from None
        raise UsageError(f"the URL or a header cannot be sent: {redact(str(error))}.", shard=url) from error
    refuse_flood(error, url)
    cause: object = error.args[1] if len(error.args) > 1 else error
    if isinstance(cause, http.client.BadStatusLine) and not isinstance(cause, http.client.RemoteDisconnected):
        raise StoreError(f"{host} answers, but does not speak HTTP.", shard=url) from error
    raise RetryError(f"the connection broke before the answer: {_last(error)}", at_once=True) from error


def refuse_flood(error: Exception, url: str) -> None:
    """`E_LIMIT` where the server never came to the end of its lines: another attempt would go the same way."""
    if any(map(floods, causes(error))):
        what = "the server sends more headers, trailers or answers before the answer than any has."
        raise StoreError(what, code="E_LIMIT", shard=url) from error


# What http.client says in words alone: CPython's Lib/http/client.py, `_tunnel` and `putheader`.
_NO_TUNNEL = re.compile(r"Tunnel connection failed: 4\d\d")
_NO_HEADER = re.compile(r"Invalid header value")


def _says(words: re.Pattern[str], error: BaseException) -> bool:
    return any(isinstance(each, OSError | ValueError) and words.match(str(each)) for each in causes(error))


def tls_hint(error: BaseException, hint: str) -> str:
    """The next step where TLS failed: `hint`, unless what answered was no TLS at all."""
    plain = any(getattr(each, "reason", "") == "WRONG_VERSION_NUMBER" for each in causes(error))
    return "The server speaks no TLS there: the address begins with http:// then." if plain else hint


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error, what it was raised from, and so on."""
    inner: BaseException | None = error
    while inner is not None:
        yield inner
        inner = inner.__cause__ or inner.__context__


def _last(error: BaseException) -> str:
    """The words of the system under an error of urllib3."""
    *_, error = causes(error)
    return getattr(error, "strerror", None) or redact(str(error)) or type(error).__name__
