"""The picture that moves on the first page: browse, filter, compare, half a minute from a real browser (`python -m docs.film [FILE]`).

A step is a still of the page and how long it is shown; no page is altered but for a pointer and a line of words at its foot.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.browser.conftest import ARGUMENTS, ROOT, chromium_path

TARGET = ROOT / "docs" / "screenshots" / "film.webp"
SIZE = (1200, 700)
MOST = 2_500_000  # bytes
CONDITION = "len(json.annotations) > 4"
CHAINS = {
    "train": "decode(jpg)|carry(jpg, json)|rotate(jpg, 15)|random_crop(jpg, (150, 150))|flip(jpg, horizontal, 1)",
    "small": "decode(jpg)|carry(jpg, json)|resize(jpg, (90, 120))|center_crop(jpg, (80, 80))",
}
_WORDS = """([words, x, y]) => {
  const put = (id, css) => {
    const there = document.getElementById(id) ?? document.body.appendChild(Object.assign(document.createElement('div'), { id }));
    Object.assign(there.style, { position: 'fixed', zIndex: 99, pointerEvents: 'none', ...css });
    return there;
  };
  const foot = { left: '50%', bottom: '14px', transform: 'translateX(-50%)', background: '#16181cee', color: '#fff', borderRadius: '9px' };
  put('film-words', { ...foot, padding: '9px 18px', font: '600 19px system-ui, sans-serif', whiteSpace: 'nowrap' }).textContent = words;
  const pointer = { left: `${x}px`, top: `${y}px`, width: '20px', height: '28px', background: '#16181c', border: '0' };
  const arrow = 'polygon(0 0, 0 78%, 24% 60%, 44% 100%, 62% 92%, 43% 54%, 76% 54%)';
  put('film-rim', { ...pointer, background: '#fff', clipPath: arrow, transform: 'scale(1.25)', transformOrigin: '2px 3px' });
  put('film-pointer', { ...pointer, clipPath: arrow });
}"""


@dataclass
class Film:
    """Frames as they come, each with its milliseconds."""

    tab: Any = None
    frames: list[Any] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    words: str = ""
    place: tuple[float, float] = (SIZE[0] / 2, SIZE[1] / 2)

    def show(self, milliseconds: int) -> None:
        from PIL import Image

        self.tab.evaluate(_WORDS, [self.words, *self.place])
        picture = Image.open(io.BytesIO(self.tab.screenshot())).convert("RGB")
        if self.frames and picture.tobytes() == self.frames[-1].tobytes():
            self.times[-1] += milliseconds
        else:
            self.frames.append(picture)
            self.times.append(milliseconds)

    def to(self, target: Any) -> None:
        """The pointer goes to the middle of an element, in a few steps."""
        box = target.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        was_x, was_y = self.place
        for part in (0.35, 0.7, 0.92, 1.0):
            self.place = was_x + (x - was_x) * part, was_y + (y - was_y) * part
            self.show(70)

    def click(self, target: Any, milliseconds: int, settle: int = 350) -> None:
        self.to(target)
        target.click()
        self.tab.wait_for_timeout(settle)
        self.show(milliseconds)

    def save(self, path: Path) -> None:
        first, *others = self.frames
        first.save(path, append_images=others, duration=self.times, loop=0, save_all=True, quality=62, method=5, minimize_size=True)


@contextmanager
def shown(film: Film, chromium: Any, controller: Any, ready: str) -> Iterator[Any]:
    from tarviz.widgets.host.page import ControllerPage

    with ControllerPage(controller).start() as page:
        film.tab = chromium.new_context(viewport={"width": SIZE[0], "height": SIZE[1]}).new_page()
        film.tab.goto(page.url)
        film.tab.locator(ready).nth(5).wait_for()
        film.tab.wait_for_timeout(900)
        yield film.tab
        film.tab.context.close()


def browse(film: Film, chromium: Any, shard: str) -> list[str]:
    """Look at pictures and their boxes, then at those with many things in them; the keys of the first of these."""
    from tarviz.widgets.browse.controller import Browser

    with shown(film, chromium, Browser(shard, cache=False), ".tvz-tile img") as tab:
        film.words = "browse: what is in the shard"
        film.show(2200)
        film.click(tab.locator(".tvz-tile").nth(2), 1500)
        film.click(tab.locator(".tvz-tile").nth(4), 1500)
        film.click(tab.get_by_role("button", name="key points"), 900)
        film.click(tab.get_by_role("button", name="outlines"), 1300)
        film.words = "filter: the records with many things in them"
        wanted = tab.locator(".tvz-filter")
        film.click(wanted, 500)
        for at in range(0, len(CONDITION), 3):
            tab.keyboard.type(CONDITION[at : at + 3])
            film.show(130)
        tab.keyboard.press("Escape")
        tab.wait_for_timeout(900)
        film.show(2200)
        film.click(tab.locator(".tvz-tile").nth(1), 1900)
        found: list[str] = tab.evaluate("[...document.querySelectorAll('.tvz-tile .tvz-key')].map((key) => key.title)")
    return found[:3]


def compare(film: Film, chromium: Any, shard: str, keys: list[str]) -> None:
    """What two chains do to them, step by step, and a number of one moved."""
    from tarviz.widgets.compare.controller import Compare

    run = Compare(shard, CHAINS, records=keys)
    run.wait()
    with shown(film, chromium, run, ".tvz-ctile .tvz-over") as tab:
        film.words = "compare: what op chains do, and the boxes with them"
        film.show(2500)
        for step in (2, 3, 4):
            film.click(tab.locator(f'[data-place*=\'"column":0,"step":{step}\']').first, 1500, 500)
        film.click(tab.get_by_role("button", name="wipe"), 1700, 500)
        film.click(tab.get_by_role("button", name="sliders"), 900, 500)
        slider = tab.locator(".tvz-sliders input[type=range]").first
        film.to(slider)
        for value in (5, -10, -25, -40):
            slider.evaluate("(e, v) => { e.value = v; e.dispatchEvent(new Event('input', { bubbles: true })); }", value)
            slider.evaluate("(e) => e.dispatchEvent(new Event('change', { bubbles: true }))")
            tab.wait_for_timeout(900)
            film.show(450)
        film.show(2600)


def main(target: Path) -> int:
    path = chromium_path()
    if path is None:
        sys.stdout.write("chromium is not installed: no film was made\n")
        return 0
    from playwright.sync_api import sync_playwright

    from tarviz import samples

    film = Film()
    with tempfile.TemporaryDirectory(prefix="tarviz-film-") as folder, sync_playwright() as playwright:
        os.chdir(folder)  # so that pages show a short name
        shard = Path(samples.zoo(folder, kinds=["coco"], count=60)["coco"]).name
        chromium = playwright.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS)
        compare(film, chromium, shard, browse(film, chromium, shard))
        chromium.close()
        os.chdir(ROOT)
    film.save(target)
    size = target.stat().st_size
    sys.stdout.write(f"{target.name}  {len(film.frames)} frames, {sum(film.times) / 1000:.1f} s, {size // 1000} kB\n")
    return int(size > MOST)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else TARGET))
