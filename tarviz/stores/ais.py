"""`ais://bucket/name`: AIStore, by its proxy; `aws://`-like buckets behind it as `ais://@provider/bucket/name`.

Environment: `AIS_ENDPOINT` names the proxy (`http://host:51080`), `AIS_AUTHN_TOKEN` the token, `AIS_CLIENT_CA` a
certificate authority. Objects are read by the reader that all remote stores share, which goes through the proxy again when
a target dies; listing, writing and reading inside of archives are the SDK's.
"""

from __future__ import annotations

import functools
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, ClassVar

from tarviz.model.errors import MissingPackageError, NotFoundError, StoreError, UsageError, redact
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL
from tarviz.stores._remote.access import Access
from tarviz.stores._remote.buckets import bucket_and_name, folder, path, with_query
from tarviz.stores._remote.reader import BucketStore
from tarviz.stores._remote.upload import UploadSink
from tarviz.stores.base import Sink, Stat, refuse_taken

if TYPE_CHECKING:
    from aistore.sdk import Bucket, Client


class _AisAccess(Access):
    """Requests to the proxy, which redirects them to targets."""

    variables: ClassVar[tuple[str, ...]] = ("AIS_ENDPOINT", "AIS_AUTHN_TOKEN")

    def address(self, url: URL, query: Mapping[str, str]) -> str:
        provider, bucket, name = _parts(url)
        return with_query(_endpoint() + "/v1/objects" + path(bucket, name), {"provider": provider, **query})

    def headers(self, method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        token = os.environ.get("AIS_AUTHN_TOKEN")
        return {"Authorization": f"Bearer {token}"} if token else {}

    def hint(self, status: int, code: str) -> str:
        if status in (404, 410):
            return "Check bucket and name; AIS_ENDPOINT names the cluster."
        return "Set AIS_AUTHN_TOKEN to a token of the cluster." if not os.environ.get("AIS_AUTHN_TOKEN") else "Check AIS_AUTHN_TOKEN."


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


class AisStore(BucketStore):
    """Objects of an AIStore cluster. Large ones are written in parts, and are there once the last is accepted."""

    def _access(self) -> Access:
        return _AisAccess()

    def list(self, url: URL) -> Iterator[Stat]:
        from aistore.sdk.list_object_flag import ListObjectFlag

        base, name = _base(url)
        prefix = folder(name)
        below = False
        with _errors(URL(base + prefix)):
            for entry in bucket_of(url).list_objects_iter(prefix=prefix, props="name,size", flags=[ListObjectFlag.NO_RECURSION]):
                below = True
                if not entry.name.endswith("/") and "/" not in entry.name.removeprefix(prefix):
                    yield Stat(URL(base + entry.name), entry.size)
        if not below:
            raise NotFoundError("nothing exists under this name.", shard=base + prefix, hint="Check bucket and prefix.")

    def walk(self, url: URL) -> Iterator[Stat]:
        base, name = _base(url)
        with _errors(url):
            for entry in bucket_of(url).list_objects_iter(prefix=name, props="name,size"):
                yield Stat(URL(base + entry.name), entry.size)

    def create(self, url: URL, *, replace: bool = True) -> Sink:
        return UploadSink(url, _AisUpload(self, url, replace))

    def delete(self, url: URL) -> None:
        with _errors(url):
            bucket_of(url).object(_parts(url)[2]).delete()


def members(url: URL) -> list[tuple[str, int]]:
    """Name and size of the files inside a shard, listed by the cluster."""
    name = _parts(url)[2]
    with _errors(url):
        return [(each.name.removeprefix(f"{name}/"), each.size) for each in bucket_of(url).list_archive(name, props="name,size")]


def read_members(shards: Iterable[tuple[URL, str]]) -> Iterator[bytes]:
    """The bytes of one file inside of each shard, in order, by one request (GetBatch): `[(shard, name in it), …]`.

    `NotFoundError` for what is not there.
    """
    asked = list(shards)
    if not asked:
        return
    batch = _client(_endpoint(), os.environ.get("AIS_AUTHN_TOKEN", ""), os.getpid()).batch(streaming_get=False)
    with _errors(asked[0][0]):
        for url, inside in asked:
            provider, bucket, name = _parts(url)
            batch.add(name, archpath=inside or None, bck=bucket, provider=provider)
        for (url, inside), (told, data) in zip(asked, batch.get(), strict=True):
            if told.err_msg:
                raise NotFoundError(f"the cluster has no {inside or 'such object'}: {told.err_msg}.", shard=url)
            yield bytes(data)


def begin_transformer(url: URL, kind: type, packages: Iterable[str]) -> Transformer:
    """A class of the SDK's servers begun in pods beside the data of a bucket; `StoreError` where the cluster has no ETL."""
    etl = _client(_endpoint(), os.environ.get("AIS_AUTHN_TOKEN", ""), os.getpid()).etl(f"tarviz-{secrets.token_hex(6)}")
    with _errors(url):
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
        with _errors(self.url):
            self.etl.stop()
            self.etl.delete()


@contextmanager
def transformed(url: URL, name: str, args: str) -> Iterator[IO[bytes]]:
    """The bytes that the transformer `name` makes of an object."""
    from aistore.sdk.etl import ETLConfig

    with _errors(url), closing(bucket_of(url).object(_parts(url)[2]).get_reader(etl=ETLConfig(name, args)).raw()) as data:
        yield data


def bucket_of(url: URL) -> Bucket:
    """The SDK's bucket of a URL."""
    provider, bucket, _ = _parts(url)
    return _client(_endpoint(), os.environ.get("AIS_AUTHN_TOKEN", ""), os.getpid()).bucket(bucket, provider)


@functools.lru_cache(maxsize=8)
def _client(endpoint: str, token: str, process: int) -> Client:
    """The SDK's client, one for a process: tried again as our own reader would, not for minutes."""
    try:
        from aistore.sdk import Client
        from aistore.sdk.retry_config import NETWORK_RETRY_EXCEPTIONS, RetryConfig
        from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential
        from urllib3.util.retry import Retry
    except ImportError as error:
        raise MissingPackageError.of("aistore", "listing and writing ais:// URLs", "ais") from error
    again = retry_if_exception_type(NETWORK_RETRY_EXCEPTIONS)
    network = Retrying(wait=wait_random_exponential(multiplier=0.2, max=1), stop=stop_after_attempt(3), retry=again, reraise=True)
    http = Retry(total=3, backoff_factor=0.2, status_forcelist=[429, 500, 502, 503, 504], connect=0, read=0)
    return Client(endpoint, token=token or None, retry_config=RetryConfig(http, network), max_pool_size=16)


class _errors:  # noqa: N801  (a context manager, used like a function)
    """Errors of the SDK as ours."""

    def __init__(self, url: URL) -> None:
        self._url = url

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            return
        from aistore.sdk.errors import APIRequestError, ErrBckNotFound, ErrObjNotFound
        from requests import RequestException
        from urllib3.exceptions import HTTPError

        hint = "Check bucket and name; AIS_ENDPOINT names the cluster."
        if isinstance(error, APIRequestError):
            status, said = error.status_code, redact(" ".join(str(error.message).split()))[:300]
            if isinstance(error, ErrBckNotFound | ErrObjNotFound) or status == 404:
                what = "bucket" if isinstance(error, ErrBckNotFound) else "object"
                raise NotFoundError(f"the cluster has no such {what}: {said}.", shard=self._url, hint=hint) from error
            code = "E_AUTH" if status in (401, 403) else "E_NETWORK"
            raise StoreError(f"the cluster answers {status}: {said}.", code=code, shard=self._url, hint="Check AIS_AUTHN_TOKEN.") from error
        if isinstance(error, RequestException | HTTPError | OSError) and not isinstance(error, StoreError | NotFoundError):
            what = f"the cluster at {redact(_endpoint())} cannot be reached: {type(error).__name__}."
            raise StoreError(what, shard=self._url, hint="Check AIS_ENDPOINT.") from error


class _AisUpload:
    """Uploads by the SDK."""

    def __init__(self, store: AisStore, url: URL, replace: bool) -> None:
        self._store = store
        self._url = url
        self._replace = replace
        self._object: Any = bucket_of(url).object(_parts(url)[2])
        self._upload: Any = None

    def whole(self, data: bytes) -> str | None:
        self._refuse_taken()
        with _errors(self._url):
            self._object.get_writer().put_content(data)
        return self._store.stat(self._url).etag

    def begin(self) -> None:
        with _errors(self._url):
            self._upload = self._object.multipart_upload().create()

    def part(self, number: int, data: bytes) -> str:
        with _errors(self._url):
            self._upload.add_part(number).put_content(data)
        return str(number)

    def complete(self, parts: list[str], size: int) -> str | None:
        self._refuse_taken()
        with _errors(self._url):
            self._upload.parts.sort()
            self._upload.complete()
        return self._store.stat(self._url).etag

    def _refuse_taken(self) -> None:
        if not self._replace:  # AIStore knows no write under a condition
            refuse_taken(self._store, self._url)

    def stop(self) -> None:
        return

    def abort(self) -> None:
        if self._upload is not None:
            with _errors(self._url):
                self._upload.abort()


def _base(url: URL) -> tuple[str, str]:
    """What comes before the names of the bucket's objects, and the name."""
    provider, bucket, name = _parts(url)
    return f"ais://{bucket}/" if provider == "ais" else f"ais://@{provider}/{bucket}/", name


def store() -> AisStore:
    """The store of `ais://`."""
    return AisStore()
