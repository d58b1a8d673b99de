"""What is known of an output that is complete, and the manifest beside it that says so and where the records come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from tarviz import stores
from tarviz.formats.tfrecord import crc32c
from tarviz.model.errors import NotFoundError, TarvizError
from tarviz.model.redaction import redact, redacted_repr
from tarviz.model.types import URL
from tarviz.model.urls import identity, without_query
from tarviz.outputs.piped import is_command
from tarviz.stores import Stat, Stream

_CHUNK = 4 << 20


@dataclass(frozen=True, slots=True)
class Written:
    """One output that is complete: its bytes, the records in it, the CRC32C over the file. `kept`: it was there already."""

    url: URL
    records: int
    bytes: int
    crc32c: str
    kept: bool = False

    __repr__ = redacted_repr

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; the URL redacted."""
        return asdict(self) | {"url": redact(self.url)}


@dataclass(slots=True)
class SourcePart:
    """The records of one source that an output holds: numbers `first` up to `stop` of the shard."""

    source: dict[str, Any]
    first: int
    stop: int

    def to_dict(self) -> dict[str, Any]:
        return {**self.source, "first": self.first, "stop": self.stop}


def manifest_url(url: URL) -> URL:
    """Where the manifest of an output is: `train-1.tfrecord.manifest.json` beside `train-1.tfrecord`."""
    name, query = without_query(url)
    return URL(f"{name}.manifest.json{query}")


def read_manifest(url: URL) -> dict[str, Any] | None:
    """The manifest of an output, None when there is none that can be read."""
    try:
        content = json.loads(stores.of(url).read(manifest_url(url), 0, 64 << 20))
    except (TarvizError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def proven(url: URL, manifest: Mapping[str, Any]) -> Written | None:
    """The output as its manifest says, when its bytes are just those; the file is read for that. None otherwise."""
    try:
        with stores.of(url).open(url) as stream:
            if stream.stat.size not in (None, manifest.get("bytes")):
                return None
            crc, size = checksum(stream)
    except TarvizError:
        return None
    if (size, crc) != (manifest.get("bytes"), manifest.get("crc32c")):
        return None
    return Written(url, int(manifest["records"]), size, crc, kept=True)


def checksum(stream: Stream) -> tuple[str, int]:
    """CRC32C, in eight hexadecimal digits, and number of the bytes that a stream gives."""
    buffer = memoryview(bytearray(_CHUNK))
    crc = size = 0
    while count := stream.readinto(buffer):
        crc, size = crc32c(buffer[:count], crc), size + count
    return f"{crc:08x}", size


def source_entry(stat: Stat) -> dict[str, Any]:
    """What a manifest says about a source shard: enough to notice that it changed."""
    return {"shard": redact(identity(stat.url)), "size": stat.size, "etag": stat.etag, "mtime": stat.mtime}


def write_manifest(written: Written, more: Mapping[str, Any]) -> None:
    """Put the manifest of an output beside it: its own figures, and `more`."""
    facts = {"records": written.records, "bytes": written.bytes, "crc32c": written.crc32c}
    text = json.dumps({**facts, **more}, indent=1, ensure_ascii=False) + "\n"
    stores.write(manifest_url(written.url), text.encode("utf-8", "surrogateescape"))


def forget_manifest(url: URL) -> None:
    """Remove the manifest of an output that is about to be replaced: it would lie, if only until the new one is there."""
    if url != "-" and not is_command(url):
        with suppress(NotFoundError):
            stores.of(url).delete(manifest_url(url))
