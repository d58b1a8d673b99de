"""How the URLs of a store become HTTP requests: the address, the headers that prove who asks, and words for refusals."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, TypeVar

from tarviz.model.environment import Watched
from tarviz.model.types import URL
from tarviz.stores._storage_options import customer_key, known_options

ABSENT, REFUSED = (404, 410), (401, 403, 407)  # statuses
_MARGIN = 120.0  # seconds before its end in which a credential is fetched anew
_PAUSE = 60.0  # seconds after which credentials that were not there are looked for again


class Expiring(Protocol):
    """A credential that ends at `expires` (seconds since 1970), or never."""

    @property
    def expires(self) -> float | None: ...


K = TypeVar("K", bound=Expiring)


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token that lets its bearer in until `expires` (seconds since 1970). `headers` are those that go with it."""

    token: str = field(repr=False)
    expires: float
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Access:
    """Plain HTTP: a URL is its own address. Stores that sign derive from it. Threads share it.

    `HINT_DENIED`, `HINT_MISSING` and `HINT_TLS` are the next steps that errors name. `variables` are those of the environment that
    addresses and headers depend on; `described` is the query that has the server describe an object in JSON, where that is asked for in
    place of `HEAD`; `steady` says that ranges of one object, asked for within a second, have equal headers. `OPTIONS` are the storage
    options that such URLs take, and what bears each: a header that says who pays, the beginning of the headers of a customer's own key,
    the query for a version.
    """

    variables: ClassVar[tuple[str, ...]] = ()
    steady: ClassVar[bool] = True
    described: ClassVar[Mapping[str, str]] = {}
    OPTIONS: ClassVar[Mapping[str, str]] = {}

    HINT_TLS = "The certificate is not trusted here; SSL_CERT_FILE may name the right authority. Verification is never switched off."
    HINT_DENIED = "Sign the URL again, or set credentials (https://user:password@host/… or TARVIZ_HTTP_HEADERS)."
    HINT_MISSING = "Check the URL."

    def address(self, url: URL, query: Mapping[str, str]) -> str:
        """The http(s) URL of an object; `query` is added to it."""
        return url

    def asks(self, method: str, url: URL, query: Mapping[str, str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The headers, for the origin alone, and the query that the storage options of a URL add to a request.

        `UsageError` for an option that such URLs do not take.
        """
        found = known_options(url, *self.OPTIONS)
        payers = {"requester_pays": "requester", "user_project": str(found.get("user_project"))}
        told = {self.OPTIONS[name]: payer for name, payer in payers.items() if found.get(name)}
        if "encryption_key" in found and method != "DELETE" and "prefix" not in query:  # neither an object that goes nor a list
            told |= customer_key(url, found["encryption_key"], self.OPTIONS["encryption_key"])
        pinned = "version" in found and method in ("GET", "HEAD") and query.keys() <= self.described.keys()
        return told, {self.OPTIONS["version"]: str(found["version"])} if pinned else {}

    def headers(self, method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        """What is sent to the origin of `address` and to no other one, to prove who asks."""
        return {}

    def tls(self) -> ssl.SSLContext | None:
        """Whom to trust, and what to show of oneself, over TLS: the same object as long as that stays; None: what this machine trusts."""
        return None

    def note(self, url: URL, *, there: bool = True) -> None:
        """An object answered, or was removed here."""

    def passes(self, url: URL, status: int, code: str) -> bool:
        """Whether a refusal that is final elsewhere passes here, within seconds."""
        return False

    def follows(self, origin: str, target: str) -> bool:
        """Whether the headers go on to where the server redirects."""
        return origin == target

    def renew(self, url: URL, status: int, headers: Mapping[str, str], said: str) -> bool:
        """After a refusal: whether another attempt would be signed in another way."""
        return False

    def hint(self, status: int) -> str:
        """The next step after a final answer, if there is one."""
        if status in ABSENT:
            return self.HINT_MISSING
        return self.denial_hint() if status in REFUSED else ""

    def denial_hint(self) -> str:
        """The next step where access is refused."""
        return self.HINT_DENIED


class CredentialCache(Generic[K]):
    """A credential that is looked for once, again shortly before it ends, and when one of the variables `names` changes.

    None where there is no credential.
    """

    def __init__(self, find: Callable[[], K | None], names: Iterable[str]) -> None:
        self._find = find
        self._names = Watched(names)
        self._lock = threading.Lock()
        self._found: K | None = None
        self._until = 0.0
        self._state: tuple[bytes | str, ...] = ()

    def __call__(self) -> K | None:
        state = self._names.state()
        if time.time() >= self._until or state != self._state:
            with self._lock:
                if time.time() >= self._until or state != self._state:
                    self._found = self._find()
                    self._until, self._state = self._end(self._found), state
        return self._found

    @staticmethod
    def _end(found: K | None) -> float:
        now = time.time()
        if found is None or found.expires is None:
            return now + _PAUSE
        return max(now + 1.0, min(found.expires - _MARGIN, now + 3600))

    def forget(self) -> bool:
        """Look again next time; whether there was one to forget."""
        with self._lock:
            there, self._until = self._found is not None, 0.0
        return there


class TokenAccess(Access):
    """Requests with a token that is looked for, and again where the server refuses it."""

    find: ClassVar[Callable[[], Bearer | None]]

    def __init__(self) -> None:
        self._token = CredentialCache(type(self).find, self.variables)

    def renew(self, url: URL, status: int, headers: Mapping[str, str], said: str) -> bool:
        return status == 401 and self._token.forget()
