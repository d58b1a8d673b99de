"""The map in a real browser: a line around points filters the grid, hover shows a picture, both painters draw, both themes."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tests.conftest import wait_until
from tests.widgets.map.test_map_answers import embedded, winding

pytestmark = pytest.mark.browser

COUNT = 240
MADE = "/ points/.test(document.querySelector('.tvz-map-note').textContent)"


@pytest.fixture
def mapped(tmp_path, open_page):
    """`mapped(of="emb.npy", painter="")`: the page with its map of a field or, for "columns", of json.w and json.score."""

    def make(of="emb.npy", painter="", **options):
        page = open_page(embedded(tmp_path, COUNT), width=1440, height=860, **options)
        button = page.tab.get_by_role("button", name="map", exact=True)
        # At once: the page keeps its own address there.
        button.evaluate("(button, hash) => { location.hash = hash; button.click(); }", f"painter={painter}")
        page.until("document.querySelector('.tvz-map-tools option[value=columns]')", 20)
        choose(page, "what the map is of", "columns" if of == "columns" else f"pca {of}")
        if of == "columns":
            choose(page, "across", "json.w")
            choose(page, "upward", "json.score")
            page.until("document.querySelector('.tvz-map-up').textContent.includes('json.score')")
        page.settled()  # the note may still be that of the map before
        page.until(MADE)
        page.still()
        return page

    return make


def making(page):
    """The map of the tab that shows one."""
    return next(session.map.making for session in page.controller._sessions.values() if session.map.making is not None)


def choose(page, name, value):
    page.tab.locator(f"select[aria-label='{name}']").select_option(value)


def circle(page, corners):
    """Draw a line through places (−1 … 1) with Shift held."""
    at = [spot(page, corner) for corner in corners]
    page.tab.keyboard.down("Shift")
    page.tab.mouse.move(*at[0])
    page.tab.mouse.down()
    for place in [*at[1:], at[0]]:
        page.tab.mouse.move(*place, steps=4)
    page.tab.mouse.up()
    page.tab.keyboard.up("Shift")


def spot(page, place):
    """The pixel of the page where a place of the map is drawn; 18 pixels are free around it at first."""
    box = page.tab.locator(".tvz-scatter").bounding_box()
    across, up = (box["width"] / 2 - 18) * float(place[0]), (box["height"] / 2 - 18) * float(place[1])
    return box["x"] + box["width"] / 2 + across, box["y"] + box["height"] / 2 - up


def inside(page, corners):
    points = making(page.page).points
    return int(sum(winding(points.xy.tolist(), corners)))


class TestLasso:
    def test_the_grid_shows_the_records_inside_the_line(self, mapped):
        page = mapped("columns")
        corners = [(-0.803, -0.903), (0.507, -0.703), (0.207, 0.107), (0.811, 0.903), (-0.607, 0.411)]
        circle(page, corners)
        page.until("document.querySelector('.tvz-picks .tvz-pick')")
        page.until("/ shown/.test(document.querySelector('.tvz-status').textContent)")

        expected = inside(page, corners)
        assert 20 < expected < 200
        assert f"{expected} shown" in page.status()
        assert expected == len(page.page.controller.query)

        page.until("document.querySelector('.tvz-tile:not(.tvz-waiting)')")
        page.tab.locator(".tvz-picks .tvz-pick").click()
        page.until(
            f"document.querySelector('.tvz-status').textContent.includes('scanned') && {COUNT} === {len(page.page.controller.shards.rows)}"
        )
        page.until("!/ shown/.test(document.querySelector('.tvz-status').textContent)")
        assert not page.errors

    def test_a_line_a_filter_and_what_is_in_view_hold_together(self, mapped):
        page = mapped("columns")
        circle(page, [(-1.04, -1.02), (0.0, -1.02), (0.0, 1.02), (-1.04, 1.02)])
        page.until("document.querySelector('.tvz-status').textContent.includes('120 shown')")
        page.tab.locator(".tvz-filter").fill("cls = 1")
        page.key("Enter")
        page.until("document.querySelector('.tvz-status').textContent.includes('40 shown')")
        page.tab.get_by_role("button", name="in view").click()
        page.until("document.querySelector('.tvz-status').textContent.includes('80 shown')")
        page.key("p")
        page.until("document.querySelector('.tvz-map').hidden && document.querySelector('.tvz-status').textContent.includes('80 shown')")
        assert not page.errors

    def test_the_button_draws_without_shift_and_a_click_opens_the_record(self, mapped):
        page = mapped("columns")
        page.tab.get_by_role("button", name="lasso").click()
        at = [spot(page, corner) for corner in ((-1.04, -1.02), (-0.503, -1.02), (-0.503, 1.02), (-1.04, 1.02))]
        page.tab.mouse.move(*at[0])
        page.tab.mouse.down()
        for place in at[1:]:
            page.tab.mouse.move(*place, steps=3)
        page.tab.mouse.up()
        page.until("document.querySelector('.tvz-status').textContent.includes('60 shown')")
        page.tab.get_by_role("button", name="lasso").click()
        points = making(page.page).points
        key = page.page.controller.shards.rows.row(int(points.ids[-1])).key
        page.tab.mouse.click(*spot(page, points.xy[-1]))
        page.until(f"document.querySelector('.tvz-pane h2')?.title === {key!r}")
        assert not page.errors


class TestPoints:
    @pytest.mark.parametrize("painter", ["canvas", "webgl"])
    def test_points_are_painted_where_they_lie(self, mapped, painter):
        page = mapped("emb.npy", painter)
        assert painter == page.tab.evaluate("document.querySelector('.tvz-map-points').getContext('2d') ? 'canvas' : 'webgl'")
        page.tab.mouse.move(5, 5)
        page.until("document.querySelector('.tvz-map-card').hidden")
        page.still()
        page.settled()
        points = making(page.page).points

        def all_seen():
            picture = Image.open(io.BytesIO(page.tab.screenshot())).convert("RGB")
            back, *drawn = [
                np.array(picture.getpixel([round(part) + more for part in spot(page, place)]))
                for place, more in [((-1.0, 1.02), 1), *((place, 0) for place in points.xy[::5])]
            ]
            return min(np.abs(colour - back).max() for colour in drawn) > 40

        wait_until(all_seen)  # a painter may be at work on the frame that comes next
        assert not page.errors

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_the_card_of_a_point_shows_its_picture_and_key(self, mapped, scheme):
        page = mapped("emb.npy", scheme=scheme)
        points = making(page.page).points
        page.tab.mouse.move(*spot(page, points.xy[3]))
        page.until("!document.querySelector('.tvz-map-card').hidden && document.querySelector('.tvz-map-card img')?.naturalWidth > 0")
        places = points.xy * [1, 1]
        near = {
            page.page.controller.shards.rows.row(int(points.ids[at])).key
            for at in np.flatnonzero(np.hypot(*(places - points.xy[3]).T) < 0.02)
        }

        assert page.tab.locator(".tvz-map-card .tvz-faint").inner_text() in near
        page.tab.mouse.move(5, 5)
        page.until("document.querySelector('.tvz-map-card').hidden")
        assert not page.errors

    def test_wheel_and_keys_move_the_view_and_the_axes_follow(self, mapped):
        page = mapped("columns")
        ends = "[...document.querySelectorAll('.tvz-map-axis:not(.tvz-map-up) span')].map(each => each.textContent).join(' ')"
        before = page.tab.evaluate(ends)
        page.tab.mouse.move(*spot(page, (0, 0)))
        page.tab.mouse.wheel(0, -600)
        page.until(f"{ends} !== {before!r}")
        low, _, high = page.tab.evaluate(ends).replace("−", "-").split(" ")
        assert 0 < float(low) < 119.5 < float(high) < 239
        page.tab.locator(".tvz-scatter").focus()
        page.key("+", "ArrowLeft", "-", "0")
        page.until(f"{ends} === {before!r}")
        assert not page.errors

    def test_colours_have_a_legend_and_follow_the_column(self, mapped):
        page = mapped("emb.npy")
        page.until("document.querySelectorAll('.tvz-map-entry').length === 3")
        choose(page, "colour of the points", "json.score")
        page.until("document.querySelector('.tvz-map-bar')")
        choose(page, "colour of the points", "")
        page.until("!document.querySelector('.tvz-map-legend').children.length")
        assert not page.errors

    def test_what_cannot_be_mapped_is_said_on_the_page(self, open_page, tmp_path):
        from tests.viewers.payloads import saved
        from tests.widgets.conftest import tar

        found = [(f"k{at}", {"emb.npy": saved(np.zeros(3 + at % 2, np.float32))}) for at in range(6)]
        page = open_page(tar(tmp_path / "x.tar", found))
        page.tab.get_by_role("button", name="map", exact=True).click()
        page.until("document.querySelector('.tvz-map-note').textContent.includes('arrays of different shapes: [3] in k0, [4] in k1')", 15)
        assert not page.errors

    def test_the_link_brings_the_map_back(self, mapped):
        page = mapped("emb.npy")
        page.until("location.hash.includes('map=on')")
        page.tab.reload()
        page.until("document.querySelector('.tvz-map') && !document.querySelector('.tvz-map').hidden", 15)
        page.until(MADE, 15)
        assert not page.elsewhere


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_bars_a_reader_of_the_map(mapped, scheme, axe):
    page = mapped("columns", scheme=scheme)

    assert [] == page.barred(axe)
