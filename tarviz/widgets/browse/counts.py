"""Which fields the records have that were scanned."""

from __future__ import annotations

import numpy as np

from tarviz.widgets.browse.rows import Rows, Segment


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
    index = segment.index
    sums = np.add.reduceat(np.array([hash(f".{ext}") for ext in index.exts])[index.ext], index.rows[:-1])
    _, first, counts = np.unique(sums, return_index=True, return_counts=True)
    found: list[tuple[tuple[str, ...], int]] = []
    for record, count in sorted(zip(first.tolist(), counts.tolist(), strict=True)):
        members = index.ext[int(index.rows[record]) : int(index.rows[record + 1])].tolist()
        found.append((tuple(index.exts[code] for code in members), int(count)))
    segment.sets.extend(found)
    return found
