"""What a bench found, in a sentence: which stage is the limit, what more workers give, how peers compare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tarviz.model.wording import plural
from tarviz.runners.stage_timer import BATCH, CUT, DRAW, PICK, READ, SCAN
from tarviz.widgets.bench.stage_groups import Group

if TYPE_CHECKING:
    from tarviz.widgets.bench.result import TrialRow

_WORDS = {
    READ: "waiting for bytes",
    SCAN: "scanning headers",
    CUT: "cutting records",
    DRAW: "drawing random numbers",
    PICK: "picking fields",
    BATCH: "batching",
}
_BUSY = 0.8
_NOISY = 0.3
_NOTHING = 1.08  # a factor below this is called nothing: machines are noisy


def word(stage: str) -> str:
    """A stage as a sentence names it."""
    return _WORDS.get(stage, stage)


def verdict(rows: Sequence[TrialRow], groups: Sequence[Group], records: int, cores: int) -> tuple[str, str]:
    """The sentence, its first clause apart: ("decode is the limit", "8.1 of 9.6 ms per record; …")."""
    ours = [row for row in rows if row.kind != "peer" and row.kind != "stage" and math.isfinite(row.rate)]
    head, rest = _limit(groups, records, cores)
    if not ours:
        return head, rest
    best = max(ours, key=lambda row: row.rate)
    if not head:
        head, rest = _graph_limit(rows) or (f"{per_second(best.rate)} records/s", "")
    parts = [rest, *_workers(ours, cores), *_peers(rows, best)]
    if len(ours) > 1:
        parts.append(f"best: {best.label}, {per_second(best.rate)} records/s")
    if math.isfinite(best.margin) and best.margin > _NOISY * best.rate:
        parts.append(f"the rates vary by ±{best.margin / best.rate:.0%}: other work, or too short a run".replace("%", " %"))
    return head, "; ".join(part for part in parts if part)


def _limit(groups: Sequence[Group], records: int, cores: int) -> tuple[str, str]:
    top = max(groups, key=lambda group: group.share, default=None)
    if top is None or not records or not sum(top.busy.values()):
        return "", ""
    stage, seconds = max(top.busy.items(), key=lambda pair: pair[1])
    whole = sum(sum(group.busy.values()) for group in groups)
    cost = f"{_ms(seconds / records)} of {_ms(whole / records)} ms per record"
    main = groups[0]
    waits = main.busy.get(READ, 0.0) / main.capacity if main.capacity else 0.0
    reading = "" if stage == READ else f"reading waits {waits:.0%} of the time".replace("%", " %")
    if len(groups) == 1:
        return f"{word(stage)} is the limit", _join(cost, reading)
    busy = f"{top.name} busy {top.share:.0%} of the time".replace("%", " %")
    if top.share < _BUSY:
        return "no stage is busy all the time", _join(busy, f"most of it with {word(stage)}", cost, reading)
    if top is main:
        return f"{word(stage)} is the limit", _join(cost, f"{busy}: more workers do not help", reading)
    more = "more workers may help" if top.threads < cores else f"there are {cores} cores"
    return f"{word(stage)} is the limit", _join(cost, busy, more, reading)


def _graph_limit(rows: Sequence[TrialRow]) -> tuple[str, str] | None:
    """Which op the graph spends most on, by leaving ops out."""
    costs = graph_stages(rows)
    if not costs:
        return None
    stage, seconds = max(costs, key=lambda pair: pair[1])
    whole = sum(cost for _, cost in costs)
    return f"{stage} is the limit in the graph", f"{_ms(seconds)} of {_ms(whole)} ms per record, by leaving ops out"


def graph_stages(rows: Sequence[TrialRow]) -> list[tuple[str, float]]:
    """(stage, seconds a record) of the graph: what it takes more with an op than without. Of rows of kind `stage` and the one after."""
    known = [row for row in rows if row.kind == "stage" and math.isfinite(row.rate)]
    whole = next((row for row in rows if row.kind == "tarviz" and math.isfinite(row.rate)), None)
    if not known or whole is None:
        return []
    names = [*(row.label.removeprefix("up to ") for row in known), whole.last_op or "the last op"]
    times = [1 / row.rate for row in known] + [1 / whole.rate]
    return [(names[0], times[0])] + [(name, max(0.0, now - before)) for name, before, now in zip(names[1:], times, times[1:], strict=False)]


def _workers(rows: Sequence[TrialRow], cores: int) -> list[str]:
    """What more workers give, everything else equal."""
    plain = [row for row in rows if row.kind == "tarviz" and row.setting.get("workers") is not None]
    counts = sorted({row.setting["workers"] for row in plain})
    if len(counts) < 2:
        return []
    others = plain[0].setting
    same = {
        row.setting["workers"]: row.rate
        for row in plain
        if all(row.setting.get(name) == others.get(name) for name in ("batch", "prefetch"))
    }
    base = same.get(counts[0])
    if not base:
        return []
    words = []
    for count in counts[1:]:
        factor = same.get(count, math.nan) / base
        if math.isfinite(factor):
            gain = f"{factor:.1f}×" if factor >= _NOTHING or factor < 1 / _NOTHING else "nothing"
            words.append(f"{plural(count, 'worker')} give{'s' if count == 1 else ''} {gain}")
    return [f"{', '.join(words)} on {plural(cores, 'core')}"] if words else []


def _peers(rows: Sequence[TrialRow], best: TrialRow) -> list[str]:
    peers = [row for row in rows if row.kind == "peer" and math.isfinite(row.rate) and row.rate > 0]
    return [f"{best.rate / row.rate:.1f}× the rate of {row.label}" for row in peers]


def _join(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _ms(seconds: float) -> str:
    value = seconds * 1000
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def per_second(rate: float) -> str:
    """A rate as people read it.

    >>> per_second(123456.7), per_second(42.31)
    ('123,457', '42.3')
    """
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
