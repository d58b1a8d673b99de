"""A record as lines of text."""

from __future__ import annotations

import shutil

from tarviz.cli import verb_base
from tarviz.model.config import format_size
from tarviz.model.errors import redact, safe
from tarviz.model.types import Record

_LONGEST = 300  # characters of a value that are looked at


def record_text(record: Record, fields: frozenset[str] | None = None) -> str:
    """A record as lines of text: where it is, then a line for each field."""
    doubt = "  (may be incomplete)" if record.pending else ""
    head = f"{safe(redact(record.shard))}  record {record.index}  {safe(record.key)}{doubt}"
    sizes = {ext: format_size(len(record[ext])) for ext in shown_fields(record, fields)}
    if not sizes:
        return head
    beside = max(map(len, sizes)) + max(map(len, sizes.values())) + 6  # columns of the terminal that a value lacks
    room = max(shutil.get_terminal_size().columns - beside, 20)
    rows = [("", ext, size, shorten(summary(record, ext), room)) for ext, size in sizes.items()]
    return f"{head}\n{verb_base.table(rows, right=[2])}"


def summary(record: Record, ext: str) -> str:
    """What a field shows, in one line."""
    from tarviz import viewers

    panel = viewers.view(record[ext], viewers.Meta(ext, record.key, record.shard))
    written = next((block for block in panel.blocks if isinstance(block, viewers.Text)), None) if panel.viewer == "text" else None
    return " ".join(written.text[:_LONGEST].split()) if written else panel.summary


def shorten(text: str, length: int) -> str:
    """`text`, of `length` characters at most."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def shown_fields(record: Record, fields: frozenset[str] | None) -> list[str]:
    """The fields that are shown."""
    return [ext for ext in record if fields is None or ext in fields]
