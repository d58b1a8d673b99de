"""Text of any kind, markup included: always shown as text, with line numbers, the first 64 kB."""

from __future__ import annotations

import codecs

from tarviz.model.errors import DataError, MissingPackageError
from tarviz.model.wording import plural
from tarviz.ops.values.payloads import decode_payload
from tarviz.viewers.panel import MAX_TEXT_BYTES, Meta, Note, Panel, Text

EXTENSIONS = (
    "txt", "text", "transcript", "caption", "md", "rst", "csv", "tsv", "html", "htm", "xml", "svg", "yaml", "yml", "toml",
    "ini", "log", "srt", "vtt", "py", "js", "css", "sh", "tex", "prompt", "url", "hocr", "alto", "label_2",
)  # fmt: skip
MAGIC = (b"<?xml", b"<!DOCTYPE", b"<html", b"<svg", b"\xef\xbb\xbf")


def decode_text(blob: memoryview, most: int = MAX_TEXT_BYTES) -> tuple[str, str]:
    """The text of the first `most` bytes, without a character that is cut there, and the encoding it was read in: UTF-8 (with or without
    BOM), UTF-16 by BOM, else Latin-1."""
    data = bytes(blob[:most])
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace"), "UTF-16"
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data, final=len(blob) <= most)
    except UnicodeDecodeError as error:
        return data.decode("latin-1"), f"not UTF-8 (byte {error.start}), read as Latin-1"
    return (text[1:], "UTF-8 with BOM") if text.startswith("\ufeff") else (text, "UTF-8")


def view(blob: memoryview, meta: Meta) -> Panel:
    text, encoding = decode_text(blob)
    lines = text.count("\n") + (not text.endswith("\n")) if text else 0
    cut = len(blob) > MAX_TEXT_BYTES
    svg = meta.ext.rpartition(".")[2] == "svg" or text.lstrip()[:200].lower().startswith("<svg")
    panel = Panel(
        f"{plural(len(text), 'character')}, {plural(lines, 'line')}{' (first 64 kB)' if cut else ''}",
        [Text(text, preview="image/svg+xml" if svg and not cut else "", data=blob if svg and not cut else b"")],
        [("encoding", encoding), ("lines", f"{lines}{'+' if cut else ''}")],
    )
    if meta.ext.rpartition(".")[2] in ("csv", "tsv"):
        _as_rows(blob, meta, panel)
    if cut:
        panel.blocks.append(Note(f"Cut: the first {MAX_TEXT_BYTES:,} of {len(blob):,} bytes are shown.", "warn"))
    return panel


def _as_rows(blob: memoryview, meta: Meta, panel: Panel) -> None:
    """A table before the text of it, as a chain decodes it; none where it cannot, nor without pyarrow: the text says all."""
    from tarviz.viewers.structured import table

    try:
        found, summary = table(decode_payload(meta.ext, blob))
    except (DataError, MissingPackageError):
        return
    panel.blocks.insert(0, found)
    panel.facts.append(("table", summary))


def tile(blob: memoryview, meta: Meta, size: int) -> str:
    return decode_text(blob, 800)[0].strip()[:200]
