"""The comparison in a real browser: tiles, keys, stage, new seeds, columns, errors in their tiles."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz.widgets.compare.controller import Compare
from tests.browser import probes
from tests.conftest import wait_until
from tests.widgets.conftest import png, tar

pytestmark = pytest.mark.browser

CHAINS = {
    "small": "decode(png)|resize(png, (20, 30))|convert(png, float32)",
    "turned": "decode(png)|rotate(png)|flip(png)",
    "bad": "decode(png)|random_crop(png, (99, 99))",
}


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    noise = np.random.default_rng(0)
    return tar(tmp_path / "a.tar", [(f"p/n{n}", {"png": png(tuple(noise.integers(0, 255, 3).tolist()), (60, 40))}) for n in range(6)])


@pytest.fixture
def page(shard: Path, open_widget: Callable[..., Any]) -> Any:
    return open_widget(Compare(shard, CHAINS, records=3), ".tvz-ctile img")


def at(page: Any) -> Any:
    return page.tab.evaluate("JSON.parse(document.querySelector('.tvz-ctile[aria-selected=true]').dataset.place)")


def begin(page: Any) -> None:
    """Stand on the first step of the first chain."""
    page.until("JSON.parse(document.querySelector('.tvz-ctile[aria-selected=true]').dataset.place).column === 1")
    page.tab.locator("""[data-place='{"record":0,"column":0,"step":0}']""").click()
    page.tab.focus(".tvz-strips")


def drawn(page: Any) -> list[int]:
    """How many different colours the stage shows at some points: 1 is an empty stage."""
    return page.tab.evaluate(
        """() => {
          const canvas = document.querySelector('.tvz-stage canvas');
          const pen = canvas.getContext('2d');
          const found = new Set();
          for (let x = 1; x < 8; x++) for (let y = 1; y < 8; y++) {
            found.add(String(pen.getImageData(canvas.width * x / 8, canvas.height * y / 8, 1, 1).data));
          }
          return [...found];
        }"""
    )


def test_every_step_of_every_chain_is_there(page: Any):
    page.until("document.querySelectorAll('.tvz-ctile').length === 3 * (1 + 3 + 3 + 2)")

    assert 3 == page.tab.locator(".tvz-heads tr").count()
    assert 3 == page.tab.locator(".tvz-ctile .tvz-refused").count()
    assert "E_SCHEMA" in page.tab.locator(".tvz-ctile .tvz-refused").first.inner_text()
    assert "every op ran once per record" in page.status()
    assert [] == page.elsewhere
    assert [] == page.errors


def test_the_first_view_is_where_the_first_two_chains_lead(page: Any):
    page.until("document.querySelector('.tvz-stage-b').textContent.includes('turned: flip')")

    assert "small: convert" in page.tab.locator(".tvz-stage-a").inner_text()
    assert {"record": 0, "column": 1, "step": 2} == at(page)


def test_a_and_b_are_chosen_by_the_mouse(page: Any):
    begin(page)
    for which, column, step, name in (("a", 0, 1, "small: resize"), ("b", 1, 1, "turned: rotate")):
        tile = page.tab.locator(f"""[data-place='{{"record":0,"column":{column},"step":{step}}}']""")
        tile.hover()
        tile.locator(f"[data-pin={which}]").click()
        page.until(f"document.querySelector('.tvz-stage-{which}').textContent.includes('{name}')")
    assert [] == page.errors


def test_a_and_b_are_offered_on_the_tile_at_hand_alone(page: Any):
    """The one that is selected and the one under the pointer: on others they would lie over what the tile says."""
    begin(page)
    offered = "[...document.querySelectorAll('.tvz-ctile')].filter((tile) => tile.querySelector('.tvz-pins').checkVisibility()).length"
    page.tab.locator(".tvz-stage").hover()
    page.until(f"{offered} === 1")
    page.tab.locator(".tvz-ctile .tvz-refused").first.hover()
    page.until(f"{offered} === 2")


def test_another_runner_is_chosen_from_one_menu_with_a_sentence(page: Any):
    choices = page.tab.get_by_label("run also as").locator("option").all_inner_texts()

    assert "run also as …" == choices[0]
    assert any(text.startswith("tf.data: as .tf() runs them") for text in choices)
    assert not [text for text in choices if "batch_" in text or "indexed" in text]


def test_arrows_move_and_the_stage_follows(page: Any):
    begin(page)
    assert {"record": 0, "column": 0, "step": 0} == at(page)
    page.key("ArrowRight", "ArrowRight", "ArrowDown")
    assert {"record": 0, "column": 1, "step": 2} == at(page)
    page.key("n")

    assert {"record": 1, "column": 1, "step": 2} == at(page)
    page.until("/turned: flip/.test(document.querySelector('.tvz-stage-b').textContent)")
    page.until("/largest|differ|no difference/.test(document.querySelector('.tvz-stage-words').textContent)")
    assert len(drawn(page)) > 1


def test_difference_wipe_and_blink(page: Any):
    begin(page)
    page.key("ArrowRight", "d")
    page.until("document.querySelector('.tvz-stage-modes [aria-pressed=true]').textContent === 'difference'")
    page.key("+", "+")
    assert "× 32" == page.tab.locator(".tvz-stage-modes button").last.inner_text()
    page.key("w")
    page.tab.focus(".tvz-stage-frame")
    page.key("ArrowLeft", "ArrowLeft")
    assert {"record": 0, "column": 0, "step": 1} == at(page)  # on the stage the arrows move the wipe
    page.tab.focus(".tvz-strips")
    page.key("ArrowDown")
    assert {"record": 0, "column": 1, "step": 1} == at(page)  # turned: not the picture before it
    page.until("/rotate/.test(document.querySelector('.tvz-stage-b').textContent)")
    page.until("/largest|differ/.test(document.querySelector('.tvz-stage-words').textContent)")
    page.key("x")
    page.until("document.querySelector('.tvz-stage-modes [aria-pressed=true]').textContent === 'blink'")
    shown = [drawn(page)]
    for _ in range(2):  # there and back
        wait_until(lambda: drawn(page) != shown[-1])
        shown.append(drawn(page))

    assert shown[0] == shown[2]
    assert [] == page.errors


def test_a_and_b_are_chosen_and_let_go(page: Any):
    begin(page)
    page.key("ArrowRight", "a", "ArrowDown", "b", "ArrowRight")

    assert "small: resize" in page.tab.locator(".tvz-stage-a").inner_text()
    assert "turned: rotate" in page.tab.locator(".tvz-stage-b").inner_text()
    page.key("ArrowLeft", "b", "ArrowRight")
    assert "turned: flip" in page.tab.locator(".tvz-stage-b").inner_text()


def test_a_new_seed_changes_its_chain_only(page: Any):
    steps = "[...document.querySelectorAll('.tvz-drawn')].map((one) => one.textContent)"
    before = page.tab.evaluate(steps)
    page.tab.locator(".tvz-heads .tvz-seed button").first.click()
    page.until("/seed 1/.test(document.querySelector('.tvz-heads').textContent)")
    page.until(f"JSON.stringify({steps}) !== {json.dumps(json.dumps(before, ensure_ascii=False, separators=(',', ':')))}")

    assert before != page.tab.evaluate(steps)
    assert 1 == page.tab.locator(".tvz-heads .tvz-seed button").count() - 1  # `bad` draws too, `small` does not


def test_last_steps_only(page: Any):
    page.tab.focus(".tvz-strips")
    page.key("l")
    page.until("document.querySelectorAll('.tvz-ctile').length === 3 * (1 + 3)")
    page.key("ArrowLeft", "ArrowDown")

    assert {"record": 1, "column": 0, "step": 2} == at(page)


def test_records_more(page: Any):
    page.tab.locator("button", has_text="+ record").click()
    page.until("document.querySelectorAll('.tvz-record').length === 4 && document.querySelector('.tvz-ctile[aria-selected=true]')")

    assert 3 == at(page)["record"]


def test_chains_are_copied_and_sorted(page: Any):
    begin(page)
    page.key("y")
    assert CHAINS["small"] == page.tab.evaluate("navigator.clipboard.readText()")
    page.key("t")
    assert "true" == page.tab.locator("button", has_text="fastest first").get_attribute("aria-pressed")
    page.key("?")
    assert "blink" in page.tab.locator("[role=dialog]").inner_text()
    page.key("Escape")
    assert 0 == page.tab.locator("[role=dialog]").count()


def test_nothing_a_record_says_becomes_markup(tmp_path: Path, open_widget: Callable[..., Any]):
    evil = "<img src=x onerror=alert(1)>"
    shard = tar(tmp_path / "a.tar", [(evil, {"txt": evil.encode(), "png": png()})])
    page = open_widget(Compare(shard, {evil: "decode(png)|keep(txt)"}, records=1), ".tvz-ctile")

    assert 0 == page.tab.locator("img[src=x]").count()
    assert evil in page.tab.locator(".tvz-record h3").inner_text()
    assert [] == page.errors


@pytest.mark.parametrize("width", [1280, 600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_looks(shard: Path, open_widget: Callable[..., Any], width: int, scheme: str):
    page = open_widget(Compare(shard, CHAINS, records=2), ".tvz-ctile img", width=width, scheme=scheme)
    page.still()

    assert [] == page.tab.evaluate(probes.CONTRAST)
    assert [] == page.tab.evaluate(probes.UNNAMED)
    assert [] == page.tab.evaluate(probes.STICKING_OUT)


ALONG = {
    "along": "decode(jpg)|carry(jpg, json)|resize(jpg, (60, 80))|rotate(jpg, 10)|flip(jpg, horizontal, 1)",
    "behind": "decode(jpg)|flip(jpg, horizontal, 1)",
}
INKED = """(selector) => [...document.querySelectorAll(selector)].filter((canvas) =>
  canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value)).length"""


@pytest.fixture
def boxed(tmp_path: Path) -> Path:
    boxes = {"annotations": [{"bbox": [10, 8, 20, 12], "category": "cat"}, {"bbox": [30, 20, 15, 15], "category": "dog"}]}
    fields = {"jpg": png((200, 120, 90), (60, 40)), "json": json.dumps(boxes).encode(), "seg.png": png((4, 4, 4), (60, 40))}
    return tar(tmp_path / "b.tar", [(f"n{n}", fields) for n in range(3)])


class TestOverlays:
    def test_boxes_lie_over_every_step_that_carries_them(self, boxed: Path, open_widget: Callable[..., Any]):
        page = open_widget(Compare(boxed, ALONG, records=2), ".tvz-ctile .tvz-over")
        page.until("document.querySelectorAll('.tvz-ctile .tvz-over').length === 2 * (1 + 5 + 1)")

        assert 14 == page.tab.evaluate(INKED, ".tvz-ctile .tvz-over")
        assert "json, seg.png stayed behind: carry(jpg, json, seg.png)" in page.tab.locator(".tvz-behind").all_inner_texts()
        assert [] == page.errors

    def test_they_are_switched_and_the_stage_names_them(self, boxed: Path, open_widget: Callable[..., Any]):
        page = open_widget(Compare(boxed, ALONG, records=1), ".tvz-ctile .tvz-over")
        page.until("document.querySelector('.tvz-stage .tvz-layers')")
        assert {"cat", "dog"} <= set(page.tab.locator(".tvz-stage .tvz-class span[dir]").all_inner_texts())
        page.tab.focus(".tvz-strips")
        page.key("o")
        page.until("!document.querySelector('.tvz-ctile .tvz-over') && !document.querySelector('.tvz-stage .tvz-layers')")
        page.key("o")
        page.until("document.querySelector('.tvz-ctile .tvz-over')")


class TestSliders:
    def test_a_number_moves_its_chain_which_is_copied(self, boxed: Path, open_widget: Callable[..., Any]):
        page = open_widget(Compare(boxed, ALONG, records=2), ".tvz-ctile .tvz-over")
        begin(page)
        page.key("s")
        slider = page.tab.locator("input[aria-label='rotate angle of along']")
        slider.focus()
        page.key("ArrowRight", "ArrowRight", "ArrowRight")
        page.until("/rotate\\(jpg, 13\\)/.test(document.querySelector('.tvz-heads').textContent)")
        page.until("[...document.querySelectorAll('.tvz-op')].some((one) => one.textContent === 'rotate(jpg, 13)')")
        page.tab.locator("button", has_text="copy chain").click()

        assert ALONG["along"].replace("10", "13") == page.tab.evaluate("navigator.clipboard.readText()")
        assert slider.evaluate("(one) => one.isConnected")  # it was not drawn anew while it was held
        assert [] == page.errors

    def test_an_op_that_refuses_says_why(self, boxed: Path, open_widget: Callable[..., Any]):
        page = open_widget(Compare(boxed, {"cut": "decode(jpg)|center_crop(jpg, (20, 20))"}, records=1), ".tvz-ctile img")
        page.tab.focus(".tvz-strips")
        page.key("s")
        page.tab.locator("input[aria-label='center_crop height of cut']").focus()
        page.key("End")
        page.until("/expects an image of at least/.test(document.querySelector('.tvz-ctile .tvz-refused')?.textContent)")
        page.key("Home")
        page.until("!document.querySelector('.tvz-ctile .tvz-refused')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_bars_a_reader(boxed: Path, open_widget: Callable[..., Any], axe: str, scheme: str):
    page = open_widget(Compare(boxed, ALONG, records=2), ".tvz-ctile .tvz-over", scheme=scheme)
    page.tab.focus(".tvz-strips")
    page.key("s")
    page.until("document.querySelector('.tvz-wheel')")

    assert [] == page.barred(axe)
    assert [] == page.tab.evaluate(probes.CONTRAST)


def test_twelve_chains_are_read_at_once(boxed: Path, open_widget: Callable[..., Any]):
    chains = {f"turned {angle}": f"decode(jpg)|carry(jpg, json)|rotate(jpg, {angle})" for angle in range(0, 60, 5)}
    page = open_widget(Compare(boxed, chains, records=2), ".tvz-ctile .tvz-over", width=1440, height=900)
    shown = """() => [...document.querySelectorAll('.tvz-heads tr')].filter((row) => {
      const [box, frame] = [row.getBoundingClientRect(), document.querySelector('.tvz-heads-box').getBoundingClientRect()];
      return box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1;
    }).length"""

    assert 12 == page.tab.evaluate(shown)
    assert [] == page.tab.evaluate(probes.STICKING_OUT)
