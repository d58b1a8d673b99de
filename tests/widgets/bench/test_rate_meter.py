"""Figures of a run against a plain count, whatever comes when."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.widgets.bench.rate_meter import Figures, Meter, half_interval, line

STEPS = st.lists(st.tuples(st.integers(1, 400), st.integers(0, 9), st.integers(0, 5000)), max_size=60)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def metered(steps: list[tuple[int, int, int]], warmup: float = 0.0) -> Meter:
    """A meter that heard (64ths of a second since the one before, which floats hold exactly, records, bytes)."""
    clock = Clock()
    meter = Meter(clock, warmup)
    for gap, records, size in steps:
        clock.now += gap / 64
        meter.arrive(records, size)
    return meter


@given(STEPS, st.sampled_from([0.0, 0.3, 99.0]))
def test_the_figures_are_those_of_a_plain_count(steps: list[tuple[int, int, int]], warmup: float):
    times = np.cumsum([gap for gap, _, _ in steps]) / 64
    meter = metered(steps, warmup)
    found = meter.figures()

    assert (sum(r for _, r, _ in steps), sum(s for _, _, s in steps)) == (meter.records, meter.bytes)
    assert (times[-1] if steps else 0.0) == pytest.approx(meter.seconds)
    assert (times[-1] - times[0] if steps else 0.0) == pytest.approx(meter.behind_first)
    if not steps:
        assert found.to_dict() == Figures().to_dict()
        return
    assert (times[0], steps[0][1], meter.records) == (pytest.approx(found.first_seconds), found.first_records, found.total_records)
    if len(steps) == 1:
        assert (0, True) == (found.records, math.isnan(found.rate))
        return
    behind = sum(time <= times[0] + warmup for time in times) - 1
    begin = min(behind, len(steps) - 2)
    came, size = sum(r for _, r, _ in steps[begin + 1 :]), sum(s for _, _, s in steps[begin + 1 :])
    seconds = times[-1] - times[begin]
    assert (came, size) == (found.records, found.bytes)
    assert (seconds, came / seconds) == (pytest.approx(found.seconds), pytest.approx(found.rate))
    assert (size / seconds / 1e6 if size else math.nan) == pytest.approx(found.megabytes, nan_ok=True)
    gaps = [gap * 1000 / 64 for gap, _, _ in steps[begin + 1 :]]
    assert np.percentile(gaps, (50, 90, 99)) == pytest.approx([found.p50, found.p90, found.p99])
    assert math.isnan(found.margin) == (len(steps) - begin < 10)


@given(STEPS)
def test_marks_are_the_first_batch_and_then_twenty_a_second(steps: list[tuple[int, int, int]]):
    expected, at, records, size = [(0, 0, 0)], 0, 0, 0
    for number, (gap, more, payload) in enumerate(steps):
        at, records, size = at + gap, records + more, size + payload
        if number == 0 or at / 64 >= expected[-1][0] / 64 + 0.05:
            expected.append((at, records, size))

    assert [(at / 64, records, size) for at, records, size in expected] == metered(steps).marks


def test_the_margin_is_that_of_ten_parts_of_the_run():
    steps = [(1, 1 + (at // 30) % 2, 0) for at in range(301)]
    found = metered(steps).figures()
    times = np.arange(1, 302) / 64
    came = np.cumsum([records for _, records, _ in steps])
    edges = np.linspace(times[0], times[-1], 11)
    rates = np.diff(np.interp(edges, times, came)) / np.diff(edges)

    assert 2.26 * np.std(rates, ddof=1) / math.sqrt(10) == pytest.approx(found.margin, rel=0.05)


@pytest.mark.parametrize(
    ("values", "factor"), [([1.0, 2.0], 12.71), ([1.0, 2.0, 3.0], 4.30), (list(range(31)), 2.04), (list(range(60)), 2.04)]
)
def test_half_an_interval_is_by_students_t(values: list[float], factor: float):
    assert factor * np.std(values, ddof=1) / math.sqrt(len(values)) == pytest.approx(half_interval(values))


def test_a_point_of_the_line_looks_back_half_a_second():
    marks = [(0.0, 0, 0), *((1 + at / 10, 10 * at, 10**6 * at) for at in range(12))]
    points = line(marks)

    assert 11 == len(points)
    assert [(pytest.approx(100.0), pytest.approx(10.0))] * 11 == [point[1:] for point in points]
    slow = line([(0.0, 0, 0), (1.0, 0, 0), (1.4, 40, 0), (1.5, 50, 0), (2.0, 50, 0)])
    assert [(1.4, 100.0, 0.0), (1.5, 100.0, 0.0), (2.0, 0.0, 0.0)] == [tuple(round(n, 6) for n in point) for point in slow]
    assert [] == line([(0.0, 0, 0), (1.0, 5, 0)])


def test_what_is_not_known_is_none_and_comes_back():
    plain = Figures(rate=2.0, records=3).to_dict()

    assert (2.0, 3, None, 0.0) == (plain["rate"], plain["records"], plain["p50"], plain["seconds"])
    assert plain == Figures.of(plain).to_dict()
    assert math.isnan(Figures.of({"rate": 1.0}).records)
