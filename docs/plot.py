"""Draws the few figures of the README: how many times as fast as the peer that stands beside each. `docs/tables.py --write` saves it."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parent / "screenshots" / "figures.svg"
INK, FAST, SLOW = "#7d8590", "#2a9d5c", "#e07b00"  # read on white and on black
ROW, LEFT, RIGHT, WIDE = 40, 20, 64, 720
DECADES = (-1, 2)  # powers of ten at the left end and at the right


def place(times: float) -> float:
    """Where a ratio stands, in pixels from the left.

    >>> place(0.1), place(100)
    (20.0, 656.0)
    """
    first, last = DECADES
    return round(LEFT + (WIDE - LEFT - RIGHT) * (math.log10(times) - first) / (last - first), 1)


def _end(row: dict[str, Any]) -> float:
    """Where the bar of a row ends."""
    return place(min(max(row["value"], 10.0 ** DECADES[0]), 10.0 ** DECADES[1]))


def _covered(row: dict[str, Any], at: float) -> bool:
    """Whether the words beside a bar stand at this pixel."""
    begin = max(place(1), _end(row))
    return begin < at < begin + 10 + 8 * len(row["shown"])


def svg(rows: list[dict[str, Any]]) -> str:
    """The picture of those rows that are a ratio to a peer, the greatest first; no background of its own."""
    shown = sorted((row for row in rows if row["shown"].endswith("×")), key=lambda row: -row["value"])
    tall = ROW * len(shown) + 24
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{tall}" viewBox="0 0 {WIDE} {tall}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{INK}" role="img">',
        "<title>Times as fast as the peer, on a scale of powers of ten</title>",
    ]
    for power in range(DECADES[0], DECADES[1] + 1):
        at, dash = place(10.0**power), "" if power == 0 else ' stroke-dasharray="2 4"'
        beside = [ROW * number for number, row in enumerate(shown) if not _covered(row, at)]
        path = " ".join(f"M{at} {top + 18}V{top + 34}" for top in beside)  # beside the bars: across no words
        lines.append(f'<path d="{path}" stroke="{INK}" stroke-opacity=".4"{dash}/>')
        lines.append(f'<text x="{at}" y="{tall - 6}" text-anchor="middle">{10.0**power:g}×</text>')
    for number, row in enumerate(shown):
        one, at, top = place(1), _end(row), ROW * number
        colour = FAST if row["value"] >= 1 else SLOW
        lines.append(f'<text x="{LEFT}" y="{top + 13}">{escape(row["what"])} / {escape(row["against"])}</text>')
        lines.append(f'<rect x="{min(one, at)}" y="{top + 19}" width="{round(abs(at - one), 1)}" height="13" rx="2" fill="{colour}"/>')
        lines.append(f'<text x="{max(one, at) + 6}" y="{top + 30}" font-weight="600">{row["shown"]}</text>')
    return "\n".join([*lines, "</svg>", ""])
