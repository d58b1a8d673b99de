"""Draws `bench/growth.json`: four panels, for a light page and a dark one. `python docs/growth.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
INK = "#7d8590"  # read on white and on black
LINES = {
    "records": "#1f77b4",
    "index": "#e07b00",
    "convert": "#2a9d5c",
    "ls": "#b04fc4",
    "eager": "#1f77b4",
    "tf": "#e07b00",
    "torch": "#2a9d5c",
}
PANELS = {
    "records": ("Records of 100 bytes", "number of records", "seconds"),
    "shards": ("Shards of ten records", "number of shards", "seconds"),
    "size": ("Size of members", "bytes of a member", "seconds per GB"),
    "workers": ("Photos decoded, resized, in batches", "workers (on two cores)", "photos a second"),
}


def draw(measured: dict[str, Any], path: Path) -> None:
    """Save the panels as SVG, its background left out."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    style = {
        "svg.hashsalt": "tarviz",
        "font.size": 9,
        **{f"{part}.color": INK for part in ("text", "xtick", "ytick")},
        "axes.labelcolor": INK,
    }
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
        for axis, (name, (title, across, up)) in zip(axes.flat, PANELS.items(), strict=True):
            for line, points in measured[name]["lines"].items():
                axis.plot(*zip(*points, strict=True), marker="o", markersize=3.5, color=LINES[line], label=line)
            axis.set(title=title, xlabel=across, ylabel=up, xscale="log")
            if name == "workers":
                axis.set_xscale("log", base=2)
                axis.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
                axis.set_ylim(bottom=0)
            else:
                axis.set_yscale("log")
            axis.grid(color=INK, alpha=0.25, linewidth=0.6)
            axis.legend(frameon=False, labelcolor=INK)
            axis.set_facecolor("none")
            for spine in axis.spines.values():
                spine.set_color(INK)
        figure.savefig(path, transparent=True, metadata={"Date": None})
        pyplot.close(figure)


def main() -> None:
    measured = json.loads((ROOT / "bench" / "growth.json").read_text("utf-8"))
    draw(measured, ROOT / "docs" / "screenshots" / "growth.svg")


if __name__ == "__main__":
    main()
