"""Where the samples of go-tfdata's pipeline come from: shards, or an open file."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from tarviz import stores
from tarviz.dialects.tfdata.core import KEY_ENTRY, Sample
from tarviz.model.errors import NotFoundError, UsageError
from tarviz.model.types import URL, Block
from tarviz.model.urls import local_path
from tarviz.read import stream
from tarviz.read.stream import ReadOptions, ReadReport

OPTIONS = ReadOptions(key_split="last-dot", group="shard", duplicates="last")
_CHUNK = 1 << 20


class ShardSource:
    """Shards, or an open file, whose records are gathered over the whole shard as go-tfdata does."""

    def __init__(self, source: Any) -> None:
        if isinstance(source, io.TextIOBase):
            raise UsageError("from_tar needs a binary file.", hint='Open it with "rb".')
        if not hasattr(source, "read") and not isinstance(source, str | os.PathLike) and not isinstance(source, Iterable):
            raise UsageError(f"from_tar reads a path, a URL or an open file, got {type(source).__name__}.")
        self.source = source

    def blocks(self, report: ReadReport) -> Iterator[Block]:
        """The blocks of the shards in order."""
        if not hasattr(self.source, "read"):
            for url in stream.shards(self.source):
                yield from stream.blocks(url, OPTIONS, report=report)
            return
        if (path := _path(self.source)) is not None:
            yield from stream.blocks(path, OPTIONS, report=report)
            return
        url = URL(f"memory://tfdata/{secrets.token_hex(8)}.tar")
        try:
            with stores.of(url).create(url) as sink:
                while data := self.source.read(_CHUNK):
                    sink.write(data)
            yield from stream.blocks(url, OPTIONS, report=report)
        finally:
            with suppress(NotFoundError):
                stores.of(url).delete(url)

    def samples(self, report: ReadReport) -> Iterator[Sample]:
        """The records one by one."""
        for block in self.blocks(report):
            for record in block:
                yield Sample({KEY_ENTRY: record.key, **{ext: bytes(record[ext]) for ext in record}}, shard=block.shard)


def _path(file: Any) -> str | None:
    """The path behind an open file that stands at its beginning, so that it can be read by an index."""
    name = getattr(file, "name", None)
    try:
        same = (
            isinstance(name, str) and os.path.isfile(name) and file.tell() == 0 and os.path.samestat(os.fstat(file.fileno()), os.stat(name))
        )
    except (OSError, ValueError):
        return None
    return local_path(str(name)) if same and type(file).__module__ in ("io", "_io") else None
