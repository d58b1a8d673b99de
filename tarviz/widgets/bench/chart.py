"""A bench as a picture: rates with their intervals, stages, and the sweep as a heat map. matplotlib draws it, in no window."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tarviz.widgets.bench.verdict import per_second

if TYPE_CHECKING:
    from tarviz.widgets.bench.result import BenchResult, TrialRow

BUDGET = 150_000
_SMALL, _LARGE = 8, 9  # points of letters
_INK, _SOFT, _MARK, _PEER = "#1b1d21", "#5b616b", "#1460b8", "#9aa4b2"
_COLOURS = ("#1460b8", "#c2661d", "#3f9a4f", "#8657b5", "#b3261e", "#0f8b8d", "#a08000", "#6b7280", "#d46ba3", "#4a5a9a")


def chart(result: BenchResult, line: list[tuple[float, float, float]] | None = None) -> bytes:
    """PNG of at most 150 kB; empty where matplotlib is not installed or nothing was measured. `line` is the rate over time."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return b""
    rows = [row for row in result.rows if row.kind != "stage" and math.isfinite(row.rate)]
    if not rows:
        return b""
    parts: list[Any] = [_draw_line] if line and len(line) > 2 and len(rows) == 1 else [_draw_rates]
    if result.stages():
        parts.append(_draw_stages)
    if grid(rows) is not None:
        parts.append(_draw_heat)
    height = 2.3 + 0.24 * max(len(rows), len(result.stages()), 4)
    for dots in (110, 84, 64):
        figure = Figure(figsize=(3.7 * len(parts) + 0.3, min(height, 9)), dpi=dots, layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        for axes, draw in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
            axes.tick_params(labelsize=_SMALL, colors=_SOFT)
            axes.spines[["top", "right"]].set_visible(False)
            axes.spines[["left", "bottom"]].set_color("#c7ccd4")
            draw(axes, result, rows, line or [])
        if result.verdict:
            text = "\n".join(textwrap.wrap(_plain(result.verdict), 34 * len(parts) + 10)[:4])
            figure.suptitle(text, fontsize=_LARGE, color=_INK, x=0.01, ha="left")
        out = io.BytesIO()
        figure.savefig(out, format="png")
        if len(out.getvalue()) <= BUDGET:
            break
    return out.getvalue()


def grid(rows: list[TrialRow]) -> tuple[list[Any], list[Any], dict[tuple[Any, Any], float]] | None:
    """Workers, batch sizes (or prefetch, where only that changes) and the rate of each pair; None where there is nothing to sweep."""
    swept = [row for row in rows if row.kind == "tarviz"]
    down_name = down_of(swept)
    across, down = (sorted({row.setting.get(name) for row in swept}, key=_order) for name in ("workers", down_name))
    if len(swept) < 3 or len(across) * len(down) < 3:
        return None
    best: dict[tuple[Any, Any], float] = {}
    for row in swept:
        place = row.setting.get("workers"), row.setting.get(down_name)
        best[place] = max(best.get(place, 0.0), row.rate)
    return across, down, best


def down_of(rows: Iterable[TrialRow]) -> str:
    """What stands at the side of the heat map: prefetch where only that changes beside workers, else batch."""
    swept = [row.setting for row in rows if row.kind == "tarviz"]
    several = {name: len({setting.get(name) for setting in swept}) > 1 for name in ("batch", "prefetch")}
    return "prefetch" if several["prefetch"] and not several["batch"] else "batch"


def _order(value: Any) -> float:
    return -1.0 if value is None else float(value)


def _bars(axes: Any, title: str, names: list[str], sizes: list[float], words: list[str], lift: float = 0.0, **style: Any) -> None:
    """Bars from the top down, each with a word at its end."""
    axes.barh(range(len(names)), sizes, height=0.62, **style)
    axes.set_yticks(range(len(names)), map(_plain, names))
    axes.invert_yaxis()
    top = max(sizes) or 1.0
    for at, (size, text) in enumerate(zip(sizes, words, strict=True)):
        axes.text(size + top * 0.02, at - lift, text, va="center", fontsize=7.5, color=_INK)
    axes.set_xlim(0, top * 1.22)
    axes.set_title(title, fontsize=_LARGE, loc="left", color=_INK)


def _draw_rates(axes: Any, _result: BenchResult, rows: list[TrialRow], _line: Any) -> None:
    rows = rows[:16]
    style = {"xerr": [row.margin if math.isfinite(row.margin) else 0.0 for row in rows], "ecolor": _SOFT, "error_kw": {"lw": 1}}
    style["color"] = [_PEER if row.kind == "peer" else _MARK for row in rows]
    rates = [row.rate for row in rows]
    _bars(axes, "records/s", [row.label for row in rows], rates, list(map(per_second, rates)), 0.36, **style)


def _draw_line(axes: Any, result: BenchResult, rows: list[TrialRow], line: list[tuple[float, float, float]]) -> None:
    axes.plot([point[0] for point in line], [point[1] for point in line], color=_MARK, lw=1.6)
    first = rows[0].mean("first_seconds")
    if math.isfinite(first):
        axes.axvline(first, color=_SOFT, lw=0.8, ls=":")
        axes.text(first, 0, " first batch", fontsize=_SMALL, color=_SOFT, va="bottom")
    axes.axhline(rows[0].rate, color=_SOFT, lw=0.8)
    axes.set_ylim(0)
    axes.set_xlim(0)
    axes.set_title(f"{per_second(rows[0].rate)} records/s", fontsize=_LARGE, loc="left", color=_INK)
    axes.set_xlabel("seconds", fontsize=_SMALL, color=_SOFT)


def _draw_stages(axes: Any, result: BenchResult, _rows: list[TrialRow], _line: Any) -> None:
    stages = result.stages()[:14]
    groups = list(dict.fromkeys(group for group, *_ in stages))
    colours = [_COLOURS[groups.index(group) % len(_COLOURS)] for group, *_ in stages]
    names, times = [name[:24] for _, name, _, _ in stages], [ms for _, _, ms, _ in stages]
    shares = [f"{share:.0%}".replace("%", " %") for *_, share in stages]
    _bars(axes, "ms a record, share of the thread's time", names, times, shares, color=colours)


def _draw_heat(axes: Any, result: BenchResult, rows: list[TrialRow], _line: Any) -> None:
    found = grid(rows)
    assert found is not None  # asked before it was put on the list
    across, down, rates = found
    table = [[rates.get((x, y), math.nan) for x in across] for y in down]
    axes.imshow(table, cmap="Blues", aspect="auto", vmin=0)
    top = max(rates.values())
    for y, line in enumerate(table):
        for x, rate in enumerate(line):
            if math.isfinite(rate):
                axes.text(x, y, per_second(rate), ha="center", va="center", fontsize=_SMALL, color="white" if rate > top * 0.6 else _INK)
    axes.set_xticks(range(len(across)), [str(each) for each in across])
    axes.set_yticks(range(len(down)), [str(each) for each in down])
    axes.set_xlabel("workers", fontsize=_SMALL, color=_SOFT)
    axes.set_ylabel(down_of(rows), fontsize=_SMALL, color=_SOFT)
    axes.set_title("records/s", fontsize=_LARGE, loc="left", color=_INK)


def _plain(text: str) -> str:
    """Text that matplotlib does not take for mathematics."""
    return text.replace("$", "\\$")
