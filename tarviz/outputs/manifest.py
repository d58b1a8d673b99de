"""What is known of an output that is complete, and the manifest beside it that proves it, and says where the records come from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from tarviz import stores
from tarviz.formats.tfrecord import crc32c
from tarviz.model.errors import NotFoundError, StoreError, TarvizError
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


def prove(url: URL, records: int, facts: Mapping[str, Any]) -> None:
    """Put the manifest beside an output that is complete: records, bytes and CRC32C of the file, and the facts."""
    with stores.of(url).open(url) as stream:
        crc, size = checksum(stream)
    write_manifest(Written(url, records, size, crc), facts)


def find_kept(url: URL, facts: Mapping[str, Any]) -> Written | None:
    """The output when its manifest holds just these facts and its bytes are those of the manifest. None otherwise.

    A source whose version no store tells proves nothing: it may have changed.
    """
    wanted = json.loads(json.dumps(dict(facts)))
    known = all(source.get("etag") is not None or source.get("mtime") is not None for source in wanted.get("sources", []))
    found = read_manifest(url) if known else None
    if found is None or any(found.get(name) != value for name, value in wanted.items()):
        return None
    return proven(url, found)


def check_seen(url: URL) -> None:
    """`StoreError` when an output that a worker on some machine wrote is not to be seen on this one."""
    if stores.is_local(url) and not os.path.exists(stores.local_path(url)):
        raise StoreError(
            "a worker of the cluster wrote this output, and it is not here.",
            shard=url,
            code="E_WRITE",
            hint="The worker's disk is not this machine's: name a folder they share, or an object store.",
        )
