"""Manifests that prove an output of a tool: that it is whole, and made of these inputs in this way."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from tarviz import stores
from tarviz.model.errors import StoreError
from tarviz.model.types import URL
from tarviz.outputs.manifest import Written, checksum, proven, read_manifest, write_manifest


def write(url: URL, records: int, facts: Mapping[str, Any]) -> None:
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
