"""Text as records: a line, a page or a key of a text file each, so that `proc` runs on them as on those of a tar."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import IO, Literal, TypeAlias

from tarviz import stores
from tarviz.formats.tar_header import TAR_END, tar_member
from tarviz.model.errors import UsageError
from tarviz.model.types import URL

Mode: TypeAlias = Literal["tar", "lines", "pages", "keys"]
KEY = "__key__"  # the field of a record that has nothing but a key
_PIECE = 1 << 20


@contextmanager
def tar_of(urls: list[URL], mode: Mode, tmp: str | PathLike[str] | None = None) -> Iterator[list[URL]]:
    """The shards to read: tars as they are; for texts one tar of their records, which is gone afterwards. See `write_tar`."""
    if mode == "tar":
        yield urls
        return
    with tempfile.TemporaryDirectory(prefix="tarviz-text-", dir=tmp) as folder:
        path = os.path.join(folder, f"{mode}.tar")
        with open(path, "wb") as file:
            write_tar(urls, mode, file)
        yield [URL(path)]


def write_tar(urls: Iterable[URL], mode: Mode, file: IO[bytes]) -> None:
    """Write the records of texts as a tar.

    `lines`: each line, its end included, is the field `txt` of a record; `pages`: what stands between lines of a form feed, such a line
    beginning the next page; both are counted from 0 over all texts, which is their key. `keys`: each line is the key of a record, and
    its field `__key__`. `UsageError` for a key that a tar would cut in two.
    """
    count = 0
    for url in urls:
        for text in _pages(url) if mode == "pages" else _lines(url):
            key = _key(text, url) if mode == "keys" else b"%d" % count
            ext, payload = (KEY, key) if mode == "keys" else ("txt", text)
            file.write(b"".join(tar_member(key + b"." + ext.encode(), payload)))
            count += 1
    file.write(TAR_END)


def _key(line: bytes, url: URL) -> bytes:
    key = line.strip()
    if not (base := key.rpartition(b"/")[2]) or b"." in base:
        shown = key.decode("utf-8", "replace")
        raise UsageError(f"{shown!r} cannot be the key of a record: a tar would cut it at the dot.", shard=url)
    return key


def _pages(url: URL) -> Iterator[bytes]:
    held: list[bytes] = []
    for line in _lines(url):
        if line == b"\f\n":
            yield b"".join(held)
            held = []
        held.append(line)
    if held:
        yield b"".join(held)


def _lines(url: URL) -> Iterator[bytes]:
    rest = b""
    buffer = memoryview(bytearray(_PIECE))
    with stores.of(url).open(url) as stream:
        while count := stream.readinto(buffer):
            *lines, rest = (rest + bytes(buffer[:count])).split(b"\n")
            for line in lines:
                yield line + b"\n"
    if rest:
        yield rest
