"""Tar headers of one member as rows of text, for the inspector: each field, PAX records, the raw bytes."""

from __future__ import annotations

from itertools import islice
from typing import Any

from tarviz.formats.header_parse import payload_blocks
from tarviz.formats.header_scan import BLOCK
from tarviz.formats.pax import number, records
from tarviz.model.errors import DataError
from tarviz.model.types import Buffer
from tarviz.viewers.panel import readable
from tarviz.widgets.browse.rows import Row

_TYPES = {b"0": "file", b"\0": "file", b"1": "hard link", b"2": "symbolic link", b"5": "folder", b"7": "file"}
_TYPES |= {b"x": "PAX header", b"g": "PAX global", b"L": "GNU long name", b"K": "GNU long link", b"S": "GNU sparse file"}


def header(row: Row, ext: str) -> tuple[dict[str, Any], list[Buffer]]:
    """The tar headers before a field: fields of each, PAX records, and the raw bytes."""
    at = row.member(ext)
    members = row.index.members
    start, data = int(members.start[at]), int(members.data[at])
    raw = row.shard.read(start, min(data - start, 64 << 10))
    shown: list[list[str]] = [
        ["name", readable(members[at].name)],
        ["member begins", f"byte {start:,} (0x{start:x})"],
        ["payload", f"byte {data:,} (0x{data:x}), {int(members.size[at]):,} bytes"],
        ["member ends", f"byte {int(members.end[at]):,}"],
    ]
    place = 0
    while place + BLOCK <= len(raw):
        block = raw[place : place + BLOCK]
        shown += _header_fields(block)
        size = number(block[124:136]) or 0
        place += BLOCK
        if block[156:157] not in b"xgLK":
            break
        body = raw[place : place + size]
        long_name = ["long name", readable(body.rstrip(b"\0").decode("utf-8", "backslashreplace"))]
        shown += _pax(body) if block[156:157] in b"xg" else [long_name]
        place += payload_blocks(size)
    return {"rows": shown}, [raw[:4096]]


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")


def _header_fields(block: bytes) -> list[list[str]]:
    kind = _TYPES.get(block[156:157], f"type {block[156:157]!r}")
    numbers = {"mode": block[100:108], "uid": block[108:116], "gid": block[116:124], "size": block[124:136], "mtime": block[136:148]}
    rows = [["— header", kind], ["name field", readable(_text(block[:100]))]]
    for name, field in numbers.items():
        value = number(field)
        shown = "unreadable" if value is None else f"{value:o} (octal)" if name == "mode" else f"{value:,}"
        rows.append([name, f"{shown}   {_text(field)!r}"])
    magic = block[257:265]
    rows += [
        ["checksum", _text(block[148:156])],
        ["format", "GNU" if magic == b"ustar  \0" else "ustar" if magic.startswith(b"ustar\0") else "v7"],
    ]
    if link := _text(block[157:257]):
        rows.append(["link", readable(link)])
    owner = f"{_text(block[265:297])}:{_text(block[297:329])}".strip(":")
    return rows + ([["owner", readable(owner)]] if owner else [])


def _pax(body: bytes) -> list[list[str]]:
    """PAX records, as far as they can be read."""
    rows: list[list[str]] = []
    try:
        for name, value in islice(records(body), 100):
            rows.append([f"PAX {readable(_text(name))}", readable(value.decode("utf-8", "backslashreplace"))[:500]])
    except DataError as error:
        rows.append(["PAX", f"unreadable: {error.message}"])
    return rows
