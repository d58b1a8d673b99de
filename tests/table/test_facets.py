"""Facets: figures and bars of tiny data sets, whole, and of random ones against SQL."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

import tarviz
from tarviz.model.errors import UsageError
from tarviz.table import facets
from tarviz.table.facets import Bar, Facet, Summary


def of_values(make, values: list[object], **more: object) -> tarviz.Table:
    records = [(f"k{at:03}", {"json": json.dumps({"v": value, **more}).encode()}) for at, value in enumerate(values)]
    return tarviz.table(make(records, f"{len(values)}.tar"))


def test_numbers_fall_into_bars_of_one_width(make):
    table = of_values(make, list(range(25)))
    edges = [0.0, 4.8, 9.6, 14.4, 19.2, 24.0]
    where = [f"n >= {low} and n {'<=' if high == 24 else '<'} {high}" for low, high in pairwise(edges)]
    labels = ["0 … 4.8", "4.8 … 9.6", "9.6 … 14.4", "14.4 … 19.2", "19.2 … 24"]
    bars = [Bar(labels[at], edges[at], edges[at + 1], 5, kept, where[at]) for at, kept in enumerate([5, 5, 1, 0, 0])]

    found = table.facets("n", "n <= 10", bins=5)

    assert Facet("n", "bigint", Summary(25, 0, 25, 0, 24, 12.0), Summary(11, 0, 11, 0, 10, 5.0), bars) == found
    assert Summary(0, 0, 0) == table.facets("n", "n > 99", bins=5).kept
    everything = table.facets("n", bins=5)
    assert everything.all == everything.kept
    assert [5] * 5 == [bar.kept for bar in everything.bars]


def test_20_numbers_have_a_bar_each_and_21_have_none(make):
    few, many = (of_values(make, list(range(count))) for count in (20, 21))

    assert [(str(at), at, at, 1, int(at < 3), f"n = {at}") for at in range(20)] == [
        (bar.label, bar.low, bar.high, bar.all, bar.kept, bar.where) for bar in few.facets("n", "n < 3").bars
    ]
    assert Summary(20, 0, 20, 0, 19, 9.5) == few.facets("n").all
    assert 30 == len(many.facets("n").bars)


def test_bars_of_skewed_numbers_grow_by_a_factor_and_choose_what_they_count(make):
    table = of_values(make, [*range(1, 26), 1_000_000])
    found = table.facets("json.v", bins=6)

    assert found.log
    assert [9, 16, 0, 0, 0, 1] == [bar.all for bar in found.bars] == [len(table.rows(bar.where)) for bar in found.bars]
    assert [1, 10, 100, 1000, 10_000, 100_000] == pytest.approx([bar.low for bar in found.bars])
    assert not of_values(make, [*range(-1, 25), 1_000_000]).facets("json.v", bins=6).log  # a logarithm of none
    assert not of_values(make, [*range(1, 26), 100]).facets("json.v", bins=6).log


def test_of_texts_the_most_frequent_have_a_bar(make):
    words = ["w00"] * 3 + ["w01"] * 2 + [f"w{at:02}" for at in range(2, 22)]
    table = of_values(make, [*words, None])
    bars = [Bar("w00", None, None, 3, 0, "json.v = 'w00'"), Bar("w01", None, None, 2, 1, "json.v = 'w01'")]
    bars += [Bar(word, None, None, 1, 1, f"json.v = '{word}'") for word in words[5:23]]

    found = table.facets("json.v", "n > 3")

    assert Facet("json.v", "varchar", Summary(26, 1, 22, "w00", "w21"), Summary(22, 1, 21, "w01", "w21"), bars, other=(2, 2)) == found


def test_truths_lists_and_what_is_missing_everywhere(make):
    table = of_values(make, [True, False, True], none=None, list=["a", "b"])

    assert Facet(
        "json.v",
        "boolean",
        Summary(3, 0, 2, False, True),
        Summary(1, 0, 1, False, False),
        [Bar("True", None, None, 2, 0, "json.v = true"), Bar("False", None, None, 1, 1, "json.v = false")],
    ) == table.facets("json.v", "n = 1")
    assert [("[a, b]", 3, 1, "as_text(json.list) = '[a, b]'")] == [
        (bar.label, bar.all, bar.kept, bar.where) for bar in table.facets("json.list", "n = 1").bars
    ]
    assert Facet("json.none", "varchar", Summary(3, 3, 0), Summary(1, 1, 0)) == table.facets("json.none", "n = 1")


def test_only_records_that_are_named_are_kept(make, monkeypatch):
    paths = [make([(f"{name}{at}", {"cls": b"%d" % at}) for at in range(3)], f"{name}.tar") for name in "ab"]
    table = tarviz.table(paths)
    among = [(table.urls[0], np.array([0, 2])), (table.urls[1], np.array([], np.int64))]

    assert [(0, 2, 1), (1, 2, 0), (2, 2, 1)] == [(bar.low, bar.all, bar.kept) for bar in table.facets("cls", among=among).bars]
    assert 1 == table.facets("cls", "cls > 0", among=among).kept.records
    assert 0 == table.facets("cls", among=among[1:]).kept.records
    monkeypatch.setattr(facets, "MOST_AMONG", 2)
    assert 2 == table.facets("cls", among=among).kept.records
    monkeypatch.setattr(facets, "MOST_AMONG", 1)
    with pytest.raises(UsageError, match="2 records cannot be named one by one; 1 can"):
        table.facets("cls", among=among)


class TestClassesOfObjects:
    @staticmethod
    def boxes(*labels: str) -> bytes:
        found = [{"bbox": [1, 2, 3, 4], "label": label} for label in labels]
        return json.dumps({"image": {"width": 10, "height": 10}, "objects": found}).encode()

    def test_each_class_has_a_bar_of_the_records_that_have_it(self, make):
        held = [("star", "star"), ("star", "don't"), ("moon",), (), ("star",)]
        table = tarviz.table(make([(f"{at}", {"json": self.boxes(*labels), "cls": b"%d" % at}) for at, labels in enumerate(held)]))
        bars = [
            Bar("star", None, None, 3, 2, "has_object('star')"),
            Bar("don't", None, None, 1, 1, "has_object('don''t')"),
            Bar("moon", None, None, 1, 1, "has_object('moon')"),
        ]

        found = table.facets("objects.label", "cls < 4")

        assert Facet("objects.label", "varchar", Summary(5, 1, 3), Summary(4, 1, 3), bars) == found
        assert [3, 1, 1] == [len(table.rows(bar.where)) for bar in found.bars]

    def test_rare_ones_are_counted_together(self, make):
        table = tarviz.table(make([(f"{at}", {"json": self.boxes(f"c{at:02}", "all")}) for at in range(25)]))
        found = table.facets("objects.label", "n > 20")

        assert ["all", *(f"c{at:02}" for at in range(19))] == [bar.label for bar in found.bars]
        assert (6, 4) == found.other


class TestOfRandomNumbers:
    @pytest.fixture
    def table(self, make):
        draw = np.random.default_rng(1)
        content = []
        for at in range(500):
            value = {"w": int(draw.integers(0, 90)), "f": float(draw.lognormal(0, 3)), "word": "abc"[at % 3], "ok": at % 2 == 0}
            content.append((f"k{at:03}", {"cls": b"%d" % (at % 7), "json": json.dumps(value if at % 9 else {}).encode()}))
        return tarviz.table(make(content))

    @pytest.mark.parametrize("column", ["json.w", "json.f", "json.word", "json.ok", "cls", "size", "key"])
    @pytest.mark.parametrize("where", ["", "cls = 3", "json.w > 40 and json.ok", "json.w > 1000"])
    def test_are_equal_to_sql(self, table, column, where):
        facet = table.facets(column, where)
        name, condition = table.expression(column), table.condition(where)

        for part, fits in ((facet.all, "true"), (facet.kept, condition)):
            ((records, there, distinct, low, high),) = table.fetch(
                f"SELECT count(*), count({name}), count(DISTINCT {name}), min({name}), max({name}) FROM records WHERE {fits}"
            )
            assert (records, records - there, distinct, low, high) == (part.records, part.missing, part.distinct, part.min, part.max)
        assert facet.all.records - facet.all.missing == sum(bar.all for bar in facet.bars) + facet.other[0]
        assert facet.kept.records - facet.kept.missing == sum(bar.kept for bar in facet.bars) + facet.other[1]

    @pytest.mark.parametrize("column", ["json.w", "json.f", "json.word", "cls"])
    def test_a_bar_chooses_what_it_counts(self, table, column):
        for bar in table.facets(column).bars:
            assert bar.all == len(table.rows(bar.where))

    def test_bars_of_skewed_numbers_grow_by_a_factor(self, table):
        assert table.facets("json.f").log
        assert not table.facets("json.w").log
