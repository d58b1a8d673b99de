"""The picture of a bench: what each of its parts shows, and how it stays small."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="the picture of a bench needs matplotlib")

from matplotlib import figure as figures

from tarviz.widgets.bench import chart as charts
from tarviz.widgets.bench.chart import chart, down_of, grid
from tarviz.widgets.bench.rate_meter import Figures
from tarviz.widgets.bench.result import BenchResult, TrialRow
from tarviz.widgets.bench.stage_groups import Group


def row(label: str, rate: float, kind: str = "tarviz", margin: float = math.nan, **setting: Any) -> TrialRow:
    return TrialRow(label, kind, setting, runs=[Figures(rate=rate, margin=margin, first_seconds=0.25)])


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are saved, as matplotlib holds them."""
    found: list[Any] = []
    save = figures.Figure.savefig
    monkeypatch.setattr(figures.Figure, "savefig", lambda self, *args, **more: (found.append(self), save(self, *args, **more))[1])
    return found


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_rates_are_bars_from_the_top_with_their_margins_peers_in_grey(drawn: list[Any]):
    rows = [row("a $x$", 200.0, margin=20.0), row("b", 50.0, "peer"), row("none", math.nan), row("stage", 9.0, "stage")]
    assert chart(BenchResult({}, {}, rows)).startswith(b"\x89PNG")
    ((axes, *_),) = [figure.axes for figure in drawn]

    assert ("records/s", ["200", "50"], ["a \\$x\\$", "b"]) == (
        axes.get_title("left"),
        texts(axes),
        [each.get_text() for each in axes.get_yticklabels()],
    )
    assert [200.0, 50.0] == [bar.get_width() for bar in axes.patches]
    assert ["#1460b8", "#9aa4b2"] == ["#" + bytes(round(255 * part) for part in bar.get_facecolor()[:3]).hex() for bar in axes.patches]
    assert (0.0, 244.0) == axes.get_xlim()
    assert axes.yaxis_inverted()
    assert ["left", "bottom"] == [side for side, spine in axes.spines.items() if spine.get_visible()]
    assert [(204.0, -0.36), (54.0, 0.64)] == [text.get_position() for text in axes.texts]
    assert [[180.0, 220.0], [50.0, 50.0]] == [[point[0] for point in segment] for segment in axes.collections[0].get_segments()]


def test_a_run_alone_is_a_line_over_time(drawn: list[Any]):
    line = [(0.5, 90.0, 0.0), (1.0, 110.0, 0.0), (1.5, 100.0, 0.0)]
    chart(BenchResult({}, {}, [row("a", 100.0)]), line)
    ((axes,),) = [figure.axes for figure in drawn]

    assert ("100 records/s", "seconds", [" first batch"]) == (axes.get_title("left"), axes.get_xlabel(), texts(axes))
    assert [[0.5, 1.0, 1.5], [0.25, 0.25]] == [list(each.get_xdata()) for each in axes.lines[:2]]
    assert [[90.0, 110.0, 100.0], [100.0, 100.0]] == [list(axes.lines[at].get_ydata()) for at in (0, 2)]
    assert (0.0, 0.0) == (axes.get_xlim()[0], axes.get_ylim()[0])
    for more in ([row("a", 100.0), row("b", 50.0)], [row("a", 100.0)]):
        chart(BenchResult({}, {}, more), line if len(more) > 1 else line[:2])
        assert "records/s" == drawn[-1].axes[0].get_title("left"), "bars, where there are several or too few points"


def test_stages_and_a_sweep_have_parts_of_their_own(drawn: list[Any]):
    swept = [row(f"{w} {b}", 100.0 * (w + 1) + b, workers=w, batch=b) for w in (0, 1) for b in (8, 16)]
    groups = [Group("a", 1, 10.0, {"read": 1.0, "decode with a very long name indeed": 4.0}), Group("b", 2, 10.0, {"flip": 10.0})]
    chart(BenchResult({}, {}, swept, groups, 1000))
    _, stages, heat = drawn[0].axes

    assert "ms a record, share of the thread's time" == stages.get_title("left")
    assert [1.0, 4.0, 10.0] == [bar.get_width() for bar in stages.patches]
    assert ["10 %", "40 %", "50 %"] == texts(stages)
    assert ["read", "decode with a very long ", "flip"] == [each.get_text() for each in stages.get_yticklabels()]
    assert 2 == len({bar.get_facecolor() for bar in stages.patches})
    assert ("records/s", "workers", "batch") == (heat.get_title("left"), heat.get_xlabel(), heat.get_ylabel())
    assert [["0", "1"], ["8", "16"]] == [[each.get_text() for each in ticks] for ticks in (heat.get_xticklabels(), heat.get_yticklabels())]
    assert [[108.0, 208.0], [116.0, 216.0]] == heat.images[0].get_array().tolist()
    assert ["108", "208", "116", "216"] == texts(heat)
    assert ["#1b1d21", "white", "#1b1d21", "white"] == [text.get_color() for text in heat.texts]
    assert [(0, 0), (1, 0), (0, 1), (1, 1)] == [text.get_position() for text in heat.texts]


def test_it_is_drawn_coarser_until_it_is_small(drawn: list[Any], monkeypatch: pytest.MonkeyPatch):
    sizes = []
    for budget in (10**9, 0):
        monkeypatch.setattr(charts, "BUDGET", budget)
        drawn.clear()
        chart(BenchResult({}, {}, [row("a", 100.0)]))
        sizes.append([figure.dpi for figure in drawn])

    assert [[110], [110, 84, 64]] == sizes
    assert [4.0, 3.26] == [round(float(side), 2) for side in drawn[0].get_size_inches()]
    chart(BenchResult({}, {}, [row(str(at), 100.0) for at in range(99)]))
    assert 9.0 == drawn[-1].get_size_inches()[1]
    assert 16 == len(drawn[-1].axes[0].patches)


def test_nothing_measured_is_no_picture():
    assert b"" == chart(BenchResult({}, {}, [row("a", math.nan), row("b", 3.0, "stage")]))


class TestSweep:
    def test_the_best_of_each_pair(self):
        rows = [row("a", 5.0, workers=0, batch=8), row("b", 7.0, workers=0, batch=8), row("c", 9.0, workers=None, batch=8)]
        more = [*rows, row("d", 1.0, workers=2, batch=4), row("p", 99.0, "peer", workers=0, batch=8)]

        assert ([None, 0, 2], [4, 8], {(0, 8): 7.0, (None, 8): 9.0, (2, 4): 1.0}) == grid(more)

    def test_two_are_none(self):
        assert grid([row("a", 1.0, workers=0), row("b", 1.0, workers=1)]) is None
        assert grid([row("a", 1.0, workers=0), row("b", 1.0, workers=1), row("c", 1.0, workers=1)]) is None
        assert grid([row(str(at), 1.0, workers=at) for at in range(3)]) is not None

    @pytest.mark.parametrize(
        ("settings", "name"),
        [
            ([{"batch": 1, "prefetch": 1}, {"batch": 1, "prefetch": 2}], "prefetch"),
            ([{"batch": 1, "prefetch": 1}, {"batch": 2, "prefetch": 2}], "batch"),
            ([{"batch": 1, "prefetch": 1}, {"batch": 2, "prefetch": 1}], "batch"),
            ([{"batch": 1, "prefetch": 1}], "batch"),
        ],
    )
    def test_what_stands_at_its_side(self, settings: list[dict[str, int]], name: str):
        assert name == down_of([row("a", 1.0, **setting) for setting in settings])
        assert "batch" == down_of([row("a", 1.0, "peer", **setting) for setting in settings])
