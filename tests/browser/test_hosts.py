"""Every place of docs/hosts.md that has no file of its own: drawn, clicked, filtered, with nothing from elsewhere."""

from __future__ import annotations

import contextlib
import re

import pytest

from tarviz import samples
from tarviz.widgets.host import assets
from tests.browser.hosts import HOSTS, THEMES, vscode
from tests.conftest import wait_until

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is in the extra `test`")

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

PACKAGES = {"voila": "voila", "notebook": "notebook", "marimo": "marimo"}
NOISY = ("voila", "notebook")  # their own pages write errors to the console
FOREIGN = {"voila": r"mathjax|require|fontawesome"}  # what their own pages fetch from the network


@pytest.fixture
def context(chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 860})
    yield context
    context.close()


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    return samples.zoo(tmp_path_factory.mktemp("zoo"), kinds=["coco"], count=12)["coco"]


def frame_of(page):
    """Where the widget is: the page, or the frame that holds it."""
    found = []

    def look():
        with contextlib.suppress(playwright.Error):  # a frame may be replaced while it is asked
            found.extend(frame for frame in page.tab.frames if frame.locator(".tvz").count())
        return found

    wait_until(look, 90)
    return found[0]


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_draws_picks_and_filters(host, shard, context, tmp_path):
    if host in PACKAGES:
        pytest.importorskip(PACKAGES[host], reason=f"{host} is not installed (pip install {host})")
    with HOSTS[host](tmp_path, shard, context) as page:
        frame = frame_of(page)
        frame.locator(".tvz-tile img").nth(3).wait_for(timeout=90_000)
        frame.locator(".tvz-tile .tvz-over").nth(1).wait_for(state="attached")
        frame.locator(".tvz-tile").nth(2).click()
        frame.locator(".tvz-pane h2[title='val2017/000000000002']").wait_for()
        frame.locator(".tvz-filter").fill("json.image_id > 9")
        frame.locator(".tvz-status", has_text="2 of 12").wait_for()

        assert [] == [error for error in page.errors if host not in NOISY or "tvz" in error or "anywidget" in error]
        assert [] == [url for url in page.elsewhere if not FOREIGN.get(host) or not re.search(FOREIGN[host], url)]


@pytest.mark.parametrize("scheme", THEMES)
def test_colours_are_those_of_vs_code_and_nothing_is_evaluated(scheme, shard, context, tmp_path):
    with vscode(tmp_path, shard, context, scheme) as page:
        frame = frame_of(page)
        frame.locator(".tvz-tile img").first.wait_for()
        background, ink, colours = frame.evaluate(
            """() => {
              const { backgroundColor, color, colorScheme } = getComputedStyle(document.querySelector('.tvz'));
              const rgb = (name) => {
                const probe = Object.assign(document.createElement('i'), { style: `color: var(--vscode-editor-${name})` });
                document.body.append(probe);
                return getComputedStyle(probe).color;
              };
              return [backgroundColor === rgb('background'), color === rgb('foreground'), colorScheme];
            }"""
        )

        assert (True, True, scheme) == (background, ink, colours)
        assert "true" == frame.evaluate("document.body.dataset.noEval")


@pytest.mark.parametrize("script", ["browse", "compare", "bench"])
def test_a_module_asks_for_no_other(script):
    text = re.sub(r"/\*.*?\*/|^\s*//[^\n]*", "", assets.module(script), flags=re.DOTALL | re.MULTILINE)  # types in comments name files

    assert not re.search(r"^\s*import\b|\b(import|require|eval)\s*\(|new Function\s*\(|https?://", text, re.MULTILINE)
