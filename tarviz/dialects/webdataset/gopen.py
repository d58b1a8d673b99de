"""`gopen`: URLs as file objects, through the stores; `gopen_schemes` takes functions of your own for a scheme."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from tarviz import stores
from tarviz.model.errors import UsageError
from tarviz.model.types import URL

Opener = Callable[..., Any]


class ShardFile(io.RawIOBase):
    """The bytes of a URL as a file object. It is opened by the first read, so that whoever gets it may read the URL itself."""

    def __init__(self, url: str) -> None:
        self.url = URL(url)
        self._stream: stores.Stream | None = None

    @property
    def begun(self) -> bool:
        """Whether somebody has read from it."""
        return self._stream is not None

    def begin(self) -> ShardFile:
        """Open it now. `NotFoundError`, `StoreError` as the store raises them."""
        if self._stream is None:
            self._stream = stores.of(self.url).open(self.url)
        return self

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        self.begin()
        assert self._stream is not None
        return self._stream.readinto(memoryview(buffer).cast("B"))

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        super().close()


class SinkFile(io.RawIOBase):
    """A file object that writes to a URL; what is written has its name when it is closed, and never when the block raised."""

    def __init__(self, url: str) -> None:
        self.url = URL(url)
        self._sink = stores.of(self.url).create(self.url)

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._sink.write(bytes(data))
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._sink.commit()
        super().close()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._sink.abort()
            super().close()


def gopen_store(url: str, mode: str = "rb", bufsize: int = 8192, **options: Any) -> Any:
    """A URL through its store: a file object to read, or one to write."""
    if mode[0] == "w":
        return SinkFile(url)
    return io.BufferedReader(ShardFile(url).begin(), max(bufsize, 1 << 16))


def gopen_pipe(url: str, mode: str = "rb", bufsize: int = 8192, **options: Any) -> Any:
    """Refuses: a `pipe:` URL would run a shell."""
    refuse_secure("gopen_pipe: unsafe_gopen is False, cannot open pipe URLs.")
    raise UsageError(
        "a pipe: URL would run a shell command, which nothing here does by itself.",
        hint="Pipe into '-', name the URL itself, or set gopen_schemes['pipe'] to a function (url, mode, bufsize) of your own.",
    )


gopen_schemes: dict[str, Opener] = {
    "__default__": gopen_store,
    "pipe": gopen_pipe,
    **dict.fromkeys(("http", "https", "ais", "gs", "s3", "hf", "htgs", "sftp", "ftps", "scp"), gopen_store),
}


def own_opener(url: str) -> Opener | None:
    """The function that a user has registered for the scheme of `url`; None where its store is meant."""
    scheme = "pipe" if url.startswith("pipe:") else urlsplit(url).scheme
    found = gopen_schemes.get(scheme, gopen_schemes["__default__"]) if scheme else None
    return None if found is None or found is gopen_store else found


def rewrite_url(url: str) -> str:
    """`url` with the first prefix of `GOPEN_REWRITE` ("old=new;…", regular expressions) that it begins with replaced."""
    rules = os.environ.get("GOPEN_REWRITE")
    if not rules:
        return url
    refuse_secure("rewrite_url: unsafe_gopen is False, cannot rewrite URLs using environment variables.")
    for rule in rules.split(";"):
        old, _, new = rule.partition("=")
        changed = re.sub(f"^{old}", new, url)
        if changed != url:
            return changed
    return url


def gopen(url: str, mode: str = "rb", bufsize: int = 8192, **options: Any) -> Any:
    """A URL or path as a binary file object, `-` as standard input or output. A file is there when it is closed.

    Raises `UsageError` for another mode than `rb` and `wb` and for `pipe:`, `NotFoundError`, `StoreError`.
    """
    if mode not in ("rb", "wb"):
        raise UsageError(f"gopen has the modes 'rb' and 'wb', not {mode!r}.")
    if url == "-":
        return sys.stdin.buffer if mode == "rb" else sys.stdout.buffer
    url = rewrite_url(url)
    found = own_opener(url)
    if found is not None:
        return found(url, mode, bufsize, **options)
    if stores.is_local(url):
        refuse_secure("gopen: unsafe_gopen is False, cannot open local files.")
    return gopen_store(url, mode, bufsize)


def refuse_secure(what: str) -> None:
    """`UsageError` where webdataset's switch `enforce_security` (`WDS_SECURE=1`) is on."""
    from tarviz.dialects.webdataset import utils

    if utils.enforce_security:
        raise UsageError(what)
