"""The bench in a real browser: live line, stages, sweep, Stop, keys, what it asks and how often."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz.ops import Func
from tarviz.widgets.bench.controller import BenchRun
from tests.browser import probes
from tests.conftest import wait_until
from tests.widgets.conftest import png, tar

pytestmark = pytest.mark.browser


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    return tar(tmp_path / "a.tar", [(f"p/n{n:03d}", {"png": png((n, 30, 90), (60, 40)), "cls": b"1"}) for n in range(100)])


def line_length(page: Any) -> int:
    """Pixels of the line's colour on the canvas."""
    return page.tab.evaluate(
        """() => {
          const canvas = document.querySelector('.tvz-line');
          const pen = new OffscreenCanvas(1, 1).getContext('2d');
          pen.fillStyle = getComputedStyle(canvas).getPropertyValue('--tvz-line-1');
          pen.fillRect(0, 0, 1, 1);
          const [r, g, b] = pen.getImageData(0, 0, 1, 1).data;
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          let found = 0;
          for (let at = 0; at < data.length; at += 4) {
            found += data[at] === r && data[at + 1] === g && data[at + 2] === b && data[at + 3] > 200;
          }
          return found;
        }"""
    )


def test_it_runs_live_and_stop_keeps_what_there_is(shard: Path, open_widget: Callable[..., Any]):
    run = BenchRun(shard, "decode(png)|flip(png)", batch=4, seconds=6000, workers=(0, 2))
    page = open_widget(run, ".tvz-bench")
    asked: list[float] = []
    page.tab.on("request", lambda request: asked.append(1) if request.url.endswith("/rpc") else None)
    begin = page.tab.evaluate("performance.now()")
    wait_until(lambda: page.tab.evaluate(probes.FRAMES) and len(asked) >= 10)
    spent, count = (page.tab.evaluate("performance.now()") - begin) / 1000, len(asked)
    page.until("/is the limit|measuring/.test(document.querySelector('.tvz-verdict').textContent)")
    live = page.tab.locator(".tvz-verdict").inner_text()

    assert 10 <= count <= spent * 5 + 2  # with the answers, ten messages a second
    assert "is the limit" in live or "measuring" in live
    wait_until(lambda: line_length(page) > 100)
    page.tab.locator(".tvz-stop").click()
    page.until("document.querySelector('.tvz-stop').textContent === 'stopped'", 5)
    assert run.result.rows[0].rate > 0
    assert "stopped" in page.status()
    assert [] == page.elsewhere
    assert [] == page.errors


def test_stages_add_up_and_the_limit_is_named(shard: Path, open_widget: Callable[..., Any]):
    import time

    def slow(record: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.001)
        return record

    run = BenchRun(shard, ["decode(png)", Func(slow, output_types={"png": "uint8", "cls": "bytes"})], seconds=0.8, batch=8)
    page = open_widget(run, ".tvz-bench")
    page.until("document.querySelector('.tvz-stop').textContent === 'done'", 20)

    assert page.tab.locator(".tvz-verdict strong").inner_text() == "func is the limit"
    names = page.tab.locator(".tvz-stage-table tbody th").all_inner_texts()
    assert ["waiting for bytes", "scanning headers", "cutting records", "decode", "func", "picking fields", "batching"] == names


def test_a_sweep_is_a_heat_map(shard: Path, open_widget: Callable[..., Any]):
    run = BenchRun(shard, workers=(0, 1), batch=(4, 8), seconds=0.15)
    page = open_widget(run, ".tvz-bench")
    page.until("document.querySelector('.tvz-stop').textContent === 'done'", 20)

    assert 4 == page.tab.locator(".tvz-heat td").count()
    assert 1 <= page.tab.locator(".tvz-heat td.tvz-best").count()
    assert 4 == page.tab.locator(".tvz-rows tbody tr").count()


def test_keys(shard: Path, open_widget: Callable[..., Any]):
    run = BenchRun(shard, "decode(png)", seconds=60)
    page = open_widget(run, ".tvz-bench", width=600)
    page.tab.focus(".tvz-bench")
    page.key("2")
    assert page.tab.locator(".tvz-panel-stages").is_visible()
    assert not page.tab.locator(".tvz-panel-line").is_visible()
    page.key("3", "p")
    assert page.tab.locator(".tvz-panel-results").is_visible()
    page.key("s")
    page.until("document.querySelector('.tvz-stop').textContent === 'stopped'", 5)
    page.key("c")
    page.until("/copied/.test(document.querySelector('.tvz-status').textContent)")

    assert "stopped" == json.loads(page.tab.evaluate("navigator.clipboard.readText()"))["state"]


def test_a_trial_that_fails_says_why(shard: Path, open_widget: Callable[..., Any]):
    def boom(record: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("<b>no luck</b>")

    run = BenchRun(shard, [Func(boom, output_types={"png": "bytes", "cls": "bytes"})], seconds=1)
    page = open_widget(run, ".tvz-bench")
    page.until("document.querySelector('.tvz-error')", 10)

    assert "no luck" in page.tab.locator(".tvz-error").inner_text()
    assert 0 == page.tab.locator(".tvz-bench b", has_text="no luck").count()


@pytest.mark.parametrize("width", [1280, 600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_looks(shard: Path, open_widget: Callable[..., Any], width: int, scheme: str):
    run = BenchRun(shard, "decode(png)|flip(png)", workers=(0, 1), batch=(4, 8), seconds=0.2)
    run.wait(20)
    page = open_widget(run, ".tvz-bench", width=width, scheme=scheme)
    page.still()

    assert [] == page.tab.evaluate(probes.CONTRAST)
    assert [] == page.tab.evaluate(probes.UNNAMED)
    assert [] == page.tab.evaluate(probes.STICKING_OUT)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_headline_is_the_table_s_result_once_it_is_measured(shard: Path, open_widget: Callable[..., Any], scheme: str):
    run = BenchRun(shard, "decode(png)|flip(png)", batch=4, seconds=1.0)
    run.wait()
    page = open_widget(run, ".tvz-bench")
    page.tab.emulate_media(color_scheme=scheme)
    page.until("document.querySelector('.tvz-stop').textContent === 'done'")

    told = page.tab.locator(".tvz-line-key-1").inner_text()
    rate, spread = (page.tab.locator(f".tvz-rows tbody td:nth-of-type({number})").first.text_content() for number in (1, 2))
    assert f"{rate} records/s {spread}" == told


def test_it_runs_again_and_longer(shard: Path, open_widget: Callable[..., Any]):
    run = BenchRun(shard, "decode(png)", batch=4, seconds=0.2)
    page = open_widget(run, ".tvz-bench")
    for name, seconds in (("run again", 0.2), ("longer", 0.6)):
        before = run.result
        page.until("document.querySelector('.tvz-stop').textContent === 'done'")
        page.tab.get_by_role("button", name=name).click()
        wait_until(lambda before=before: run.result is not before and not run.running)
        page.until("document.querySelector('.tvz-stop').textContent === 'done'")
        assert abs(seconds - run.result.config["seconds"]) < 1e-6
        assert run.result.rows[0].rate > 0
