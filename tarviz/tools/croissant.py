"""Croissant 1.1 metadata of shards: the files, and for each field the members that hold it and what these hold, by the key of the record.

Source: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tarviz import stores
from tarviz.model.types import URL
from tarviz.ops.values.payloads import kind_of

VERSION = "http://mlcommons.org/croissant/1.1"
_TERMS = (
    "arrayShape citeAs column containedIn equivalentProperty excludes extract field fileObject fileProperty fileSet format includes "
    "isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source "
    "subField transform"
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    **{term: f"cr:{term}" for term in _TERMS.split()},
}
_TYPES = {"picture": "sc:ImageObject", "sound": "sc:AudioObject", "film": "sc:VideoObject", "class": "sc:Integer"}


@dataclass(frozen=True, slots=True)
class ShardFile:
    """A shard as metadata names it: `name` is its path below the folder of the metadata, or its URL."""

    name: str
    size: int
    sha256: str

    @classmethod
    def of(cls, url: URL, name: str) -> ShardFile:
        """The shard with its sum; all of it is read."""
        digest, size = hashlib.sha256(), 0
        buffer = memoryview(bytearray(1 << 20))
        with stores.of(url).open(url) as stream:
            while count := stream.readinto(buffer):
                digest.update(buffer[:count])
                size += count
        return cls(name, size, digest.hexdigest())


def metadata(name: str, description: str, shards: Sequence[ShardFile], exts: Sequence[str]) -> dict[str, Any]:
    """The metadata of shards whose records have the fields `exts`; licence, author, date and citation are for people to fill in."""
    files: list[dict[str, Any]] = [
        {
            "@type": "cr:FileObject",
            "@id": shard.name,
            "name": shard.name,
            "contentUrl": shard.name,
            "contentSize": f"{shard.size} B",
            "encodingFormat": "application/x-tar",
            "sha256": shard.sha256,
        }
        for shard in shards
    ]
    sets = [_members(ext, exts, shards) for ext in exts]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": name,
        "description": description,
        "conformsTo": VERSION,
        "distribution": [*files, *sets],
        "recordSet": [_records(ext) for ext in exts],
    }


def type_of(ext: str) -> str:
    """What Croissant calls the content of a field.

    >>> type_of("seg.png"), type_of("json")
    ('sc:ImageObject', 'sc:Text')
    """
    return _TYPES.get(kind_of(ext), "sc:Text")


def _cases(ext: str) -> list[str]:
    """An extension as members may have it: readers of shards do not tell JPG from jpg, patterns do."""
    return list(dict.fromkeys((ext, ext.upper())))


def _members(ext: str, exts: Sequence[str], shards: Sequence[ShardFile]) -> dict[str, Any]:
    """The members of one field in all shards."""
    guessed = None if kind_of(ext) == "class" else mimetypes.guess_type(f"x.{ext}")[0]  # which takes `cls` for TeX on some machines
    guessed = guessed or ("text/plain" if kind_of(ext) in ("class", "text") else "application/octet-stream")
    made = {
        "@type": "cr:FileSet",
        "@id": f"{ext}-files",
        "name": f"{ext}-files",
        "containedIn": [{"@id": shard.name} for shard in shards],
        "encodingFormat": guessed,
        "includes": [f"*.{name}" for name in _cases(ext)],
    }
    longer = [f"*.{name}" for other in exts if other.endswith(f".{ext}") for name in _cases(other)]
    return made | {"excludes": longer} if longer else made


def _records(ext: str) -> dict[str, Any]:
    """The contents of one field, each with the key of its record: a set for each field, as mlcroissant (1.1) joins two sources at most."""

    def field(name: str, kind: str, about: str, **source: Any) -> dict[str, Any]:
        made = {"@type": "cr:Field", "@id": f"{ext}/{name}", "name": name, "description": about, "dataType": kind}
        return made | {"source": {"fileSet": {"@id": f"{ext}-files"}, **source}}

    regex = {"regex": rf"^(.*)\.(?:{'|'.join(map(re.escape, _cases(ext)))})$"}
    key = field("key", "sc:Text", "The same in all fields of a record.", extract={"fileProperty": "fullpath"}, transform=regex)
    content = field("content", type_of(ext), f"What the record's .{ext} holds.", extract={"fileProperty": "content"})
    return {"@type": "cr:RecordSet", "@id": ext, "name": ext, "key": {"@id": f"{ext}/key"}, "field": [key, content]}
