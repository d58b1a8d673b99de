"""Figures about many rows: how often each label comes, and which fields the records have."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

import numpy as np

from tarviz.query import expressions
from tarviz.widgets.browse.query import values
from tarviz.widgets.browse.scanned_records import Row, Rows, Segment


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often each value of a label comes: `counts` of the `sampled` records out of `total`, most frequent first."""

    label: str
    counts: list[tuple[str, int]]
    distinct: int
    sampled: int
    total: int


def histogram(rows: Rows, label: str, *, limit: int = 2000, seconds: float = 1.0, seed: int = 0) -> Histogram:
    """Values of `label` in up to `limit` of the known records, evenly spread (chosen at random within equal stretches).

    Of shards that are streamed only what is kept in memory is looked at, so that a histogram fetches nothing.
    """
    expression = expressions.parse_value(label)
    total = len(rows)
    share = random.Random(seed)
    places = range(total) if total <= limit else [int((at + share.random()) * total / limit) for at in range(limit)]
    counts: dict[str, int] = {}
    sampled = 0
    until = time.monotonic() + seconds
    chosen = [rows.row(row) for place in places for row in rows.ids(place, place + 1)]
    chosen = [row for row in chosen if (row.shard.local and not row.shard.compression) or _kept(row)]
    for low in range(0, len(chosen), 64):
        part = chosen[low : low + 64]
        for fields in values(part, expression):
            value = expression.value(fields)
            sampled += 1
            if value is not None and not isinstance(value, (dict, list)):
                text = str(value)[:200]
                counts[text] = counts.get(text, 0) + 1
        if time.monotonic() > until:
            break
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Histogram(label, ranked, len(counts), sampled, total)


def _kept(row: Row) -> bool:
    begin, end = int(row.segment.members.data[row.low]), int(row.segment.members.end[row.high - 1])
    return row.shard.holds(begin, end - begin)


def patterns(rows: Rows, *, limit: int = 24) -> tuple[dict[str, int], list[tuple[tuple[str, ...], int]]]:
    """Field → records that have it, and the sets of fields records have with how many have just these, most frequent first."""
    fields: dict[str, int] = {}
    sets: dict[tuple[str, ...], int] = {}
    for shard in rows.shards:
        for segment in list(shard.segments):
            for names, count in _sets(segment):
                sets[names] = sets.get(names, 0) + count
                for name in names:
                    fields[name] = fields.get(name, 0) + count
    ranked = sorted(sets.items(), key=lambda item: -item[1])
    return dict(sorted(fields.items(), key=lambda item: -item[1])), ranked[:limit]


def _sets(segment: Segment) -> list[tuple[tuple[str, ...], int]]:
    """The sets of fields in a segment and how many records have each, counted once."""
    if segment.sets or not len(segment):
        return segment.sets
    weights = [(0x9E3779B97F4A7C15 * (code + 1) ^ (code + 1) << 40) & (2**63 - 1) for code in range(len(segment.exts))]
    codes = np.add.reduceat(np.array(weights, np.uint64)[segment.ext[: int(segment.rows[-1])]], segment.rows[:-1])
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    found: list[tuple[tuple[str, ...], int]] = []
    for record, count in zip(first.tolist(), counts.tolist(), strict=True):
        members = segment.ext[int(segment.rows[record]) : int(segment.rows[record + 1])].tolist()
        found.append((tuple(segment.exts[code] for code in members), int(count)))
    segment.sets.extend(found)
    return found
