"""The map without any browser: where points lie, what a line around them chooses, colours, what is refused."""

from __future__ import annotations

import contextlib
import json
import math
import time

import numpy as np
import pytest

from tarviz.model.errors import UsageError
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.map import vectors
from tarviz.widgets.map.points import MapPoints
from tests.viewers.payloads import saved
from tests.widgets.browse.test_controller import ask, settle
from tests.widgets.conftest import png, tar

WAY_ROUND = [(-0.5, -0.5), (0.9, -0.7), (0.2, 0.1), (0.8, 0.9), (-0.6, 0.4)]


def winding(points, corners):
    """Which points lie inside, one point at a time, as a textbook does it."""
    found = []
    for x, y in points:
        inside = False
        for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
            if (y0 <= y < y1 or y1 <= y < y0) and x < x0 + (y - y0) * (x1 - x0) / (y1 - y0):
                inside = not inside
        found.append(inside)
    return found


def embedded(tmp_path, count=90):
    """Records in three clouds: an embedding, its class, a picture, numbers; every tenth has no embedding."""
    draw = np.random.default_rng(5)
    centres = draw.normal(size=(3, 16)) * 6
    found = []
    for at in range(count):
        fields = {"png": png((at % 3 * 100, 50, 200 - at % 3 * 90)), "cls": str(at % 3).encode()}
        tree = {"w": at, "h": at * at, "name": f"n{at % 2}".ljust(99, "x"), "score": at / 7, "even": at % 2 == 0, "list": [at]}
        fields["json"] = json.dumps(tree).encode()
        if at % 10:
            fields["emb.npy"] = saved((centres[at % 3] + draw.normal(size=16)).astype(np.float32))
        found.append((f"k{at:04d}", fields))
    return [tar(tmp_path / "a.tar", found[: count // 2]), tar(tmp_path / "b.tar", found[count // 2 :])]


@pytest.fixture
def browser(tmp_path):
    with contextlib.closing(settle(Browser(embedded(tmp_path), cache=False))) as found:
        yield found


def points_of(browser, **spec):
    """The answer of a map when it is made."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        message, buffers = ask(browser, "map_points", **spec)
        if "making" not in message:
            return message, [np.frombuffer(buffer, np.float32).reshape(-1, 2) for buffer in buffers]
    raise AssertionError(f"the map is not made: {message}")


def colours_of(browser, column):
    """The colours of the points by a column, when it is made: the message, codes [n], palette [256, 3]."""
    while "making" in (reply := ask(browser, "map_colours", column=column))[0]:
        assert browser.shards.questions.wait(60)
    message, (codes, palette) = reply
    return message, np.frombuffer(codes, np.uint8), np.frombuffer(palette, np.uint8).reshape(256, 3)


class TestPoints:
    def test_a_line_chooses_what_lies_inside_it(self):
        places = np.random.default_rng(3).uniform(-1, 1, (5000, 2))
        points = MapPoints.of(np.arange(5000), places, ("x", "y"))

        assert winding(points.xy.tolist(), WAY_ROUND) == points.inside(WAY_ROUND).tolist()

    def test_a_line_that_crosses_itself_counts_by_even_and_odd(self):
        star = [(math.sin(at * 4 * math.pi / 5), math.cos(at * 4 * math.pi / 5)) for at in range(5)]
        points = MapPoints.of(np.arange(4), [[0, 0], [0, 0.8], [-1, -1], [1, 1]], ("x", "y"))

        assert [False, True, False, False] == points.inside(star).tolist()  # the middle is crossed twice

    def test_values_that_are_not_finite_have_no_place(self):
        points = MapPoints.of(np.arange(4), [[1, 2], [np.nan, 2], [3, np.inf], [5, 4]], ("x", "y"))

        assert [0, 3] == points.ids.tolist()
        assert [[-1, -1], [1, 1]] == points.xy.tolist()
        assert ((1, 2), (5, 4)) == (points.low, points.high)

    def test_an_axis_with_one_value_lies_in_the_middle(self):
        assert [[0, -1], [0, 1]] == MapPoints.of(np.arange(2), [[7, 1], [7, 2]], ("x", "y")).xy.tolist()

    def test_times_in_seconds_keep_their_differences(self):
        seconds = 1.7e9 + np.arange(1000)
        points = MapPoints.of(np.arange(1000), np.stack([seconds, seconds], axis=1), ("x", "y"))

        assert 1000 == len(np.unique(points.xy[:, 0]))

    @pytest.mark.parametrize("corners", [[], [(0, 0), (1, 1)], [(0, 0), (1, np.nan), (1, 1)], np.zeros((1001, 2))])
    def test_what_is_no_line_is_refused(self, corners):
        with pytest.raises(UsageError, match="A line around points has 3 to 1,000 corners"):
            MapPoints.of(np.arange(2), [[0, 0], [1, 1]], ("x", "y")).inside(corners)


class TestColumns:
    @pytest.fixture(autouse=True)
    def table(self):
        pytest.importorskip("duckdb", reason="a table needs DuckDB: pip install 'tarviz[table]'")

    def test_two_columns_are_the_values_of_the_records(self, browser):
        points = browser.map("json.w", "json.h")
        low, high = np.array(points.low), np.array(points.high)
        values = {browser.shards.rows.row(row).key: place for row, place in zip(points.ids.tolist(), points.xy.tolist(), strict=True)}

        assert ((0, 0), (89, 89 * 89)) == (points.low, points.high)
        for at in (0, 17, 44, 45, 89):
            assert np.allclose([at, at * at], low + (np.array(values[f"k{at:04d}"]) + 1) / 2 * (high - low), atol=1e-3)

    def test_places_come_as_one_buffer_of_float32_and_as_numbers_of_the_same_order(self, browser):
        message, (places,) = points_of(browser, x="json.w", y="json.h")

        assert 90 == message["count"] == len(places)
        assert ["json.w", "json.h"] == message["axes"]
        assert np.array_equal(browser.map("json.w", "json.h").xy, places)

    def test_records_that_lack_a_value_are_counted_and_not_drawn(self, browser):
        points = browser.map("json.w", "emb.npy.size")

        assert 81 == len(points)
        assert "9 records lack one of them" == points.note

    @pytest.mark.parametrize(
        ("column", "words"),
        [("json.name", "holds text; an axis needs numbers"), ("json.nosuch", "nosuch"), ("json", "an axis needs numbers")],
    )
    def test_a_column_without_numbers_is_refused_with_words(self, browser, column, words):
        reply = {"making": ""}
        while "making" in reply:
            reply, _ = ask(browser, "map_points", x=column, y="json.w")

        assert words in reply["msg"]
        with pytest.raises(UsageError):
            browser.map(column, "json.w")

    def test_a_lasso_shows_the_records_inside_it(self, browser):
        points = browser.map("json.w", "json.score")
        browser.session.search(area=[c for corner in WAY_ROUND for c in corner])
        settle(browser)

        expected = points.ids[winding(points.xy.tolist(), WAY_ROUND)]
        assert 0 < len(expected) < 90
        assert sorted(expected.tolist()) == browser.query.ids(0, 1000)

    def test_facets_follow_a_lasso(self, browser):
        browser.map("json.w", "json.score")
        half = [-1.1, -1.1, 0.5, -1.1, 0.5, 1.1, -1.1, 1.1]
        browser.session.search(area=half)
        settle(browser)
        facet, bars = browser.session.table.facet("cls", browser.query.number), {}
        while facet.get("making") or facet["all"]["records"] < 90:  # the shards come one by one
            facet = browser.session.table.facet("cls", browser.query.number)
        for row in browser.query.ids(0, 1000):
            number = int(browser.shards.rows.row(row).key[1:]) % 3
            bars[number] = bars.get(number, 0) + 1

        assert (90, 67) == (facet["all"]["records"], facet["kept"]["records"])
        assert sorted(bars.values()) == sorted(bar["kept"] for bar in facet["bars"])
        browser.session.search(area=half, where="cls = 1")
        settle(browser)
        assert 22 == browser.session.table.facet("json.w", browser.query.number)["kept"]["records"]

    def test_a_lasso_a_condition_a_shard_and_marks_hold_together(self, browser):
        browser.map("json.w", "json.score")
        half = [-1.1, -1.1, 0.5, -1.1, 0.5, 1.1, -1.1, 1.1]

        def keys(**wish):
            browser.session.search(**wish)
            settle(browser)
            return [browser.shards.rows.row(row).key for row in browser.query.ids(0, 1000)]

        assert [f"k{at:04d}" for at in range(67)] == keys(area=half)
        assert [f"k{at:04d}" for at in range(1, 67, 3)] == keys(area=half, where="cls = 1")
        assert [f"k{at:04d}" for at in range(45, 67)] == keys(area=half, shard=1)
        browser.session.mark(browser.query.ids(0, 1000)[::5])
        assert ["k0045", "k0050", "k0055", "k0060", "k0065"] == keys(area=half, only=True)
        assert [f"k{at:04d}" for at in reversed(range(67))] == keys(area=half, sort="label", label="json.w", descending=True)
        assert ["k0007"] == keys(area=half, where="k0007")
        assert 90 == len(keys())

    def test_what_shows_is_told_point_by_point(self, browser):
        points_of(browser, x="json.w", y="json.score")
        plain, nothing = ask(browser, "map_shown", query=browser.query.number)
        browser.session.search("cls = 2")
        settle(browser)
        message, (shown,) = ask(browser, "map_shown", query=browser.query.number)
        keys = [
            browser.shards.rows.row(row).key for row in browser.session.map.making.points.ids[np.frombuffer(shown, np.uint8) == 1].tolist()
        ]

        assert ({"shown": 90}, []) == (plain, nothing)
        assert 30 == message["shown"]
        assert sorted(keys) == [f"k{at:04d}" for at in range(2, 90, 3)]
        assert {"stale": True} == ask(browser, "map_shown", query=-5)[0]

    @pytest.mark.parametrize(
        ("column", "expected"),
        [
            ("cls", lambda n: str(n % 3)),
            ("json.name", lambda n: f"n{n % 2}".ljust(80, "x")),
            ("json.even", lambda n: "no" if n % 2 else "yes"),
        ],
        ids=["cls", "text", "boolean"],
    )
    def test_groups_have_colours_and_counts(self, browser, column, expected):
        points_of(browser, x="json.w", y="json.score")
        message, codes, palette = colours_of(browser, column)
        name = {entry["code"]: entry["name"] for entry in message["legend"]}
        at = [int(browser.shards.rows.row(row).key[1:]) for row in browser.session.map.making.points.ids.tolist()]

        assert list(map(expected, at)) == [name[code] for code in codes.tolist()]
        assert 90 == sum(entry["count"] for entry in message["legend"])
        assert len(name) == len({tuple(palette[code]) for code in name})

    def test_numbers_have_a_palette_from_low_to_high(self, browser):
        points_of(browser, x="json.w", y="json.score")
        message, codes, _ = colours_of(browser, "json.h")
        at = np.array([int(browser.shards.rows.row(row).key[1:]) for row in browser.session.map.making.points.ids.tolist()])

        assert [] == message["legend"]
        assert 0 <= message["ends"][0] < message["ends"][1] <= 89 * 89
        assert (np.diff(codes[np.argsort(at)].astype(int)) >= 0).all()
        assert (1, 255) == (codes.min(), codes.max())

    @pytest.mark.matrix
    def test_a_column_that_was_not_made_is_made_first(self, browser):
        points_of(browser, x="json.w", y="json.score")
        assert browser.shards.questions.wait(60)
        first, _ = ask(browser, "map_colours", column="png.width")
        message, _, _ = colours_of(browser, "png.width")

        assert {"making": "reading png.width"} == first
        assert [{"code": 1, "name": "12", "count": 90}] == message["legend"]

    def test_the_record_of_a_point_comes_with_its_picture_and_its_place_in_the_grid(self, browser):
        points_of(browser, x="json.w", y="json.score")
        row = int(browser.session.map.making.points.ids[5])
        message, buffers = ask(browser, "map_record", at=5)

        assert browser.shards.rows.row(row).key == message["rows"][0]["key"]
        assert row == message["rows"][0]["id"]
        assert browser.query.position(row) == message["position"]
        assert len(buffers[message["rows"][0]["tile"]["buffer"]]) > 50
        assert "There is no point 90 of 90." == ask(browser, "map_record", at=90)[0]["msg"]

    def test_choices_name_fields_and_columns_that_hold_numbers(self, browser):
        assert browser.shards.questions.wait(60)
        found, _ = ask(browser, "map_choices")

        assert ["emb.npy", "png"] == [field["name"] for field in found["fields"]]
        names = [column["name"] for column in found["columns"]]
        assert "json.list" in browser.shards.questions.table.leaves
        assert not {"key", "shard", "n", "json.list", "png.phash", "cls.checksum"} & set(names)
        assert ("size", len(names)) == (names[0], len(set(names)))
        assert [name for name in names if name != "json.name"] == found["numeric"]
        assert "pca" == found["by"][0]


class TestVectors:
    def test_embeddings_lie_by_their_principal_components(self, browser):
        points = browser.map("emb.npy")
        at = np.array([int(browser.shards.rows.row(row).key[1:]) for row in points.ids.tolist()])
        middles = np.stack([points.xy[at % 3 == own].mean(axis=0) for own in range(3)])
        nearest = np.linalg.norm(points.xy[:, None] - middles, axis=2).argmin(axis=1)

        assert 81 == len(points)
        assert (nearest == at % 3).all()
        assert points.note.startswith("16 numbers, PCA, ")
        assert points.note.endswith("9 without the field")

    def test_pictures_lie_by_colour_and_shape(self, browser):
        points = browser.map("png")
        at = np.array([int(browser.shards.rows.row(row).key[1:]) for row in points.ids.tolist()])

        assert 90 == len(points)
        assert 3 == len(np.unique(points.xy.round(4), axis=0))
        assert all(1 == len(np.unique(points.xy[at % 3 == own].round(4), axis=0)) for own in range(3))
        assert points.note.startswith("colour and shape of the pictures")

    def test_embeddings_of_two_shapes_are_refused_with_both_and_their_keys(self, tmp_path):
        found = [("a", {"emb.npy": saved(np.zeros(4, np.float32))}), ("b", {"emb.npy": saved(np.zeros((2, 3), np.float32))})]
        closing = contextlib.closing(settle(Browser(tar(tmp_path / "x.tar", found), cache=False)))
        with closing as browser, pytest.raises(UsageError) as caught:
            browser.map("emb.npy")

        assert ".emb.npy holds arrays of different shapes: [4] in a, [2, 3] in b." == caught.value.message
        assert "A map needs vectors of one length." == caught.value.hint

    @pytest.mark.parametrize(
        ("payload", "words"),
        [
            (saved(np.array(["a", "b"])), "not a vector of numbers"),
            (saved(np.zeros((100, 100), np.float32)), "10,000 numbers: too long for a map"),
            (b"\x93NUMPYbroken", "No record has a .npy that can be read."),
        ],
    )
    def test_what_is_no_embedding_is_refused(self, tmp_path, payload, words):
        closing = contextlib.closing(settle(Browser(tar(tmp_path / "x.tar", [("a", {"npy": payload})]), cache=False)))
        with closing as browser, pytest.raises(UsageError, match=words):
            browser.map("npy")

    def test_damaged_and_missing_ones_are_passed_over_and_counted(self, tmp_path):
        draw = np.random.default_rng(0)
        found = [(f"k{at}", {"npy": saved(draw.normal(size=4)), "cls": b"1"}) for at in range(9)]
        found += [("x", {"npy": b"no"}), ("y", {"cls": b"1"}), ("z", {"npy": saved(np.array([1, np.nan, 1, 1]))})]
        with contextlib.closing(settle(Browser(tar(tmp_path / "x.tar", found), cache=False))) as browser:
            points = browser.map("npy")

        assert 9 == len(points)
        assert points.note.endswith("1 without the field, 2 unreadable")

    def test_of_many_pictures_some_at_even_steps_are_taken(self, browser, monkeypatch):
        monkeypatch.setattr(vectors, "MOST_PICTURES", 10)
        points = browser.map("png")

        assert 10 == len(points)
        assert points.note.endswith("10 records at even steps")
        assert {"k0000", "k0089"} <= {browser.shards.rows.row(row).key for row in points.ids.tolist()}

    def test_another_map_ends_the_one_that_is_being_made(self, browser):
        ask(browser, "map_points", x="png")
        first = browser.session.map.making
        points_of(browser, x="emb.npy")
        first.thread.join(10)

        assert first.stopped.is_set()
        assert not first.thread.is_alive()

    def test_without_a_map_nothing_is_inside(self, browser):
        assert "There is no map." == ask(browser, "search", area=[0, 0, 1, 0, 1, 1])[0]["msg"]
