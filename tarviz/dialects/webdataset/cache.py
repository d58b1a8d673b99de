"""`webdataset.cache`: remote shards kept as local files, whole or not at all."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlparse

from tarviz import stores
from tarviz.dialects.webdataset.gopen import gopen, own_opener
from tarviz.dialects.webdataset.handlers import Handler, reraise_exception
from tarviz.model.errors import DataError, UsageError, redact
from tarviz.model.types import URL
from tarviz.model.urls import path_or_url
from tarviz.read.shard import Shard
from tarviz.stores import Stat, Store, Stream
from tarviz.stores.cache_files import stem
from tarviz.stores.cached import CachedStore, drop

_NAMED = ("", "file", "http", "https", "ftp", "ftps", "gs", "s3", "ais")

default_cache_dir = os.environ.get("WDS_CACHE", "./_cache")


def url_to_cache_name(url: str, ndir: int = 0) -> str:
    """The name of a URL's file in the cache: the last part of its path, with `ndir` folders before it.

    >>> url_to_cache_name("https://host/a/b.tar"), url_to_cache_name("https://host/a/b.tar", 1)
    ('b.tar', 'a/b.tar')
    """
    assert isinstance(url, str)
    parsed = urlparse(url)
    if parsed.scheme in _NAMED:
        return "/".join(parsed.path.lstrip("/").split("/")[-1 - ndir :])
    return quote(url, safe="_+{}*,-")[-128:]


def pipe_cleaner(spec: str) -> str:
    """The first URL that a `pipe:` command names; other text as it is."""
    words = spec.removeprefix("pipe:").split(" ") if spec.startswith("pipe:") else []
    return next((word for word in words if urlparse(word).scheme in ("http", "https", "hdfs", "gs", "ais", "s3")), spec)


def check_tar_format(path: str) -> bool:
    """Whether a file begins as a tar does, packed or not."""
    shard = Shard(URL(path))
    try:
        head = bytearray(512)
        return stores.fill(shard, memoryview(head)) == 512 and head[257:262] == b"ustar"  # type: ignore[arg-type]
    except DataError:
        return False
    finally:
        shard.close()


class LRUCleanup:
    """Keeps the files of a folder below `cache_size` bytes: those that were used longest ago go first.

    `keyfn` gives a file's age (the time of its last change of state); `interval`: seconds between two clean-ups, None for none.
    """

    def __init__(
        self,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_size: float = 1e12,
        keyfn: Callable[[str], float] = os.path.getctime,
        verbose: bool = False,
        interval: float | None = 30,
    ) -> None:
        self.cache_dir, self.cache_size, self.keyfn, self.verbose, self.interval = cache_dir, cache_size, keyfn, verbose, interval
        self.last_run = -float("inf")

    def cleanup(self, keep: str | None = None) -> None:
        """Remove what is too much, but for the file `keep`."""
        if self.cache_dir is None or not os.path.isdir(self.cache_dir):
            return
        now = time.monotonic()
        if self.interval is not None and now - self.last_run < self.interval:
            return
        self.last_run = now
        found: list[tuple[float, int, str]] = []
        for folder, _, names in os.walk(self.cache_dir):
            for name in names:
                if not name.startswith("."):
                    with suppress(FileNotFoundError):  # another process cleans up too
                        path = os.path.join(folder, name)
                        found.append((self.keyfn(path), os.path.getsize(path), path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total > self.cache_size and path != keep:
                with suppress(FileNotFoundError):
                    os.remove(path)
                total -= size


class StreamingOpen:
    """URLs opened one after the other: dicts of `url`, `stream` and, for local files, `local_path`."""

    def __init__(self, verbose: bool = False, handler: Handler = reraise_exception) -> None:
        self.verbose, self.handler = verbose, handler

    def get_file(self, url: str) -> str:
        """Where the bytes of a URL are: its path, or itself."""
        return path_or_url(url)

    def __call__(self, urls: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """Files of URLs, opened."""
        for item in urls:
            url = item["url"] if isinstance(item, dict) else item
            try:
                path = self.get_file(url)
                yield {"url": url, "stream": gopen(path), **({"local_path": path} if stores.is_local(path) else {})}
            except Exception as error:  # noqa: BLE001  the handler decides
                if not self.handler(error):
                    return


class FileCache(StreamingOpen):
    """Remote shards as files in a folder, kept by the engine's cache (`stores/cached.py`) in its folder `.tarviz`.

    A file is there when it is complete and looks like a tar (`validator`), and is held against its checksum when a process first
    uses it. The names that `url_to_name` gives, by default the last part of the URL, are links: two URLs that end alike do not
    get each other's bytes, and a shard that has changed is fetched again. A file that somebody put there under such a name is
    taken as it is. `cache_size`: bytes at most; -1 for no limit. What was used longest ago goes first.
    """

    def __init__(
        self,
        cache_dir: str | os.PathLike[str] | None = None,
        *,
        url_to_name: Callable[[str], str] = url_to_cache_name,
        verbose: bool = False,
        validator: Callable[[str], bool] | None = check_tar_format,
        handler: Handler = reraise_exception,
        cache_size: int = -1,
        cache_cleanup_interval: float | None = 0,
    ) -> None:
        super().__init__(verbose, handler)
        self.cache_dir = os.fspath(default_cache_dir if cache_dir is None else cache_dir)
        self.url_to_name, self.validator = url_to_name, validator
        self._store = CachedStore(cast("Store", _Origin()), Path(self.cache_dir, ".tarviz"), cache_size if cache_size > 0 else sys.maxsize)
        self._valid: set[Path] = set()

    def get_file(self, url: str) -> str:
        """The path of a URL's file, fetched if it is not there; the URL itself where it cannot be kept (it is larger than the cache,
        the disk is full). `DataError` where what comes is not a tar.
        """
        if stores.is_local(url):
            return stores.local_path(url)
        name = self.url_to_name(url)
        if not name or os.path.isabs(name) or ".." in Path(name).parts:
            raise UsageError(f"{name!r} is not a name for {redact(url)} in the cache.", hint="Give another url_to_name.")
        link = Path(self.cache_dir, name)
        if link.is_file() and not link.is_symlink():
            return os.fspath(link)
        kept = self._store.fetch(URL(url))
        if kept is None:
            return url
        if self.validator is not None and kept not in self._valid:
            if not self.validator(os.fspath(kept)):
                with kept.open("rb") as file:
                    begin = file.read(40)
                drop(kept)
                raise DataError(f"this is not a tar archive; it begins with {begin!r}.", shard=url, code="E_NOT_TAR")
            self._valid.add(kept)
        link.parent.mkdir(parents=True, exist_ok=True)
        return next(str(path) for path in (link, link.with_name(f"{link.name}-{stem(url)}")) if _link(path, kept, url))


class _Origin:
    """Where shards come from: the stores of all URLs, or a user's own function (`gopen_schemes`), which tells nothing beforehand."""

    lists = writes = selects = True

    def stat(self, url: URL) -> Stat:
        return Stat(url) if own_opener(url) is not None else _behind(url).stat(url)

    def open(self, url: URL, *, offset: int = 0, etag: str | None = None) -> Stream:
        own = own_opener(url)
        return _behind(url).open(url, offset=offset, etag=etag) if own is None else _OwnStream(url, own(url, "rb", 8192))


class _OwnStream(Stream):
    """What a user's function has opened."""

    def __init__(self, url: URL, file: Any) -> None:
        self.stat, self.offset, self._file = Stat(url), 0, file

    def readinto(self, buffer: memoryview, /) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.offset += len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()


def _behind(url: str) -> Store:
    """The store of a URL; not another cache, where the option `shard_cache` is set."""
    found = stores.of(url)
    return found.store if isinstance(found, CachedStore) else found


def _link(link: Path, kept: Path, url: str) -> bool:
    """Let a name stand for a file; False where it is that of another URL. It stays with its URL, also when the file has gone."""
    target = os.path.relpath(kept, link.parent)
    with suppress(FileExistsError):
        link.symlink_to(target)
        return True
    if not link.is_symlink() or not os.path.basename(old := os.readlink(link)).startswith(stem(url)):
        return False
    if old != target:  # another version
        beside = link.with_name(f".{link.name}.{os.getpid()}.{secrets.token_hex(4)}")
        beside.symlink_to(target)
        beside.replace(link)
    return True
