"""Which version of an object an answer is of, and how to ask for no other one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from typing import Any, Self

from urllib3 import BaseHTTPResponse

from tarviz.stores.retry import http_date

CONTENT_RANGE = re.compile(r"\s*bytes\s+(?:(\d+)-(\d+)|\*)/(\d+|\*)\s*", re.ASCII | re.IGNORECASE)
_DATED, _CLUSTER, _GENERATION = "modified ", "ais ", "generation "
_PINS = {"x-amz-version-id": "versionId", "x-goog-generation": "generation", "x-ms-version-id": "versionid"}


@dataclass(frozen=True, slots=True)
class Version:
    """What an answer tells of the version of the object (RFC 9110 §8.8). `coded`: the body is compressed on the way.

    `pin` is a query that asks for just this version where a bucket keeps old ones.
    """

    etag: str | None = None
    modified: str | None = None
    coded: bool = False
    pin: tuple[str, str] | None = None

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        """The version that headers tell; their names are looked up in any case."""
        etag = headers.get("ETag")
        if not etag and (value := headers.get("ais-checksum-value")):
            etag = f"{_CLUSTER}{headers.get('ais-checksum-type', '')} {value} {headers.get('ais-version', '')}".rstrip()
        pins = ((name, headers.get(header)) for header, name in _PINS.items())
        pin = next(((name, value) for name, value in pins if value and value != "null"), None)
        coded = headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity")
        return cls(etag or None, headers.get("Last-Modified") or None, coded, pin)

    @classmethod
    def of_token(cls, token: str) -> tuple[Self, int | None]:
        """The version of a token, and the size of the object where the token holds it."""
        if token.startswith(_DATED):
            date, _, size = token.removeprefix(_DATED).rpartition("; ")
            return cls(None, date), int(size) if size.isdecimal() else None
        if token.startswith(_GENERATION):
            return cls(pin=("generation", token.removeprefix(_GENERATION))), None
        return cls(token), None

    @classmethod
    def of_description(cls, found: Any) -> tuple[Self, int]:
        """Version and size of an object as Google describes it in JSON; `ValueError` for anything else.

        Source: cloud.google.com/storage/docs/json_api/v1/objects#resource
        """
        if not isinstance(found, dict) or not {"generation", "size"} <= found.keys():
            raise ValueError("no description of an object")
        date = format_datetime(datetime.fromisoformat(found["updated"]), usegmt=True) if "updated" in found else None
        return cls(None, date, pin=("generation", str(found["generation"]))), int(found["size"])

    def token(self, size: int | None) -> str | None:
        """What `Stat.etag` holds: Google's generation, the ETag, or else time and size, which name a version nearly as well."""
        if self._generation:
            return f"{_GENERATION}{self._generation}"
        if self.etag or not self.modified:
            return self.etag
        return f"{_DATED}{self.modified}; {'' if size is None else size}"

    @property
    def mtime(self) -> float | None:
        return http_date(self.modified) if self.modified else None

    @property
    def known(self) -> bool:
        """Whether another answer can be told to be of the same version."""
        return not self.coded and bool(self.etag or self.modified or self._generation)

    @property
    def _generation(self) -> str:
        """Google's number of the version: in what it says of an object by JSON, the ETag is another than in the object's own answers."""
        return self.pin[1] if self.pin is not None and self.pin[0] == "generation" else ""

    def condition(self) -> dict[str, str]:
        """The header that makes a server refuse another version; a weak ETag never matches (RFC 9110 §13.1.1)."""
        if self.etag:
            return {} if self.etag.startswith(("W/", _CLUSTER)) or self._generation else {"If-Match": self.etag}
        return {"If-Unmodified-Since": self.modified} if self.modified and not self._generation else {}

    def is_same(self, other: Version) -> bool:
        if self._generation and other._generation:
            return self._generation == other._generation
        if self.etag and other.etag:
            return self.etag.removeprefix("W/") == other.etag.removeprefix("W/")
        return self.modified is not None and self.modified == other.modified

    def __str__(self) -> str:
        if self._generation:
            return f"{_GENERATION}{self._generation}"
        if self.etag:
            return self.etag if self.etag.startswith(_CLUSTER) else f"ETag {self.etag}"
        return f"Last-Modified {self.modified}" if self.modified else "no ETag"


def total_of(answer: BaseHTTPResponse) -> int | None:
    """The size of the whole object that `Content-Range` tells."""
    match = CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    return int(match[3]) if match and match[3] != "*" else None
