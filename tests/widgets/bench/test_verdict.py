"""The sentence of a bench, in every case it knows."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tarviz.widgets.bench.rate_meter import Figures
from tarviz.widgets.bench.result import TrialRow
from tarviz.widgets.bench.stage_groups import Group
from tarviz.widgets.bench.verdict import graph_stages, per_second, verdict, word


def row(rate: float, kind: str = "tarviz", label: str = "x", margin: float = 0.0, last_op: str = "", **setting: Any) -> TrialRow:
    return TrialRow(label, kind, setting, runs=[Figures(rate=rate, margin=margin)], last_op=last_op)


ONE = [Group("this thread", 1, 10.0, {"read": 4.0, "decode": 5.0})]


@pytest.mark.parametrize(
    ("rows", "groups", "records", "said"),
    [
        ([], ONE, 1000, ("decode is the limit", "5.0 of 9.0 ms per record, reading waits 40 % of the time")),
        (
            [],
            [Group("this thread", 1, 10.0, {"read": 6.0, "decode": 5.0})],
            1000,
            ("waiting for bytes is the limit", "6.0 of 11.0 ms per record"),
        ),
        ([], ONE, 0, ("", "")),
        ([], [Group("this thread", 1, 10.0, {"read": 0.0})], 5, ("", "")),
        ([row(50.0)], [], 0, ("50 records/s", "")),
        ([row(50.0), row(70.0, label="fast")], [], 0, ("70 records/s", "best: fast, 70 records/s")),
        ([row(50.0, margin=15.0)], [], 0, ("50 records/s", "")),
        ([row(50.0, margin=15.1)], [], 0, ("50 records/s", "the rates vary by ±30 %: other work, or too short a run")),
        ([row(math.nan), row(10.0, "peer")], [], 0, ("", "")),
        ([row(50.0), row(0.0, "peer"), row(math.nan, "peer"), row(20.0, "peer", "dali")], [], 0, ("50 records/s", "2.5× the rate of dali")),
        ([row(50.0, "iterable")], ONE, 100_000, ("decode is the limit", "0.050 of 0.090 ms per record, reading waits 40 % of the time")),
        ([row(50.0, "iterable")], ONE, 50_000, ("decode is the limit", "0.10 of 0.18 ms per record, reading waits 40 % of the time")),
        ([row(50.0, "iterable")], ONE, 5_000, ("decode is the limit", "1.0 of 1.8 ms per record, reading waits 40 % of the time")),
        (
            [row(50.0)],
            [Group("reading thread", 1, 10.0, {"scan": 9.0}), Group("2 workers", 2, 10.0, {"decode": 8.0})],
            1000,
            (
                "scanning headers is the limit",
                "9.0 of 17.0 ms per record, reading thread busy 90 % of the time: more workers do not help, reading waits 0 % of the time",
            ),
        ),
        (
            [row(50.0)],
            [Group("reading thread", 1, 10.0, {"read": 1.0}), Group("2 workers", 2, 10.0, {"decode": 16.0})],
            1000,
            (
                "decode is the limit",
                "16.0 of 17.0 ms per record, 2 workers busy 80 % of the time, there are 2 cores, reading waits 10 % of the time",
            ),
        ),
    ],
)  # fmt: skip
def test_what_is_said(rows: list[TrialRow], groups: list[Group], records: int, said: tuple[str, str]):
    assert said == verdict(rows, groups, records, 2)


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ({0: 100}, None),
        ({0: 100, 1: 108}, "1 worker gives 1.1× on 2 cores"),
        ({0: 100, 1: 107}, "1 worker gives nothing on 2 cores"),
        ({0: 100, 2: 92}, "2 workers give 0.9× on 2 cores"),
        ({0: 100, 2: 93}, "2 workers give nothing on 2 cores"),
        ({0: 100, 1: 200, 4: 400}, "1 worker gives 2.0×, 4 workers give 4.0× on 2 cores"),
        ({1: 0, 2: 50}, None),
        ({0: 100, 2: math.nan}, None),
    ],
)
def test_what_more_workers_give(rates: dict[int, float], words: str | None):
    rest = verdict([row(rate, workers=workers, batch=8) for workers, rate in rates.items()], [], 0, 2)[1]

    assert words in rest.split("; ") if words else "give" not in rest


def test_workers_are_compared_at_the_same_batch_and_prefetch_alone():
    rows = [row(100.0, workers=0, batch=8), row(900.0, workers=2, batch=9), row(150.0, workers=2, batch=8), row(3.0, workers=None)]

    assert "2 workers give 1.5× on 1 core" in verdict(rows, [], 0, 1)[1]
    assert "give" not in verdict([row(100.0, workers=0, batch=8), row(900.0, workers=2, batch=9)], [], 0, 1)[1]


def test_stages_of_a_graph_are_what_it_takes_more_with_each_op():
    stages = [row(500.0, "stage", "reading alone"), row(400.0, "stage", "up to decode(png)"), row(math.nan, "stage", "up to x")]

    assert [("reading alone", 0.002), ("decode(png)", 0.0005), ("flip", 0.0)] == [
        (name, pytest.approx(seconds)) for name, seconds in graph_stages([row(500.0, last_op="flip"), *stages])
    ]
    assert "the last op" == graph_stages([row(100.0), *stages])[-1][0]
    assert [] == graph_stages(stages) == graph_stages([row(500.0), row(300.0, "peer")]) == graph_stages([row(math.nan), *stages])


def test_rates_have_three_digits():
    assert ["99.9", "100", "0.0123", "1,234"] == [per_second(rate) for rate in (99.94, 100.0, 0.01234, 1234.4)]
    assert ["batching", "flip"] == [word("batch"), word("flip")]
