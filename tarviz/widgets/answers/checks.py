"""Everything a browser can check: what cannot be decoded, exact and near duplicates; what is found becomes tags."""

from __future__ import annotations

from collections.abc import Callable

from tarviz import viewers
from tarviz.model.errors import TarvizError, redact
from tarviz.table import columns, findings
from tarviz.table.columns import Part
from tarviz.table.table import Table
from tarviz.widgets.browse.rows import Rows, Want, payloads
from tarviz.widgets.browse.status import key_of

BAD, DUPLICATE = "bad", "dup"
CLEAN = f"not is:{BAD} and not is:{DUPLICATE}"
_BY_TABLE = ("picture", "json", "text", "number", "bytes")  # what columns tell of, or what cannot be wrong
_AT_ONCE = 32


def check(rows: Rows, table: Table, say: Callable[[str], None]) -> dict[str, int]:
    """Tag what is wrong (`is:bad`) and what is there twice (`is:dup`); how many records have each. Reads every payload once or twice."""
    say("reading every payload")
    exts = table.fields
    compared = [ext for ext in exts if columns.kind(ext) in ("picture", "sound", "array", "bytes")] or exts  # pictures in any case
    pictures = [ext for ext in exts if columns.kind(ext) == "picture"]
    trees = [ext for ext in exts if columns.kind(ext) == "json"]
    table.make([Part("content", ext) for ext in compared])
    table.make([Part("value", ext) for ext in trees])
    for ext in pictures:
        say(f"tagging pictures that cannot be decoded: {ext}")
        table.tags.add(f'"{ext}.decodable" = false', BAD, f".{ext} cannot be decoded")
    for ext in trees:
        table.tags.add(f'"{ext}.bad" = true', BAD, f".{ext} is not JSON")
    for note, pairs in _others(rows, table, exts, say).items():
        table.tags.add(pairs, BAD, note)
    for ext in compared:
        say(f"comparing: {ext}")
        findings.exact(table, ext).tag(DUPLICATE)
    for ext in pictures:
        findings.near(table, ext).tag(DUPLICATE)
    counts = table.tags.counts()
    return {tag: counts.get(tag, 0) for tag in (BAD, DUPLICATE)}


def _others(rows: Rows, table: Table, exts: list[str], say: Callable[[str], None]) -> dict[str, list[tuple[str, str]]]:
    """Why records are bad that a scan or a viewer found so: note → (shard, key)."""
    found: dict[str, list[tuple[str, str]]] = {}
    for shard in rows.shards:
        for fault in shard.faults:
            if (key := key_of(fault)) and fault.code.startswith("E_"):
                found.setdefault(fault.code, []).append((redact(shard.url), key))
    wanted = [ext for ext in exts if columns.kind(ext) not in _BY_TABLE]
    total = len(rows) if wanted else 0
    for low in range(0, total, _AT_ONCE):
        say(f"decoding {', '.join(wanted)}: {low:,} of {total:,} records")
        there = [rows.row(one) for one in rows.ids(low, low + _AT_ONCE)]
        wants = [Want(row, ext) for row in there for ext in row.fields if ext in wanted]
        for want, blob in zip(wants, payloads(wants), strict=True):
            table.look()
            refused = blob if isinstance(blob, TarvizError) else viewers.refusal(blob, viewers.Meta(want.ext, want.row.key))
            if refused is not None:
                pair = redact(want.row.shard.url), want.row.key
                found.setdefault(f".{want.ext}: {refused.code}: {refused.message}"[:300], []).append(pair)
    return found
