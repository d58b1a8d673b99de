"""Which outputs of an earlier `convert` need not be made again: their manifests and bytes prove them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tarviz.commands.convert.tasks import Settings, ShardToConvert
from tarviz.model.types import URL
from tarviz.outputs import Written, proven, read_manifest

_READ_AT_ONCE = 8  # outputs: each holds 4 MiB of memory


def digest(entries: Sequence[Mapping[str, Any]]) -> str:
    """A name for a list of inputs as they are now."""
    return hashlib.sha256(json.dumps(list(entries), sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def kept_each(settings: Settings, sources: Sequence[ShardToConvert]) -> dict[int, Written]:
    """Source number → its output, where manifest and bytes prove that it need not be made again."""

    def of(source: ShardToConvert) -> Written | None:
        url = settings.names.at(source.number)
        manifest = _manifest(url, settings)
        parts = manifest.get("sources", []) if manifest else []
        return proven(url, manifest) if manifest and len(parts) == 1 and _same(parts[0], source.entry) else None

    with ThreadPoolExecutor(_READ_AT_ONCE, "tarviz-kept") as pool:
        found = pool.map(of, sources)
        return {source.number: written for source, written in zip(sources, found, strict=True) if written}


def kept_sequence(settings: Settings, sources: Sequence[ShardToConvert]) -> tuple[list[Written], int, int]:
    """The outputs from the first on that are proven, then source and record with which the next one begins."""
    kept: list[Written] = []
    number = record = 0
    while True:
        url = settings.names.at(len(kept)) if settings.max_size is not None or not kept else None
        manifest = _manifest(url, settings) if url else None
        parts = manifest.get("sources", []) if manifest else []
        if url is None or manifest is None or not _follows(parts, sources, number, record):
            return kept, number, record
        whole = settings.manifest is not None and manifest.get("inputs") == settings.manifest.get("inputs")
        if not (manifest.get("full") or whole) or (written := proven(url, manifest)) is None:
            return kept, number, record
        kept.append(written)
        if not manifest.get("full"):
            return kept, len(sources), 0
        number, record = parts[-1]["number"], parts[-1]["stop"]


def _follows(parts: Sequence[Mapping[str, Any]], sources: Sequence[ShardToConvert], number: int, record: int) -> bool:
    """Whether the records of an output begin at a record of a source and come from sources that are still the same."""
    for at, part in enumerate(parts):
        place = part.get("number")
        if not isinstance(place, int) or not 0 <= place < len(sources) or not _same(part, sources[place].entry):
            return False
        if at == 0 and (place, part.get("first")) != (number, record) and not (place > number and part.get("first") == 0):
            return False
    return True


def _manifest(url: URL, settings: Settings) -> dict[str, Any] | None:
    found = read_manifest(url)
    wanted = json.loads(json.dumps(dict(settings.manifest or {})))
    return found if found and all(found.get(name) == wanted.get(name) for name in ("format", "options")) else None


def _same(part: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    # A source whose version is not known may have changed.
    known = entry["etag"] is not None or entry["mtime"] is not None
    return known and all(part.get(name) == entry[name] for name in ("shard", "size", "etag", "mtime"))
