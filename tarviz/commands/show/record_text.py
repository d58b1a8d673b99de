"""A record as lines of text."""

from __future__ import annotations

from tarviz.cli import verb_base
from tarviz.model.config import format_size
from tarviz.model.errors import redact, safe
from tarviz.model.types import Record

MAX_VALUE = 72  # characters of a value in a line


def record_text(record: Record, fields: frozenset[str] | None = None) -> str:
    """A record as lines of text: where it is, then a line for each field."""
    doubt = "  (may be incomplete)" if record.pending else ""
    head = f"{safe(redact(record.shard))}  record {record.index}  {safe(record.key)}{doubt}"
    rows = []
    for ext in shown_fields(record, fields):
        shows = summary(record, ext)
        rows.append(("", ext, format_size(len(record[ext])), shortened(shows, MAX_VALUE)))
    return f"{head}\n{verb_base.table(rows, right=[2])}" if rows else head


def summary(record: Record, ext: str) -> str:
    """What a field shows, in one line."""
    from tarviz import viewers

    panel = viewers.view(record[ext], viewers.Meta(ext, record.key, record.shard))
    written = next((block for block in panel.blocks if isinstance(block, viewers.Text)), None) if panel.viewer == "text" else None
    return " ".join(written.text[: 4 * MAX_VALUE].split()) if written else panel.summary


def shortened(text: str, length: int) -> str:
    """`text`, of `length` characters at most."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def shown_fields(record: Record, fields: frozenset[str] | None) -> list[str]:
    """The fields that are shown."""
    return [ext for ext in record if fields is None or ext in fields]
