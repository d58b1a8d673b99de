"""The map at a million points: frames a second while it is panned and zoomed, and the time a line around points takes.

Frames are counted in headless Chromium without a graphics card, all points drawn in every frame; Playwright and Chromium have to be there.
"""

from __future__ import annotations

import math
import shutil
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from bench import Figure, Value

COUNT = 1_000_000
ROUNDS = 7

# Moves the view at every frame for three seconds: frames a second.
_FRAMES = """async ([painter, count]) => {
  document.body.innerHTML = '<div style="position: relative; width: 900px; height: 700px"></div>';
  const end = new AbortController();
  let frames = 0;
  const scatter = new Scatter({ signal: end.signal, painter, onMove: () => (frames += 1) });
  scatter.root.style.cssText = 'position: absolute; inset: 0';
  document.querySelector('div').append(scatter.root);
  const places = Float32Array.from({ length: 2 * count }, () => Math.random() + Math.random() + Math.random() - 1.5);
  scatter.show(places, Uint32Array.from({ length: count }, (_, at) => 0xd0000000 | ((at % 10) * 1234567)));
  await new Promise((go) => setTimeout(go, 600));
  const before = frames;
  const begin = performance.now();
  while (performance.now() - begin < 3000) {
    await new Promise(requestAnimationFrame);
    scatter.share = 1; // all of them in every frame, however long that takes: a busy page would draw fewer while it moves
    frames % 2 ? scatter.panBy(3, 2) : scatter.zoomBy(frames % 60 < 30 ? 1.03 : 1 / 1.03);
  }
  const found = ((frames - before) * 1000) / (performance.now() - begin);
  end.abort();
  return found;
}"""


def frames(painter: str, _: Path) -> float:
    """Frames a second of a million points, each of them drawn in every frame."""
    from playwright.sync_api import sync_playwright

    from tarviz.widgets.host import assets

    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        tab.add_script_tag(content=assets.module("scatter") + "\nwindow.Scatter = Scatter;", type="module")
        tab.wait_for_function("Boolean(window.Scatter)")
        found = float(tab.evaluate(_FRAMES, [painter, COUNT]))
        browser.close()
    return found


def circled(_: Path) -> float:
    """Milliseconds until the rows inside a line of 200 corners are known, of a million."""
    from tarviz.widgets.map.points import MapPoints

    points = MapPoints.of(np.arange(COUNT), np.random.default_rng(0).normal(size=(COUNT, 2)), ("x", "y")).shuffle()
    line = [(math.sin(at * math.tau / 200) / 2, math.cos(at * math.tau / 200) / 2) for at in range(200)]
    return _median(lambda: points.rows_inside(line))


def components(_: Path) -> float:
    """Seconds for the two components of 100 000 vectors of 512 numbers."""
    from tarviz.looks.projection import pca

    vectors = np.random.default_rng(0).normal(size=(100_000, 512)).astype(np.float32)
    begin = time.perf_counter()
    pca(vectors)
    return time.perf_counter() - begin


def _median(work: Callable[[], object]) -> float:
    waits = []
    for _ in range(ROUNDS + 1):
        begin = time.perf_counter()
        work()
        waits.append((time.perf_counter() - begin) * 1000)
    return statistics.median(waits[1:])


FIGURES = [
    Figure("map-frames", "map: 1,000,000 points panned and zoomed, no graphics card", Value(partial(frames, ""), "frames/s"), at_least=30,
           packages=("playwright",)),
    Figure("map-lasso", "map: the rows inside a line of 200 corners, of 1,000,000", Value(circled, "ms"), at_most=300),
    Figure("map-pca", "map: PCA of 100,000 vectors of 512 numbers", Value(components, "s"), at_most=10),
]  # fmt: skip
