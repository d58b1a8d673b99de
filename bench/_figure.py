"""What a figure is, and how it is measured."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench._pages import touch_free_memory

Prepare = Callable[[Path], Callable[[], float]]
SETTINGS = 6  # of a peer, at least, before a figure stands against it
_FINALISTS = 3  # of them, that are tried twice more


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    `prepare(data)` gets the folder of the data sets, does what is not to be timed, and returns the work: a function that
    returns how many units (records, bytes) it handled. `label` is shown. Of several, by the names of their settings, the one stands
    that is fastest here and now. A peer is tried in `SETTINGS` at least, or `few` says why in no more.
    """

    label: str
    prepare: Prepare | Mapping[str, Prepare]
    few: str = ""


ITSELF = "it is tarviz"


def sweep(way: Callable[..., Prepare], *settings: Mapping[str, Any]) -> dict[str, Prepare]:
    """`way` with every choice of one value from each of the settings, by the names of the values.

    >>> ways = sweep(lambda size, order: lambda data: lambda: size, {"1 MB": 1, "8 MB": 8}, {"in order": 0, "as they come": 1})
    >>> list(ways)
    ['1 MB, in order', '1 MB, as they come', '8 MB, in order', '8 MB, as they come']
    """
    choices = itertools.product(*(values.items() for values in settings))
    return {", ".join(name for name, _ in choice): way(*(value for _, value in choice)) for choice in choices}


@dataclass(frozen=True)
class Value:
    """A measured amount instead of a comparison: `measure(data)` returns it, in `unit`."""

    measure: Callable[[Path], float]
    unit: str


@dataclass(frozen=True)
class Figure:
    """A line of the table: what is measured, against what, and what is to be reached.

    For a comparison the figure is speed of `ours` ÷ speed of `peer`; `at_most` turns it to time ÷ time, on `clock`
    (`time.process_time`: CPU seconds of all threads of this process). `sets` names the data sets of `_data.py` it needs.
    """

    name: str
    what: str
    ours: Side | Value
    peer: Side | None = None
    at_least: float | None = None
    at_most: float | None = None
    sets: tuple[str, ...] = ()
    unit: str = "records"
    note: str = ""
    warm: bool = True
    rounds: int | None = None
    packages: tuple[str, ...] = field(default=())
    clock: Callable[[], float] = time.perf_counter

    @property
    def reach(self) -> str:
        """What is to be reached, as text."""
        unit = self.ours.unit if isinstance(self.ours, Value) else "×"
        space = " " if isinstance(self.ours, Value) else ""
        sign, bound = ("≥", self.at_least) if self.at_least is not None else ("≤", self.at_most or 0)
        return f"{sign} {amount(bound)}{space}{unit}"


def amount(value: float) -> str:
    """A number to three digits, as people write it.

    >>> amount(0.2304), amount(59.77), amount(271_903.0)
    ('0.23', '59.8', '272,000')
    """
    return f"{value:.3g}" if abs(value) < 1000 else f"{float(f'{value:.3g}'):,.0f}"


def _speed(work: Callable[[], float], clock: Callable[[], float], before: Callable[[], object]) -> float:
    gc.collect()
    before()
    begin = clock()
    units = work()
    if not units:
        raise RuntimeError("this side did no work")
    return units / (clock() - begin)


def _fastest_first(speeds: Mapping[str, float]) -> list[str]:
    return sorted(speeds, key=speeds.__getitem__, reverse=True)


def fastest(
    side: Side, data: Path, clock: Callable[[], float], before: Callable[[], object] = touch_free_memory
) -> tuple[Callable[[], float], dict[str, str]]:
    """The work of a side at its best settings, and what there is to say of them: all tried, which stands, which comes next, why one."""
    if not isinstance(side.prepare, Mapping):
        return side.prepare(data), {"few": side.few}
    works = {name: prepare(data) for name, prepare in side.prepare.items()}
    next(iter(works.values()))()  # what is imported is no setting's fault
    speeds = {name: _speed(work, clock, before) for name, work in works.items()}
    for name in _fastest_first(speeds)[:_FINALISTS]:
        speeds[name] = max(speeds[name], *(_speed(works[name], clock, before) for _ in range(2)))
    best, *others = _fastest_first(speeds)
    next_best = f"{others[0]}: {speeds[others[0]] / speeds[best]:.2f} of it" if others else ""
    return works[best], {"against": f"{side.label}: {best}", "runner_up": next_best, "tried": str(len(speeds))}


def measure(
    figure: Figure,
    data: Path,
    rounds: int,
    clock: Callable[[], float] | None = None,
    before: Callable[[], object] = touch_free_memory,
) -> dict[str, Any]:
    """The figure's line for `results.json`. `clock` in place of its own; `before` is called before each turn of a side, untimed."""
    clock = clock or figure.clock
    line: dict[str, Any] = {
        "name": figure.name,
        "what": figure.what,
        "against": figure.peer.label if figure.peer else "–",
        "reach": figure.reach,
        "note": figure.note,
    }
    if isinstance(figure.ours, Value):
        value = figure.ours.measure(data)
        shown = f"{amount(value)} {figure.ours.unit}"
    else:
        assert figure.peer is not None, figure.name
        ours, _ = fastest(figure.ours, data, clock, before)
        peer, settings = fastest(figure.peer, data, clock, before)
        line |= settings
        if figure.warm:
            ours(), peer()
        pairs = [(_speed(ours, clock, before), _speed(peer, clock, before)) for _ in range(figure.rounds or rounds)]
        ratios = [a / b if figure.at_most is None else b / a for a, b in pairs]
        value = statistics.median(ratios)
        shown = f"{value:.1f}×" if value >= 10 else f"{value:.2f}×"
        line["ours_per_second"] = statistics.median(a for a, _ in pairs)
        line["peer_per_second"] = statistics.median(b for _, b in pairs)
        line["unit"] = figure.unit
        line["ratios"] = [round(ratio, 3) for ratio in ratios]
    reached = value >= figure.at_least if figure.at_least is not None else value <= (figure.at_most or 0)
    return {**line, "value": value, "shown": shown, "reached": reached}
