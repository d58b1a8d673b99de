"""`ais://bucket/name`: AIStore, by its proxy; `aws://`-like buckets behind it as `ais://@provider/bucket/name`.

Environment: `AIS_ENDPOINT` names the proxy (`http://host:51080`), `AIS_AUTHN_TOKEN` the token, `AIS_CLIENT_CA` a certificate authority,
`AIS_CRT` and `AIS_CRT_KEY` what this side shows of itself; `AIS_SKIP_VERIFY_CRT` trusts everybody. Objects are read by the reader that all
remote stores share, which goes through the proxy again when a target dies; listing, writing and reading inside of archives are the SDK's.
"""

from __future__ import annotations

import functools
import os
import secrets
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self

from tarviz.formats.header_scan import BLOCK
from tarviz.formats.tar import Scanner
from tarviz.model.environment import Watched
from tarviz.model.errors import MissingPackageError, NotFoundError, StoreError, TarvizError, UsageError, redact
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL
from tarviz.stores._remote.access import REFUSED, Access
from tarviz.stores._remote.addresses import origin
from tarviz.stores._remote.buckets import bucket_and_name, folder, path, with_query
from tarviz.stores._remote.reader import BucketStore
from tarviz.stores._remote.upload import Upload
from tarviz.stores._remote.wire import causes, json_error, tls_hint
from tarviz.stores.base import Stat, errors_as

if TYPE_CHECKING:
    from aistore.sdk import Bucket, Client
    from aistore.sdk.list_object_flag import ListObjectFlag


_AUTHORITIES = ("AIS_CLIENT_CA", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")  # as the SDK and requests have them, and OpenSSL
_UNCHECKED = ("AIS_SKIP_VERIFY_CRT", "AIS_SKIP_VERIFY")
_SHOWN = ("AIS_CRT", "AIS_CRT_KEY")
_SETTINGS = Watched(["AIS_ENDPOINT", "AIS_AUTHN_TOKEN", *_AUTHORITIES, *_UNCHECKED, *_SHOWN, "AIS_CONNECT_TIMEOUT", "AIS_READ_TIMEOUT"])
_PASSING = {"ErrNoNodes", "ErrFailedTo"}  # targets that come back after a restart, or of which one has just died
_MET = 1 << 16  # objects that are remembered to be there
_MISSING = "Check bucket and name; AIS_ENDPOINT names the cluster."


@dataclass(frozen=True, slots=True)
class _Trust:
    """Whom both halves of the store, the reader and the SDK, trust: a file or folder of authorities, or `bool` as requests has it."""

    verify: str | bool
    shown: tuple[str, str] | None

    @classmethod
    def now(cls) -> Self:
        unchecked = next((value for name in _UNCHECKED if (value := os.environ.get(name)) is not None), "")
        verify: str | bool = next(filter(None, map(os.environ.get, _AUTHORITIES)), True)
        certificate, key = map(os.environ.get, _SHOWN)
        shown = (certificate, key) if certificate and key else None
        return cls(False if unchecked.lower() in ("1", "true", "yes", "on", "y", "t") else verify, shown)

    def context(self) -> ssl.SSLContext:
        try:
            place = self.verify if isinstance(self.verify, str) else None
            authorities = {"capath" if place and os.path.isdir(place) else "cafile": place}
            context = ssl.create_default_context(**authorities)  # type: ignore[arg-type]
            if self.shown:
                context.load_cert_chain(*self.shown)
        except OSError as error:
            what = f"the certificates that {' or '.join((*_AUTHORITIES, *_SHOWN))} name cannot be read: {error.strerror or error}."
            raise UsageError(what) from error
        if not self.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


@functools.lru_cache(maxsize=8)
def _tls(_: tuple[bytes | str, ...]) -> ssl.SSLContext | None:
    trust = _Trust.now()
    return None if trust == _Trust(True, None) else trust.context()


class _AisAccess(Access):
    """Requests to the proxy, which redirects them to targets."""

    HINT_TLS = "AIS_CLIENT_CA may name the authority that signed the cluster's certificate, AIS_CRT and AIS_CRT_KEY what it wants to see."
    variables: ClassVar[tuple[str, ...]] = ("AIS_ENDPOINT", "AIS_AUTHN_TOKEN", *_AUTHORITIES, *_UNCHECKED, *_SHOWN)

    def __init__(self) -> None:
        self._met: set[URL] = set()

    def address(self, url: URL, query: Mapping[str, str]) -> str:
        provider, bucket, name = _parts(url)
        return with_query(_endpoint() + "/v1/objects" + path(bucket, name), {"provider": provider, **query})

    def headers(self, method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        token = os.environ.get("AIS_AUTHN_TOKEN")
        return {"Authorization": f"Bearer {token}"} if token else {}

    def tls(self) -> ssl.SSLContext | None:
        return _tls(_SETTINGS.state())

    def note(self, url: URL, *, there: bool = True) -> None:
        if len(self._met) >= _MET:
            self._met.clear()
        (self._met.add if there else self._met.discard)(url)

    def passes(self, url: URL, status: int, code: str) -> bool:
        """What was there is lacked while a node joins, or by those that are asked once one has died."""
        return (status == 400 and code in _PASSING) or (status == 404 and code != "ErrBckNotFound" and url in self._met)

    def hint(self, status: int) -> str:
        return _MISSING if status == 404 else _hint(status)

    def denial_hint(self) -> str:
        return _hint(401)


def _hint(status: int) -> str:
    if status in REFUSED:
        return "Set AIS_AUTHN_TOKEN to a token of the cluster." if not os.environ.get("AIS_AUTHN_TOKEN") else "Check AIS_AUTHN_TOKEN."
    plain = status == 400 and _endpoint().startswith("http:")
    return "Is it a cluster that speaks TLS? AIS_ENDPOINT begins with https:// then." if plain else ""


def _endpoint() -> str:
    place = os.environ.get("AIS_ENDPOINT", "").rstrip("/")
    if not place:
        raise UsageError("ais:// URLs need a cluster.", hint="Set AIS_ENDPOINT to its proxy, http://host:51080.")
    return place if "://" in place else f"http://{place}"


def _parts(url: URL) -> tuple[str, str, str]:
    """Provider, bucket and name."""
    bucket, name = bucket_and_name(url)
    if not bucket.startswith("@"):
        return "ais", bucket, name
    provider, (bucket, _, name) = bucket[1:], name.partition("/")
    if not bucket:
        raise UsageError("the URL names no bucket.", shard=url, hint=f"Write ais://@{provider}/bucket/name.tar.")
    return provider, bucket, name


class _AisUpload(Upload):
    """Uploads by the SDK. AIStore knows no write under a condition: the name is looked for just before."""

    _upload: Any = None

    @functools.cached_property
    def _object(self) -> Any:
        return bucket_of(self._url).object(_parts(self._url)[2])

    def whole(self, data: bytes) -> str | None:
        with self.unless_taken(), errors_as(_error, self._url):
            self._object.get_writer().put_content(data)
        return self._store.stat(self._url).etag

    def begin(self) -> None:
        with errors_as(_error, self._url):
            self._upload = self._object.multipart_upload().create()

    def part(self, number: int, data: bytes) -> str:
        with errors_as(_error, self._url):
            self._upload.add_part(number).put_content(data)
        return str(number)

    def complete(self, parts: list[str], size: int) -> str | None:
        with self.unless_taken(), errors_as(_error, self._url):
            self._upload.parts.sort()
            self._upload.complete()
        return self._store.stat(self._url).etag

    def abort(self) -> None:
        if self._upload is not None:
            with errors_as(_error, self._url):
                self._upload.abort()


class AisStore(BucketStore):
    """Objects of an AIStore cluster. Large ones are written in parts, and are there once the last is accepted."""

    access = _AisAccess
    upload = _AisUpload

    def _stat(self, url: URL, stall_timeout: float) -> Stat:
        found = super()._stat(url, stall_timeout)
        return replace(found, size=found.size or 0, ranges=True)  # neither the size of an empty object nor ranges are told

    def list(self, url: URL) -> Iterator[Stat]:
        from aistore.sdk.list_object_flag import ListObjectFlag

        base, name = _base(url)
        prefix = folder(name)
        below = False
        for stat in self._entries(base, prefix, [ListObjectFlag.NO_RECURSION]):
            below = True
            if not stat.url.endswith("/") and "/" not in stat.url.removeprefix(base + prefix):
                yield stat
        if not below:
            raise NotFoundError("nothing exists under this name.", shard=base + prefix, hint="Check bucket and prefix.")

    def walk(self, url: URL) -> Iterator[Stat]:
        return self._entries(*_base(url), [])

    def _entries(self, base: str, prefix: str, flags: Sequence[ListObjectFlag]) -> Iterator[Stat]:
        url = URL(base + prefix)
        with errors_as(_error, url):
            for entry in bucket_of(url).list_objects_iter(prefix=prefix, props="name,size", flags=[*flags]):
                self.wire.access.note(URL(base + entry.name))
                yield Stat(URL(base + entry.name), entry.size)

    def delete(self, url: URL) -> None:
        with errors_as(_error, url):
            bucket_of(url).object(_parts(url)[2]).delete()
        self.wire.access.note(url, there=False)


def members(url: URL) -> list[tuple[str, int]]:
    """Name and size of the files inside a shard, listed by the cluster, or read from their headers where it lists none.

    It lists none of what was written in parts, as shards above 8 MiB are here. `DataError` for what is no tar, or a damaged one.
    """
    name = _parts(url)[2]
    with errors_as(_error, url):
        entries = bucket_of(url).list_archive(name, props="name,size")  # of all objects whose names begin so
    found = [(each.name.removeprefix(f"{name}/"), each.size) for each in entries if each.name.startswith(f"{name}/")]
    if found:
        return found
    store, scanner = AisStore(), Scanner(url, strict=False)
    stat = store.stat(url)
    size = stat.size or 0
    while not scanner.ended:
        base = min(scanner.at, size // BLOCK * BLOCK)
        data = store.read(url, base, max(_AHEAD, scanner.wants - base), etag=stat.etag)
        rows = scanner.scan(memoryview(data), base, final=base + len(data) >= size)
        if scanner.error is not None:
            raise scanner.error.at(shard=url)
        found += [(each.name, each.size) for each in rows if each.type == "file"]
    return found


_AHEAD = 1 << 18  # bytes read with a header, so that small members need no request each


def read_members(shards: Iterable[tuple[URL, str]]) -> Iterator[bytes]:
    """The bytes of one file inside of each shard, in order, by one request (GetBatch): `[(shard, name in it), …]`.

    `NotFoundError` for what is not there.
    """
    asked = list(shards)
    if not asked:
        return
    batch = _client(_endpoint(), _SETTINGS.state(), os.getpid()).batch(streaming_get=False)
    with errors_as(_error, asked[0][0]):
        for url, inside in asked:
            provider, bucket, name = _parts(url)
            batch.add(name, archpath=inside or None, bck=bucket, provider=provider)
        for (url, inside), (told, data) in zip(asked, batch.get(), strict=True):
            if told.err_msg:
                raise NotFoundError(f"the cluster has no {inside or 'such object'}: {told.err_msg}.", shard=url)
            yield bytes(data)


def begin_transformer(url: URL, kind: type, packages: Iterable[str]) -> Transformer:
    """A class of the SDK's servers begun in pods beside the data of a bucket; `StoreError` where the cluster has no ETL."""
    etl = _client(_endpoint(), _SETTINGS.state(), os.getpid()).etl(f"tarviz-{secrets.token_hex(6)}")
    with errors_as(_error, url):
        etl.init_class(dependencies=list(packages))(kind)
    return Transformer(url, etl.name, etl)


@dataclass(frozen=True, slots=True)
class Transformer:
    """A transformer that was begun."""

    url: URL
    name: str
    etl: Any = field(repr=False)

    __repr__ = redacted_repr

    def end(self) -> None:
        """Take it away."""
        with errors_as(_error, self.url):
            self.etl.stop()
            self.etl.delete()


@contextmanager
def open_transformed(url: URL, name: str, args: str) -> Iterator[IO[bytes]]:
    """The bytes that the transformer `name` makes of an object."""
    from aistore.sdk.etl import ETLConfig

    with errors_as(_error, url), closing(bucket_of(url).object(_parts(url)[2]).get_reader(etl=ETLConfig(name, args)).raw()) as data:
        yield data


def bucket_of(url: URL) -> Bucket:
    """The SDK's bucket of a URL."""
    provider, bucket, _ = _parts(url)
    return _client(_endpoint(), _SETTINGS.state(), os.getpid()).bucket(bucket, provider)


@functools.lru_cache(maxsize=8)
def _client(endpoint: str, settings: tuple[bytes | str, ...], process: int) -> Client:
    """The SDK's client, one for a process and its settings: tried again as our own reader would, not for minutes."""
    try:
        from aistore.sdk import Client
        from aistore.sdk.retry_config import NETWORK_RETRY_EXCEPTIONS, RetryConfig
        from requests import PreparedRequest, Response
        from requests.adapters import HTTPAdapter
        from tenacity import RetryCallState, Retrying, retry_if_exception_type, retry_if_result, wait_random_exponential
        from urllib3.util.retry import Retry
    except ImportError as error:
        raise MissingPackageError.of("aistore", "listing and writing ais:// URLs", "ais") from error
    trust, _ = _Trust.now(), _tls(settings)  # whose files can be read

    class Adapter(HTTPAdapter):
        def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:
            # REQUESTS_CA_BUNDLE would go before what the session has: psf/requests#3829
            return super().send(request, *args, **{**options, "verify": trust.verify, "cert": trust.shown})

    def passes(answer: Response) -> bool:
        return answer.status_code == 400 and json_error(answer.text)[0] in _PASSING

    def stop(state: RetryCallState) -> bool:
        failed = state.outcome is not None and state.outcome.failed
        return state.attempt_number >= _ATTEMPTS if failed else (state.seconds_since_start or 0) > _PATIENCE

    again = retry_if_exception_type(NETWORK_RETRY_EXCEPTIONS) | retry_if_result(passes)
    network = Retrying(wait=wait_random_exponential(multiplier=0.2, max=1), stop=stop, retry=again, retry_error_callback=_answer)
    http = Retry(total=3, backoff_factor=0.2, status_forcelist=[429, 500, 502, 503, 504], connect=0, read=0)
    token = os.environ.get("AIS_AUTHN_TOKEN")
    client = Client(endpoint, token=token, retry_config=RetryConfig(http, network), client_cert=trust.shown, max_pool_size=16)
    for scheme in ("http://", "https://"):
        client._request_client.session_manager.session.mount(scheme, Adapter(max_retries=http, pool_connections=16, pool_maxsize=16))
    return client


def _answer(state: Any) -> Any:
    """What a request had in the end, the error where it was one."""
    return state.outcome.result()


_ATTEMPTS, _PATIENCE = 3, 10.0  # of a request that gets no answer; seconds of one that is refused for reasons that pass


def _error(error: Exception, url: URL) -> TarvizError | None:
    """An error of the SDK as ours."""
    from aistore.sdk.errors import APIRequestError, ErrBckNotFound
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    if isinstance(error, APIRequestError):
        status, (code, said) = error.status_code, json_error(error.message)
        said = redact(said or " ".join(str(error.message).split())[:300])
        if status == 404:
            what = "bucket" if isinstance(error, ErrBckNotFound) or code == "ErrBckNotFound" else "object"
            return NotFoundError(f"the cluster has no such {what}: {said}.", shard=url, hint=_MISSING)
        denied = "E_AUTH" if status in REFUSED else "E_NETWORK"
        return StoreError(f"the cluster answers {status}: {said}.", code=denied, shard=url, hint=_hint(status))
    if isinstance(error, RequestException | HTTPError | OSError):
        what, hint = _describe_silence(error)
        return StoreError(what, shard=url, hint=hint)
    return None


def _describe_silence(error: BaseException) -> tuple[str, str]:
    """What did not answer, proxy or target, and the next step."""
    from requests import exceptions
    from urllib3.exceptions import ReadTimeoutError

    asked = getattr(error, "request", None)
    place, cluster = origin(getattr(asked, "url", None) or _endpoint()), redact(_endpoint())
    who = f"the cluster at {cluster}" if place == origin(_endpoint()) else f"a target ({place}) of the cluster at {cluster}"
    if isinstance(error, exceptions.SSLError):
        return f"{who} is not trusted: {redact(str(error.args[0] if error.args else error))[:300]}.", tls_hint(error, _AisAccess.HINT_TLS)
    if getattr(asked, "method", "") == "PUT" and any(isinstance(each, ReadTimeoutError) for each in causes(error)):
        return f"{who} gave no answer to a write, {_ATTEMPTS} times.", "A write waits until nobody reads the object any more: try it then."
    return f"{who} cannot be reached: {type(error).__name__}.", "Check AIS_ENDPOINT."


def _base(url: URL) -> tuple[str, str]:
    """What comes before the names of the bucket's objects, and the name."""
    provider, bucket, name = _parts(url)
    return f"ais://{bucket}/" if provider == "ais" else f"ais://@{provider}/{bucket}/", name


store = AisStore
