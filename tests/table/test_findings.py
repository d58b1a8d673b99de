"""Duplicates, outliers, the label doctor, facets against SQL, tags, and what is handed on as a file."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image

import tarviz
from tarviz.model.errors import UsageError
from tarviz.table import findings
from tarviz.table.findings import exact, links, near, outliers, pairs
from tarviz.table.labels import confusion


def scene(seed: int, size: int = 120, quality: int = 92) -> bytes:
    draw = np.random.default_rng(seed)
    rough = Image.fromarray(draw.integers(0, 255, (9, 9, 3), np.uint8))
    out = io.BytesIO()
    rough.resize((240, 240), Image.Resampling.BICUBIC).resize((size, size)).save(out, "JPEG", quality=quality)
    return out.getvalue()


class TestDuplicates:
    def test_equal_bytes_are_exact_duplicates(self, make):
        table = tarviz.table(
            [make([("a", {"jpg": b"1"}), ("b", {"jpg": b"2"})]), make([("c", {"jpg": b"1"}), ("d", {"cls": b"1"})], "b.tar")]
        )
        found = exact(table, "jpg")

        assert [["a", "c"]] == [[member.key for member in group] for group in found.groups]
        assert 1 == found.tag()
        assert ["c"] == [row[0] for row in table.sql("SELECT key FROM records WHERE tag = 'dup'").fetchall()]
        assert 1 == len(table.rows("is:dup"))

    def test_other_sizes_and_qualities_of_a_picture_are_near_duplicates(self, make):
        content = [(f"p{at:03}", {"jpg": scene(at)}) for at in range(60)]
        planted = [(f"q{at:03}", {"jpg": scene(at, 90 + 10 * (at % 5), 60 + at)}) for at in range(0, 30, 3)]
        flat = [(f"z{at}", {"jpg": scene(0) if at == 9 else b"broken"}) for at in range(2)]

        found = near(tarviz.table(make([*content, *planted, *flat])), "jpg")

        assert [[f"p{at:03}", f"q{at:03}"] for at in range(0, 30, 3)] == [[each.key for each in group] for group in found.groups]

    @pytest.mark.parametrize("distance", [0, 1, 3, 6])
    def test_banded_pairs_are_those_of_comparing_all(self, distance):
        draw = np.random.default_rng(0)
        hashes = draw.integers(0, 2**64, 300, np.uint64)
        for at in range(100):
            hashes[200 + at] = hashes[at] ^ np.uint64(sum(1 << int(bit) for bit in draw.choice(64, at % 8, replace=False)))
        every = np.bitwise_count(hashes[:, None] ^ hashes[None, :])
        expected = {(a, b) for a, b in zip(*np.nonzero(every <= distance), strict=True) if a < b}

        assert expected == set(zip(*(part.tolist() for part in pairs(hashes, distance)), strict=True))

    def test_one_picture_that_is_there_very_often_makes_no_square(self):
        draw = np.random.default_rng(0)
        hashes, light = draw.integers(0, 2**64, 100_000, np.uint64), draw.uniform(0, 255, 100_000)
        hashes[::2], light[::2] = 0x0F0F0F0F0F0F0F0F, 77.0
        one, other = links(hashes, light)

        assert {0} == {a for a, b in zip(one.tolist(), other.tolist(), strict=True) if b % 2 == 0}
        assert 49_999 == int((other % 2 == 0).sum())

    def test_flat_pictures_say_too_little(self):
        assert 0 == len(pairs(np.zeros(1000, np.uint64))[0])

    def test_a_field_that_is_no_picture_is_refused(self, make):
        with pytest.raises(UsageError, match="not a picture"):
            near(tarviz.table(make([("a", {"cls": b"1"})])), "cls")

    def test_outliers_are_far_from_the_middle_half(self, make):
        content = [(f"k{at:02}", {"bin": bytes(100 + at)}) for at in range(40)] + [("far", {"bin": bytes(5000)})]
        table = tarviz.table(make(content))

        assert [40] == table.rows(outliers(table, "bin.size")).n.tolist()


class TestLabelDoctor:
    CONTENT = [
        (f"k{at}", {"cls": truth.encode(), "json": json.dumps({"pred": pred, "conf": conf}).encode()})
        for at, (truth, pred, conf) in enumerate(
            [("0", 0, 0.9), ("0", 1, 0.6), ("1", 1, 0.8), ("1", 0, 0.99), ("2", 2, 0.5), ("0", None, 1)]
        )
    ]

    def test_the_matrix_counts_labels_against_predictions(self, make):
        found = confusion(tarviz.table(make(self.CONTENT)))

        assert (["0", "1", "2"], [[1, 1, 0], [1, 1, 0], [0, 0, 1]]) == (found.labels, found.counts)
        assert 0.6 == found.accuracy
        assert "accuracy 0.6000" in str(found)

    def test_a_cell_is_a_condition_and_mistakes_are_ranked(self, make):
        table = tarviz.table(make(self.CONTENT))
        found = confusion(table)

        assert [3] == table.rows(found.cell("1", "0")).n.tolist()
        assert [3, 1] == found.mistakes("json.conf").n.tolist()
        assert [3] == confusion(table, where="cls = 1").mistakes("json.conf").n.tolist()


class TestFacets:
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
            ((records, there, distinct, low, high),) = table.fetched(
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


@pytest.mark.parametrize("name", ["keys.txt", "o.csv", "o.parquet"])
def test_what_is_chosen_is_handed_on_as_a_file(make, tmp_path, name):
    from tarviz.table.export import export

    path = make([(f"k{at}", {"cls": b"%d" % at, "json": b'{"w": [1]}'}) for at in range(4)])
    table = tarviz.table(path)

    assert 2 == export(table, tmp_path / name, "cls > 1")
    if name == "keys.txt":
        assert ["k2", "k3"] == [record.key for record in tarviz.records(path, keys=str(tmp_path / name))]
    with pytest.raises(UsageError, match="says no format"):
        export(table, tmp_path / "o.xls")


class TestClassesOfObjects:
    def test_each_class_has_a_bar_of_the_records_that_have_it(self, make):
        def boxes(*labels: str) -> bytes:
            found = [{"bbox": [1, 2, 3, 4], "label": label} for label in labels]
            return json.dumps({"image": {"width": 10, "height": 10}, "objects": found}).encode()

        held = [("star", "star"), ("star", "don't"), ("moon",), (), ("star",)]
        table = tarviz.table(make([(f"{at}", {"json": boxes(*labels), "cls": b"%d" % at}) for at, labels in enumerate(held)]))
        facet = table.facets("objects.label", "cls < 4")

        assert [("star", 3, 2), ("don't", 1, 1), ("moon", 1, 1)] == [(bar.label, bar.all, bar.kept) for bar in facet.bars]
        assert [3, 1, 1] == [len(table.rows(bar.where)) for bar in facet.bars]
        assert (5, 1, 3, 4, 1) == (facet.all.records, facet.all.missing, facet.all.distinct, facet.kept.records, facet.kept.missing)


def test_pairs_that_hang_together_in_any_order_are_one_group():
    one, other = np.array([0, 2, 1, 5]), np.array([1, 3, 3, 6])

    assert [[0, 1, 2, 3], [5, 6]] == findings._joined(one, other, 7)
