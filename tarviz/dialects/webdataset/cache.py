"""`webdataset.cache`: remote shards kept as local files, whole or not at all."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlparse
from zlib import crc32

from tarviz import stores
from tarviz.dialects.webdataset.gopen import gopen, own_opener
from tarviz.dialects.webdataset.handlers import Handler, reraise_exception
from tarviz.model.errors import DataError, UsageError, redact
from tarviz.model.types import URL
from tarviz.read.stream import Shard
from tarviz.stores import Stat

_PIECE = 1 << 20
_NAMED = ("", "file", "http", "https", "ftp", "ftps", "gs", "s3", "ais")

default_cache_dir = os.environ.get("WDS_CACHE", "./_cache")


def islocal(url: str) -> bool:
    """Whether a URL is a file of this machine."""
    return urlparse(url).scheme in ("", "file")


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

    def set_cache_dir(self, cache_dir: str) -> None:
        """Name the folder."""
        self.cache_dir = cache_dir

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
            if total <= self.cache_size:
                break
            if path != keep:
                with suppress(FileNotFoundError):
                    os.remove(path)
                with suppress(FileNotFoundError):
                    os.remove(_note(path))
                total -= size


class StreamingOpen:
    """URLs opened one after the other: dicts of `url`, `stream` and, for local files, `local_path`."""

    def __init__(self, verbose: bool = False, handler: Handler = reraise_exception) -> None:
        self.verbose = verbose
        self.handler = handler

    def __call__(self, urls: Iterable[Any]) -> Iterator[dict[str, Any]]:
        for item in urls:
            url = item["url"] if isinstance(item, dict) else item
            try:
                place = {"local_path": stores.local_path(url)} if islocal(url) else {}
                yield {"url": url, "stream": gopen(url), **place}
            except Exception as error:  # noqa: BLE001  the handler decides
                if not self.handler(error):
                    return


class FileCache:
    """Remote shards as files in a folder.

    A file has its name when it is complete and looks like a tar (`validator`). A note beside it (`.NAME.tarviz`) says which URL
    it is of: two URLs that end alike do not get each other's bytes, and a file whose size is not the noted one is fetched again.
    `cache_size`: bytes at most; -1 for no limit. `url_to_name` names the files, by default after the last part of the URL.
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
        self.cache_dir = os.fspath(default_cache_dir if cache_dir is None else cache_dir)
        self.url_to_name = url_to_name
        self.verbose = verbose
        self.validator = validator
        self.handler = handler
        self.cleaner = LRUCleanup(self.cache_dir, cache_size, _last_use, verbose, cache_cleanup_interval) if cache_size > 0 else None

    def get_file(self, url: str) -> str:
        """The path of a URL's file, fetched if it is not there. `DataError` where what comes is not a tar."""
        if islocal(url):
            return stores.local_path(url)
        name = self.url_to_name(url)
        if not name or os.path.isabs(name) or ".." in Path(name).parts:
            raise UsageError(f"{name!r} is not a name for {redact(url)} in the cache.", hint="Give another url_to_name.")
        path = os.path.join(self.cache_dir, name)
        if (noted := _read_note(path)) is not None and noted.get("url") != redact(url):
            path = f"{path}-{crc32(url.encode()):08x}"
            noted = _read_note(path)
        if os.path.exists(path) and (noted is None or noted.get("size") == os.path.getsize(path)):
            with suppress(OSError):
                os.utime(path)  # used now
            return path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._fetch(url, path)
        if self.cleaner is not None:
            self.cleaner.cleanup(keep=path)
        return path

    def _fetch(self, url: str, path: str) -> None:
        folder, name = os.path.split(path)
        partial = os.path.join(folder, f".{name}.{os.getpid()}.partial")
        try:
            stat = _download(url, partial)
            if self.validator is not None and not self.validator(partial):
                with open(partial, "rb") as file:
                    begin = file.read(40)
                raise DataError(f"this is not a tar archive; it begins with {begin!r}.", shard=url, code="E_NOT_TAR")
            note = {"url": redact(url), "size": os.path.getsize(partial), "etag": stat.etag}
            with open(f"{partial}.note", "w", encoding="utf-8") as text:
                json.dump(note, text)
            os.replace(f"{partial}.note", _note(path))
            os.replace(partial, path)
        finally:
            for left in (partial, f"{partial}.note"):
                with suppress(FileNotFoundError):
                    os.remove(left)

    def __call__(self, urls: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """Files of URLs, opened: dicts of `url`, `stream`, `local_path`."""
        for item in urls:
            url = item["url"] if isinstance(item, dict) else item
            try:
                path = self.get_file(url)
                yield {"url": url, "stream": open(path, "rb"), "local_path": path}  # noqa: SIM115  its reader closes it
            except Exception as error:  # noqa: BLE001  the handler decides
                if not self.handler(error):
                    return


def download(url: str, dest: str, chunk_size: int = _PIECE, verbose: bool = False) -> None:
    """Fetch a URL into a file, which is there when it is complete."""
    partial = f"{dest}.{os.getpid()}.partial"
    try:
        _download(url, partial)
        os.replace(partial, dest)
    finally:
        with suppress(FileNotFoundError):
            os.remove(partial)


def _download(url: str, path: str) -> Stat:
    own = own_opener(url)
    with open(path, "wb") as file:
        if own is not None:
            with own(url, "rb", 8192) as stream:
                while data := stream.read(_PIECE):
                    file.write(data)
            return Stat(URL(url))
        buffer = bytearray(_PIECE)
        with stores.of(url).open(URL(url)) as source:  # gives every byte, or an error
            while count := source.readinto(memoryview(buffer)):
                file.write(memoryview(buffer)[:count])
            return source.stat


def _last_use(path: str) -> float:
    return os.stat(path).st_mtime


def _note(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.tarviz")


def _read_note(path: str) -> dict[str, Any] | None:
    try:
        with open(_note(path), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
