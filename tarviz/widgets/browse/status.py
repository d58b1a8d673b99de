"""What a browser says of its shards: one line, one message a shard, the faults, a summary as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from tarviz import stores
from tarviz.formats.records import split_name
from tarviz.model.config import format_size
from tarviz.model.errors import Fault, TarvizError, redact, safe
from tarviz.model.types import to_bytes, to_text
from tarviz.model.urls import base_name
from tarviz.model.wording import plural
from tarviz.stores.retry import waiting
from tarviz.viewers.panel import readable
from tarviz.widgets.browse.rows import Rows, ShardRows

_LOOKED_AT = 64
_WRONG = ("damaged", "missing", "unreachable")


def name(shard: ShardRows) -> str:
    """The last part of a shard's URL, without its query."""
    return readable(redact(base_name(shard.url.rstrip("/")))) or "stdin"


def shard_message(shard: ShardRows) -> dict[str, Any]:
    """A shard as a view lists it."""
    size = shard.stat.size if shard.stat is not None else None
    return {
        "number": shard.number,
        "name": name(shard),
        "url": readable(redact(shard.url)),
        "size": size,
        "count": shard.count,
        "state": shard.state,
        "compression": shard.compression,
        "faults": len(shard.faults),
        "stale": shard.stale,
        "trouble": trouble(shard),
        "share": min(1.0, shard.scanned / size) if size and not shard.compression else None,
    }


def trouble(shard: ShardRows) -> str:
    """What a far shard waits for, or why it was given up: host and cause. "" where it answers."""
    if shard.state == "unreachable" and shard.faults:
        return redact(safe(f"{shard.faults[-1].code}: {shard.faults[-1].message}"))[:400]
    found = "" if shard.local else waiting(shard.url)
    return f"{urlsplit(redact(shard.url)).netloc or name(shard)} does not answer: {safe(found)}" if found else ""


def faults(rows: Rows, limit: int = 60) -> list[dict[str, Any]]:
    """What scanning found wrong, the gravest first: errors before warnings."""
    found = [(shard.number, fault) for shard in rows.shards for fault in shard.faults]
    found.sort(key=lambda pair: not pair[1].code.startswith("E_"))
    return [
        {
            "code": fault.code,
            "shard": number,
            "offset": fault.offset,
            "key": readable(key_of(fault))[:1200],
            "message": redact(safe(fault.message))[:300],
        }
        for number, fault in found[:limit]
    ]


def key_of(fault: Fault) -> str:
    """The key of the record a fault is about, as far as its member's name tells."""
    cut = split_name(to_bytes(fault.member)) if fault.member and not fault.key else None
    return fault.key or (to_text(cut[0]) if cut else "")


def sentence(rows: Rows) -> str:
    """One line: how far the scan is, what is wrong, what can be done.

    For example: `scanned 4 of 4 shards · 120 records · 1 shard damaged`.
    """
    shards = rows.shards
    done = sum(shard.finished for shard in shards)
    count = sum(shard.count for shard in shards)
    about = "" if rows.finished else "≥ "
    parts = [f"scanned {done} of {len(shards)} shards" if len(shards) != 1 or not done else "scanned"]
    parts.append(f"{about}{plural(count, 'record')}")
    if any(shard.state == "paused" for shard in shards):
        parts.append("the rest is read when it is looked at")
    streamed = next((shard for shard in shards if shard.compression and not shard.finished), None)
    if streamed is not None:
        parts.append(f"{streamed.compression}: read from the front")
    wrong = _wrong(shards)
    if rows.finished and not count and not any(shard.state in _WRONG for shard in shards):
        wrong.append("nothing in here")
    return " · ".join(parts + wrong)


def _wrong(shards: Sequence[ShardRows]) -> list[str]:
    """What is wrong with shards: how many are so, what a far one waits for, which changed."""
    counts = {state: sum(shard.state == state for shard in shards) for state in _WRONG}
    parts = [f"{number} shard{'s' if number > 1 else ''} {state}" for state, number in counts.items() if number]
    parts += [text for shard in shards if (text := trouble(shard))][:1]
    if stale := [name(shard) for shard in shards if shard.stale]:
        parts.append(f"{stale[0]}{f' and {len(stale) - 1} more' if len(stale) > 1 else ''} changed since the scan: scan again")
    return parts


def notice_changes(rows: Rows) -> None:
    """Mark shards whose bytes are no longer the ones that were scanned (the first ones of this machine only)."""
    for shard in [one for one in rows.shards if one.finished and one.local][:_LOOKED_AT]:
        try:
            now = stores.of(shard.url).stat(shard.url)
            stale = shard.stat is None or now.etag != shard.stat.etag
        except TarvizError:
            stale = shard.stat is not None
        if stale != shard.stale:
            shard.stale = stale
            rows.touch(shard)


def summary(title: str, rows: Rows, fields: dict[str, int], keys: list[str]) -> str:
    """Some lines for where nothing can be drawn."""
    size = sum(shard.stat.size or 0 for shard in rows.shards if shard.stat is not None)
    lines = [f"tarviz browse {safe(title)}", f"{sentence(rows)} · {format_size(size)}"]
    if fields:
        lines.append("fields: " + ", ".join(f"{safe(ext)} {count:,}" for ext, count in list(fields.items())[:12]))
    if keys:
        lines.append("records: " + ", ".join(safe(key[:60]) for key in keys) + ", …")
    lines += [f"{fault['code']} {name(rows.shards[fault['shard']])}: {fault['message']}" for fault in faults(rows, 5)]
    return "\n".join(lines)
