"""`RemoteStore`: what every store behind HTTP shares: reads that resume, one version each, and errors that say what to set."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Self, TypeVar

from tarviz.model import config
from tarviz.model.environment import Watched
from tarviz.model.errors import NotFoundError, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.stores._remote.access import Access
from tarviz.stores._remote.buckets import bucket_and_name, folder
from tarviz.stores._remote.connections import release
from tarviz.stores._remote.listing import ListingForm
from tarviz.stores._remote.parallel import ParallelStream
from tarviz.stores._remote.resume import ResumingStream
from tarviz.stores._remote.small_range import SMALL, RangeFront, SmallRanges
from tarviz.stores._remote.upload import Upload, UploadSink
from tarviz.stores._remote.wire import VARIABLES as WIRE_VARIABLES
from tarviz.stores._remote.wire import Wire, read_whole, stat_of
from tarviz.stores.base import Sink, Stat, Store, Stream, take
from tarviz.stores.retry import Attempts, Clock, RetryError

_PAGE_LIMIT = 64 << 20
_T = TypeVar("_T")


@dataclass(kw_only=True)
class RemoteStore(Store):
    """Objects over HTTP, with the credentials of `access`. Threads share it; it pickles by its settings.

    `retry_timeout` (seconds without progress before a read gives up) and `stall_timeout` (seconds without a byte before it is
    resumed) default to the options. A server that was never reached is tried for 15 seconds at most, one that refuses
    connections for 1.5.
    """

    selects: ClassVar[bool] = True
    remote: ClassVar[bool] = True  # worth keeping on this machine
    access: ClassVar[type[Access]] = Access

    retry_timeout: float | None = None
    stall_timeout: float | None = None
    clock: Clock = field(default_factory=Clock, compare=False)

    def __post_init__(self) -> None:
        self.wire = Wire(self.clock, self.access())
        self._watched = Watched([*config.VARIABLES, *WIRE_VARIABLES, *self.wire.access.variables])
        self._ranges = SmallRanges(self.wire)

    def __reduce__(self) -> tuple[Callable[[], Self], tuple[()]]:
        return functools.partial(type(self), **{each.name: getattr(self, each.name) for each in fields(self)}), ()

    def options(self, state: tuple[bytes | str, ...] | None = None) -> config.Options:
        """The options in force now; `state` of the environment, where it was looked up before."""
        return _options(self.retry_timeout, self.stall_timeout, state or self._watched.state(), int(time.monotonic()))

    def stat(self, url: URL) -> Stat:
        return self.persist(url, lambda stall: self._stat(url, stall))

    def open(self, url: URL, *, offset: int = 0, etag: str | None = None) -> Stream:
        self._know(url, etag)
        options = self.options()
        stream = ResumingStream(self.wire, url, offset, None, etag, options).connect()
        if options.connections < 2:
            return stream
        part = functools.partial(ResumingStream, self.wire, url, etag=stream.stat.etag, options=options)
        return ParallelStream(stream, part, options.connections, self.clock)

    def read(self, url: URL, offset: int, length: int, *, etag: str | None = None) -> bytes:
        if length <= 0:
            return b""
        self._know(url, etag)
        front = b""
        if length <= SMALL and (found := self._read_small(url, offset, length, etag)) is not None:
            if found.whole:
                return found.data
            front, etag = found.data, etag or found.token
        begin, stop = offset + len(front), offset + length
        with ResumingStream(self.wire, url, begin, stop, etag, self.options()).connect() as stream:
            return front + take(stream, stop - begin)

    def _know(self, url: URL, etag: str | None) -> None:
        if etag:
            self.wire.access.note(url)  # by another process, perhaps

    def _read_small(self, url: URL, offset: int, length: int, etag: str | None) -> RangeFront | None:
        state = self._watched.state()
        options = self.options(state)
        try:
            return self._ranges.read(url, offset, length, etag, options.stall_timeout, state)
        except RetryError as error:
            Attempts(url, options.retry_timeout, self.clock).fail(error, offset, reached=True)  # waits
            return None

    def create(self, url: URL, *, replace: bool = True) -> Sink:
        raise _read_only_error(url)

    def delete(self, url: URL) -> None:
        raise _read_only_error(url)

    def persist(self, url: URL, call: Callable[[float], _T], stop: threading.Event | None = None) -> _T:
        """The value of `call`, which gets the stall timeout, tried again while that may help; `stop` ends waiting."""
        options = self.options()
        attempts = Attempts(url, options.retry_timeout, self.clock, stop)
        while True:
            try:
                value = call(options.stall_timeout)
            except RetryError as error:
                attempts.fail(error, None, reached=self.wire.has_answered(url))
            else:
                attempts.progress()
                return value

    def _stat(self, url: URL, stall_timeout: float) -> Stat:
        try:
            return self.wire.head(url, stall_timeout)[0]
        except (StoreError, NotFoundError) as error:
            if not self._asks_again(error):
                raise
            # A signed URL is signed for GET alone, some servers know no HEAD, and no HEAD says why: ask for one byte.
            answer = self.wire.send("GET", url, {"Range": "bytes=0-0"}, stall_timeout)
        release(answer)
        return stat_of(url, answer)

    def _asks_again(self, error: StoreError | NotFoundError) -> bool:
        return error.code == "E_AUTH" or error.details.get("status") in (400, 405, 501)


class BucketStore(RemoteStore):
    """Objects in buckets: a `HEAD` says nothing about why it fails, so a failure is looked into by a `GET`.

    `pages`: how the store lists (`tarviz.stores._remote.listing`); `upload`: how it takes objects.
    """

    pages: ClassVar[ListingForm]
    upload: ClassVar[type[Upload]]

    def list(self, url: URL) -> Iterator[Stat]:
        return self._list_pages(url, folder(bucket_and_name(url)[1]))

    def walk(self, url: URL) -> Iterator[Stat]:
        return self._list_pages(url, bucket_and_name(url)[1], deep=True)

    def _list_pages(self, url: URL, prefix: str, *, deep: bool = False) -> Iterator[Stat]:
        base = URL(f"{url.partition('://')[0]}://{bucket_and_name(url)[0]}")
        return self.pages(f"{base}/", prefix, lambda query: self.page(base, query), deep=deep)

    def create(self, url: URL, *, replace: bool = True) -> Sink:
        return UploadSink(url, self.upload(self, url, replace=replace))

    def delete(self, url: URL) -> None:
        self.stat(url)  # some servers do not say that there is none
        self.upload(self, url).call("DELETE", self.wire.access.described)

    def _asks_again(self, error: StoreError | NotFoundError) -> bool:
        return True

    def page(self, url: URL, query: Mapping[str, str]) -> bytes:
        """One page of a listing: what the bucket of `url` answers to `query`."""

        answered = frozenset({200})
        return self.persist(url, lambda stall: read_whole(self.wire.send("GET", url, {}, stall, query=query, accept=answered), _PAGE_LIMIT))


def _read_only_error(url: URL) -> UsageError:
    what = f"{url.partition(':')[0]}:// URLs can be read, not written or deleted."
    return UsageError(what, shard=url, hint="Write to a local path and upload it from there.")


@functools.lru_cache(maxsize=16)
def _options(retry: float | None, stall: float | None, _: tuple[bytes | str, ...], second: int) -> config.Options:
    """The options, looked up once a second: a small ranged read takes less time than looking into the files."""
    return config.options(retry_timeout=retry, stall_timeout=stall)
