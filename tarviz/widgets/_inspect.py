"""The record inspector: a record's fields and panels, its `tf.train.Example` and TFRecord frame, its tar headers."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tarviz import viewers
from tarviz.config import format_size
from tarviz.errors import DataError, LimitError, TarvizError, redact
from tarviz.types import Buffer
from tarviz.viewers import Meta, Note, Panel
from tarviz.viewers._panel import MAX_PREVIEW_BYTES, readable
from tarviz.widgets._rows import Row, Want, payloads

_HEADER = 512
_TYPES = {
    b"0": "file",
    b"\0": "file",
    b"1": "hard link",
    b"2": "symbolic link",
    b"5": "folder",
    b"7": "file",
    b"x": "PAX header",
    b"g": "PAX global",
}
_TYPES |= {b"L": "GNU long name", b"K": "GNU long link", b"S": "GNU sparse file"}
_PLAYED = {"audio": "audio/", "video": "video/"}


def describe(row: Row) -> dict[str, Any]:
    """A record without its payloads: key, place, and per field extension, size, offset and the kind of viewer."""
    members = row.segment.members
    fields = [
        {"ext": readable(ext), "size": size, "offset": int(members.data[at]), "kind": viewers.choose(ext)}
        for (ext, size), at in zip(row.sizes.items(), range(row.low, row.high), strict=False)
    ]
    return {
        "id": row.id,
        "key": readable(row.key),
        "shard": readable(redact(row.shard.url)),
        "index": row.record,
        "fields": fields,
        "pending": row.pending,
        "python": python(row),
    }


def python(row: Row, ext: str = "") -> str:
    """The Python that loads this record, or one field of it."""
    field = f"[{ext!r}]" if ext else ""
    return f"import tarviz\nrecord = tarviz.index({redact(row.shard.url)!r})[{row.record}]  # {row.key!r}" + (
        f"\nrecord{field}" if ext else ""
    )


def payload(row: Row, ext: str, limit: int = MAX_PREVIEW_BYTES) -> bytes:
    """One payload, whole. Raises what reading it met."""
    found = payloads([Want(row, ext)], limit=limit)[0]
    if isinstance(found, TarvizError):
        raise found
    return found


def panel(row: Row, ext: str, *, as_: str | None = None, options: Mapping[str, Any] | None = None) -> Panel:
    """The panel of one field. What is too large to be held is played or shown as bytes, in parts."""
    size = row.sizes.get(ext)
    if size is None:
        raise DataError(f"There is no .{ext} in this record.", code="E_MISSING_FIELD")
    meta = Meta(ext, row.key, row.shard.url, dict(options or {}))
    if size > MAX_PREVIEW_BYTES:
        kind = viewers.choose(ext)
        block: Any = viewers.Hex()
        if kind == "video":
            block = viewers.Video("video/mp4" if not ext.endswith("webm") else "video/webm")
        note = Note(f"{format_size(size)} are more than a preview reads ({format_size(MAX_PREVIEW_BYTES)}).", "warn")
        return Panel(format_size(size), [note, block], [("size", f"{size:,} bytes")], viewer=kind)
    try:
        blob = payload(row, ext)
    except TarvizError as error:
        text = redact(f"{error.code}: {error.message}")
        return Panel(text, [Note(text, "bad")], viewer="bytes")
    return viewers.view(blob, meta, as_=as_)


def part(row: Row, ext: str, start: int, length: int) -> bytes:
    """Bytes `start`…`start + length` of a payload, fewer at its end. Sparse members are read whole."""
    at = row.member(ext)
    size = int(row.segment.members.size[at])
    length = max(0, min(length, size - start))
    if start < 0 or not length:
        return b""
    if at in row.segment.members.sparse:
        return payload(row, ext)[start : start + length]
    return row.shard.read(int(row.segment.members.data[at]) + start, length)


def mime(row: Row, ext: str) -> str:
    """The type under which a page plays a field; `application/octet-stream` for what is no sound and no film."""
    blob = part(row, ext, 0, 64)
    last = ext.rpartition(".")[2]
    known = {"wav": "audio/wav", "flac": "audio/flac", "mp3": "audio/mpeg", "ogg": "audio/ogg", "oga": "audio/ogg", "opus": "audio/ogg"}
    known |= {"m4a": "audio/mp4", "mp4": "video/mp4", "m4v": "video/mp4", "mov": "video/mp4", "webm": "video/webm", "mkv": "video/webm"}
    return known.get(last, "video/mp4" if blob[4:8] == b"ftyp" else "application/octet-stream")


def example(row: Row) -> tuple[dict[str, Any], list[Buffer]]:
    """The record as `tf.train.Example`: its features, and the bytes as TFRecord frames them (first 4 kB)."""
    from tarviz.formats import example as examples
    from tarviz.formats.tfrecord import masked_crc32c

    if sum(row.sizes.values()) > MAX_PREVIEW_BYTES:
        raise LimitError("The record is too large for a preview of its Example.")
    record: dict[str, Any] = {"__key__": row.key}
    broken = []
    for ext, blob in zip(row.sizes, payloads([Want(row, ext) for ext in row.sizes]), strict=True):
        if isinstance(blob, TarvizError):
            raise blob
        record[ext] = blob
    types: dict[str, str] = {}
    while True:
        try:
            data = examples.encode(record, types)
            break
        except TarvizError as error:
            ext = error.member or ""
            if ext not in record or types.get(ext) == "bytes":
                raise
            types[ext] = "bytes"  # a field that is not what its name promises travels as bytes
            broken.append(f".{ext} as bytes: {error.message}")
    features = [_feature(name, kind, found) for name, (kind, found) in examples.features(data).items()]
    length = struct.pack("<Q", len(data))
    frame = [
        ["length", f"{len(data):,} bytes", length.hex(" ")],
        ["CRC of the length", "masked CRC32C", struct.pack("<I", masked_crc32c(length)).hex(" ")],
        ["example", f"{len(data):,} bytes", data[:16].hex(" ") + (" …" if len(data) > 16 else "")],
        ["CRC of the example", "masked CRC32C", struct.pack("<I", masked_crc32c(data)).hex(" ")],
    ]
    return {"features": features, "frame": frame, "size": len(data) + 16, "notes": [readable(note) for note in broken]}, [data[:4096]]


def _feature(name: str, kind: str | None, found: list[Any]) -> list[str]:
    if kind == "bytes":
        text = ", ".join(_bytes_text(value) for value in found[:4])
    else:
        text = ", ".join(str(value) for value in found[:16])
    return [readable(name), f"{kind or 'empty'}_list[{len(found)}]", text + (", …" if len(found) > 16 else "")]


def _bytes_text(value: bytes) -> str:
    head = value[:48]
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError:
        text = head[:16].hex(" ")
    else:
        text = repr(text) if text.isprintable() else head[:16].hex(" ")
    return text + (
        f" … ({len(value):,} bytes)" if len(value) > len(head) or (text.endswith(head[:16].hex(" ")) and len(value) > 16) else ""
    )


def header(row: Row, ext: str) -> tuple[dict[str, Any], list[Buffer]]:
    """The tar headers before a field: fields of each, PAX records, and the raw bytes."""
    at = row.member(ext)
    members = row.segment.members
    start, data = int(members.start[at]), int(members.data[at])
    raw = row.shard.read(start, min(data - start, 64 << 10))
    shown: list[list[str]] = [
        ["name", readable(members[at].name)],
        ["member begins", f"byte {start:,} (0x{start:x})"],
        ["payload", f"byte {data:,} (0x{data:x}), {int(members.size[at]):,} bytes"],
        ["member ends", f"byte {int(members.end[at]):,}"],
    ]
    place = 0
    while place + _HEADER <= len(raw):
        block = raw[place : place + _HEADER]
        shown += _header_fields(block)
        size = _octal(block[124:136]) or 0
        place += _HEADER
        if block[156:157] in b"xgLK" and block[156:157] != b"":
            body = raw[place : place + size]
            shown += (
                _pax(body)
                if block[156:157] in (b"x", b"g")
                else [["long name", readable(body.rstrip(b"\0").decode("utf-8", "backslashreplace"))]]
            )
            place += -(-size // _HEADER) * _HEADER
        else:
            break
    return {"rows": shown}, [raw[:4096]]


def digest(row: Row, ext: str) -> str:
    """SHA-256 of a payload, read in parts."""
    found = hashlib.sha256()
    size, at = row.sizes[ext], 0
    while at < size:
        piece = part(row, ext, at, 4 << 20)
        if not piece:
            break
        found.update(piece)
        at += len(piece)
    return found.hexdigest()


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")


def _octal(field: bytes) -> int | None:
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    try:
        return int(field.strip(b" \0") or b"0", 8)
    except ValueError:
        return None


def _header_fields(block: bytes) -> list[list[str]]:
    kind = _TYPES.get(block[156:157], f"type {block[156:157]!r}")
    numbers = {"mode": block[100:108], "uid": block[108:116], "gid": block[116:124], "size": block[124:136], "mtime": block[136:148]}
    rows = [["— header", kind], ["name field", readable(_text(block[:100]))]]
    for name, field in numbers.items():
        number = _octal(field)
        shown = "unreadable" if number is None else f"{number:o} (octal)" if name == "mode" else f"{number:,}"
        rows.append([name, f"{shown}   {_text(field)!r}"])
    magic = _text(block[257:263])
    rows += [
        ["checksum", _text(block[148:156])],
        ["format", "GNU" if block[257:265] == b"ustar  \0" else "ustar" if magic == "ustar" else "v7"],
    ]
    if link := _text(block[157:257]):
        rows.append(["link", readable(link)])
    owner = f"{_text(block[265:297])}:{_text(block[297:329])}".strip(":")
    return rows + ([["owner", readable(owner)]] if owner else [])


def _pax(body: bytes) -> list[list[str]]:
    """PAX records (`LENGTH KEY=VALUE\\n`), as far as they can be read."""
    rows: list[list[str]] = []
    while body and len(rows) < 100:
        digits, _, rest = body.partition(b" ")
        if not digits.isdigit() or len(digits) > 8 or int(digits) <= len(digits) + 1 or int(digits) > len(body):
            rows.append(["PAX", f"unreadable: {body[:60]!r}"])
            break
        name, _, value = rest[: int(digits) - len(digits) - 2].partition(b"=")
        rows.append([f"PAX {readable(_text(name))}", readable(value.decode("utf-8", "backslashreplace"))[:500]])
        body = body[int(digits) :]
    return rows


def with_classes(options: Mapping[str, Any], classes: Any, counts: Mapping[str, int] | None) -> dict[str, Any]:
    """What the host knows, added to what the reader wishes."""
    return {**({"classes": classes} if classes else {}), **({"histogram": counts} if counts else {}), **options}


def refresh(found: Panel, row: Row) -> Panel:
    """The panel with a remark where the record may lack a member."""
    if not row.pending:
        return found
    return replace(
        found,
        blocks=[Note("This record may be incomplete: its shard ends without an end mark or is damaged behind it.", "warn"), *found.blocks],
    )
