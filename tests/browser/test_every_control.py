"""Every button, every choice and every key of every widget, pressed once: none may throw, on a wide page and a narrow one."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz.widgets.bench.controller import BenchRun
from tarviz.widgets.browse.controller import Browser
from tarviz.widgets.compare.controller import Compare
from tests.browser import probes
from tests.viewers.payloads import saved, sound
from tests.widgets.conftest import png, tar

pytestmark = pytest.mark.browser

BROWSE_KEYS = [
    *"hjkl", "ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown", "Home", "End", "PageUp", "PageDown", "Enter", "+", "-", "Escape",
    "[", "]", *"123456789", "+", "-", "r", "Space", "m", "m", "y", "Y", "c", "i", "i", "p", "p", "?", "Escape",
    "g", "Escape", "/", "Escape",
]  # fmt: skip
COMPARE_KEYS = [
    "ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowRight", "ArrowRight", "ArrowRight",
    *"npabwxd", "+", "-", "0", "r", "R", "t", "l", "l", "y", "?", "Escape",
]  # fmt: skip
BENCH_KEYS = [*"p123ps1c", "?", "Escape"]


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """Two shards whose records have a field of every kind that has buttons of its own."""
    common = {"png": png((30, 90, 200), (60, 40)), "cls": b"3"}
    kinds = {
        **common,
        "json": json.dumps({"w": 60, "meta": {"src": ["a", "b"]}}).encode(),
        "txt": b"a word\n" * 9,
        "npy": saved(np.arange(4 * 8 * 8, dtype=np.float32).reshape(4, 8, 8)),
        "wav": sound(),
        "pkl": pickle.dumps({"a": [1]}),
        "txt.gz": gzip.compress(b"inside"),
        "bin": bytes(range(256)) * 20,
        "svg": b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
    }
    return [tar(tmp_path / f"s-{at}.tar", [(f"n{at}{n:02d}", kinds if n < 2 else common) for n in range(6)]) for at in range(2)]


def press_all(page: Any, pressed: list[str], limit: int = 160, within: str = ".tvz") -> None:
    """Click each control that shows, also those that earlier clicks brought; try every choice of the choosers. Adds names to `pressed`."""
    for _ in range(limit):
        name = page.tab.evaluate(probes.PRESS_NEXT, [pressed, within])
        if name is None:
            return
        pressed.append(name)
        page.settled()
        assert [] == page.errors, name
        assert [] == page.tab.evaluate(probes.NO_WORDS), name
        if page.tab.locator(".tvz-sheet").count():
            page.key("Escape")
    raise AssertionError(f"more than {limit} controls: {pressed}")


@pytest.mark.timeout(600)  # every control, at two widths
def test_browse(shards: list[Path], open_widget: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)  # "write" writes where the kernel runs
    for width in (1280, 520):
        page = open_widget(Browser(shards, cache=False), ".tvz-tile img", width=width)
        page.tab.locator(".tvz-tile").first.click()
        page.until("document.querySelector('.tvz-chip')")
        found: list[str] = []
        for at in range(page.tab.locator(".tvz-chip").count()):
            page.tab.locator(".tvz-chip").nth(at).click()
            page.until(f"document.querySelectorAll('.tvz-chip')[{at}].getAttribute('aria-selected') === 'true'")
            page.settled()
            for tab in ("Bytes", "tf.Example", "Tar header", "Value"):
                page.tab.get_by_role("tab", name=tab).click()
                page.settled()
        press_all(page, found, 400, within=".tvz-pane")  # first, while a record shows: a bar that is pressed may leave none
        press_all(page, found, 400)
        page.key("Escape", "Escape")
        boxes = page.tab.get_by_title("a tile for each box instead of each record (x)")
        if boxes.get_attribute("aria-pressed") == "true":
            boxes.click()
            page.settled()
        if page.tab.get_by_role("button", name="show all").is_visible():  # what was pressed fits no record
            page.tab.get_by_role("button", name="show all").click()
            page.until(
                "!document.querySelector('.tvz-filters')?.getClientRects().length || document.querySelector('.tvz-tile, .tvz-table')"
            )
        if not page.tab.locator(".tvz-pane").is_visible():  # the button for it was pressed
            page.tab.get_by_role("button", name="details", exact=True).click()
        if not page.tab.locator(".tvz-tile").first.is_visible():  # so was the one for the table
            page.tab.get_by_title("table or tiles (t)").click()
        page.tab.locator(".tvz-tile").first.click()
        page.until("document.querySelector('.tvz-chip')?.getClientRects().length")
        press_all(page, found, 400)
        assert {"copy as Python", "enlarge", "mark", "details", "?"} <= {name.split("|")[0] for name in found}, found
        assert any(name.startswith("save .") for name in found)
        page.tab.locator(".tvz-grid").focus()
        page.key(*BROWSE_KEYS)

        assert [] == page.errors
        assert [] == page.elsewhere


def test_copy_as_python_of_a_record(shards: list[Path], open_widget: Callable[..., Any]):
    page = open_widget(Browser(shards, cache=False), ".tvz-tile img")
    page.tab.locator(".tvz-tile").first.click()
    page.tab.locator(".tvz-pane-foot").get_by_role("button", name="copy as Python").click()
    page.until("document.querySelector('.tvz-status').innerText.includes('copied')")

    copied = page.tab.evaluate("navigator.clipboard.readText()")
    names: dict[str, Any] = {}
    exec(copied, names)
    assert "n000" == names["record"].key


def test_compare(shards: list[Path], open_widget: Callable[..., Any]):
    chains = {"small": "decode(png)|resize(png, (20, 30))|convert(png, float32)", "turned": "decode(png)|rotate(png)|flip(png)"}
    for width in (1280, 520):
        page = open_widget(Compare(shards, chains, records=2), ".tvz-ctile img", width=width)
        found: list[str] = []
        press_all(page, found)
        page.tab.locator(".tvz-ctile").first.click()
        page.key(*COMPARE_KEYS)

        assert len(found) > 8, found
        assert [] == page.errors
        assert [] == page.elsewhere


def test_bench(shards: list[Path], open_widget: Callable[..., Any]):
    for width in (1280, 520):
        page = open_widget(BenchRun(shards, "decode(png)|flip(png)", batch=2, seconds=1, workers=(0, 2)), ".tvz-bench", width=width)
        page.tab.locator(".tvz-bench").focus()
        page.key(*BENCH_KEYS)
        found: list[str] = []
        press_all(page, found)

        assert {"copy as JSON", "?"} <= {name.split("|")[0] for name in found}
        assert [] == page.errors
        assert [] == page.elsewhere
