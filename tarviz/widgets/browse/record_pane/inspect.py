"""The record inspector: a record's fields and panels, its `tf.train.Example` and TFRecord frame, its tar headers."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tarviz import viewers
from tarviz.model.config import format_size
from tarviz.model.errors import LimitError, TarvizError, redact
from tarviz.model.types import Buffer
from tarviz.viewers import Meta, Note, Panel
from tarviz.viewers.panel import MAX_PREVIEW_BYTES, readable
from tarviz.widgets.browse import python_calls
from tarviz.widgets.browse.rows import Row, Want, payloads

PART = 4 << 20  # bytes of a payload that are read at once


def describe(row: Row) -> dict[str, Any]:
    """A record without its payloads: key, place, and per field extension, size, offset and the kind of viewer."""
    members = row.index.members
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
        "python": f"import tarviz\nrecord = {python_calls.record(row.shard.url, row.record)}  # {row.key!r}",
    }


def payload(row: Row, ext: str) -> bytes:
    """One payload, whole. Raises what reading it met."""
    found = payloads([Want(row, ext)], limit=MAX_PREVIEW_BYTES)[0]
    if isinstance(found, TarvizError):
        raise found
    return found


def panel(row: Row, ext: str, options: Mapping[str, Any]) -> Panel:
    """The panel of a field that is there, with a remark where the record may lack a member."""
    found = _panel(row, ext, options)
    if not row.pending:
        return found
    note = Note("This record may be incomplete: its shard ends without an end mark or is damaged after it.", "warn")
    return replace(found, blocks=[note, *found.blocks])


def _panel(row: Row, ext: str, options: Mapping[str, Any]) -> Panel:
    """What is too large to be held is played or shown as bytes, in parts."""
    size = row.sizes[ext]
    if size > MAX_PREVIEW_BYTES:
        kind = viewers.choose(ext)
        block: Any = viewers.Video(mime(row, ext)) if kind == "video" else viewers.Hex()
        note = Note(f"{format_size(size)} are more than a preview reads ({format_size(MAX_PREVIEW_BYTES)}).", "warn")
        return Panel(format_size(size), [note, block], [("size", f"{size:,} bytes")], viewer=kind)
    try:
        blob = payload(row, ext)
    except TarvizError as error:
        text = redact(f"{error.code}: {error.message}")
        return Panel(text, [Note(text, "bad")], viewer="bytes")
    return viewers.view(blob, Meta(ext, row.key, row.shard.url, dict(options)))


def part(row: Row, ext: str, start: int, length: int) -> bytes:
    """Bytes `start`…`start + length` of a payload, fewer at its end. Sparse members are read whole."""
    at = row.member(ext)
    members = row.index.members
    length = max(0, min(length, int(members.size[at]) - start))
    if start < 0 or not length:
        return b""
    if at in members.sparse:
        return payload(row, ext)[start : start + length]
    return row.shard.read(int(members.data[at]) + start, length)


def mime(row: Row, ext: str) -> str:
    """The type under which a page plays a field; `application/octet-stream` for what is not sound and no film."""
    blob = part(row, ext, 0, 64)
    last = ext.rpartition(".")[2]
    known = {"wav": "audio/wav", "flac": "audio/flac", "mp3": "audio/mpeg", "ogg": "audio/ogg", "oga": "audio/ogg", "opus": "audio/ogg"}
    known |= {"m4a": "audio/mp4", "mp4": "video/mp4", "m4v": "video/mp4", "mov": "video/mp4", "webm": "video/webm", "mkv": "video/webm"}
    return known.get(last, "video/mp4" if blob[4:8] == b"ftyp" else "application/octet-stream")


def example(row: Row) -> tuple[dict[str, Any], list[Buffer]]:
    """The record as `tf.train.Example`: its features, and the bytes as TFRecord frames them (first 4 kB)."""
    from tarviz.formats import example as examples
    from tarviz.formats.tfrecord import FRAME, masked_crc32c

    if sum(row.sizes.values()) > MAX_PREVIEW_BYTES:
        raise LimitError("The record is too large for a preview of its Example.")
    record: dict[str, Any] = {"__key__": row.key}
    types: dict[str, str] = {}
    broken = []
    for ext, blob in zip(row.sizes, payloads([Want(row, ext) for ext in row.sizes]), strict=True):
        if isinstance(blob, TarvizError):
            raise blob
        record[ext] = blob
        try:
            examples.encode({ext: blob}, key=False)
        except TarvizError as error:  # not what its name promises: it travels as bytes
            types[ext] = "bytes"
            broken.append(f".{ext} as bytes: {error.message}")
    data = examples.encode(record, types)
    features = [
        [readable(name), f"{kind}_list[{len(found)}]", ", ".join(map(_bytes_text if kind == "bytes" else str, found))]
        for name, (kind, found) in examples.features(data).items()
    ]
    length = struct.pack("<Q", len(data))
    frame = [
        ["length", f"{len(data):,} bytes", length.hex(" ")],
        ["CRC of the length", "masked CRC32C", struct.pack("<I", masked_crc32c(length)).hex(" ")],
        ["example", f"{len(data):,} bytes", data[:16].hex(" ") + " …"],
        ["CRC of the example", "masked CRC32C", struct.pack("<I", masked_crc32c(data)).hex(" ")],
    ]
    return {"features": features, "frame": frame, "size": len(data) + FRAME, "notes": [readable(note) for note in broken]}, [data[:4096]]


def _bytes_text(value: bytes) -> str:
    text = value[:48].decode("utf-8", "surrogateescape")
    shown, most = (repr(text), 48) if text.isprintable() else (value[:16].hex(" "), 16)
    return shown + (f" … ({len(value):,} bytes)" if len(value) > most else "")


def digest(row: Row, ext: str) -> str:
    """SHA-256 of a payload, read in parts."""
    found = hashlib.sha256()
    for at in range(0, row.sizes[ext], PART):
        found.update(part(row, ext, at, PART))
    return found.hexdigest()
