"""Opens decks and pages in Chromium with the network off and says what is wrong with them: requests, errors, pictures, cut text.

`python docs/look.py PATH... [--shots FOLDER] [--dark] [--width N]`: each PATH is an HTML file or a folder of them. Leaves with 1 when
something is wrong.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
]

# Elements whose text does not show whole: beyond the slide, or clipped by a parent. A widget shortens names on purpose, with a title.
_CUT = """(room) => {
  const found = [];
  const box = room.getBoundingClientRect();
  const walker = document.createTreeWalker(room, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.textContent.trim() || parent.closest("aside.notes, .tvz, script, style, math annotation, [hidden], .tvz-sr")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      if (rect.width < 1 || rect.height < 1) continue;
      let cut = false;
      let scrolls = false;
      for (let up = parent; up && up !== room && !cut && !scrolls; up = up.parentElement) {
        const style = getComputedStyle(up);
        const clip = up.getBoundingClientRect();
        scrolls = /auto|scroll/.test(style.overflowX + style.overflowY);
        if (/hidden|clip/.test(style.overflowX) && (rect.right > clip.right + 2 || rect.left < clip.left - 2)) cut = true;
        if (/hidden|clip/.test(style.overflowY) && (rect.bottom > clip.bottom + 3 || rect.top < clip.top - 3)) cut = true;
      }
      if (!scrolls) cut ||= rect.right > box.right + 2 || rect.bottom > box.bottom + 2;
      if (!scrolls) cut ||= rect.left < box.left - 2 || rect.top < box.top - 2;
      if (cut) { found.push(node.textContent.trim().slice(0, 60)); break; }
    }
  }
  return found.slice(0, 5);
}"""
_UNPAINTED = """(room) => [...room.querySelectorAll("img")].filter((image) => !image.closest("aside.notes, [hidden]"))
  .filter((image) => !(image.complete && image.naturalWidth > 1) || image.getBoundingClientRect().width < 2)
  .filter((image) => getComputedStyle(image).display !== "none" && image.offsetParent !== null)
  .map((image) => image.src.slice(0, 80))"""
_SPILLED = "() => document.documentElement.scrollWidth - window.innerWidth"


@dataclass
class Seen:
    """What was seen of one file: how many slides or pages, what it asked for elsewhere, what is wrong."""

    path: Path
    slides: int = 0
    widgets: int = 0
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    unpainted: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    shrunk: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """One line for each thing that is wrong."""
        kinds = {"asks for": self.requests, "error": self.errors, "not painted": self.unpainted, "cut": self.cut}
        return [f"{self.path.name}: {kind}: {each}" for kind, found in kinds.items() for each in found]


@contextmanager
def browser(running: Any = None, *, dark: bool = False, width: int = 1280, height: int = 720) -> Iterator[Any]:
    """A context without a network, of a browser that runs, or of one of its own."""
    with ExitStack() as stack:
        if running is None:
            from playwright.sync_api import sync_playwright

            path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
            running = stack.enter_context(sync_playwright()).chromium.launch(executable_path=path, args=FLAGS)
            stack.callback(running.close)
        context = running.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", offline=True, reduced_motion="reduce"
        )
        stack.callback(context.close)
        yield context


def look(context: Any, path: Path, shots: Path | None = None) -> Seen:
    """Open one file; a deck is gone through slide by slide. `shots` takes a picture of each."""
    seen = Seen(path)
    page = context.new_page()
    page.on(
        "request", lambda request: None if request.url.startswith(("file:", "data:", "blob:")) else seen.requests.append(request.url[:120])
    )
    page.on("pageerror", lambda error: seen.errors.append(str(error)[:200]))
    page.on("console", lambda message: seen.errors.append(message.text[:200]) if message.type == "error" else None)
    page.goto(path.absolute().as_uri())
    (_look_at_deck if page.locator("meta[content='tarviz deck']").count() else _look_at_page)(page, seen, shots)
    page.close()
    return seen


def until(page: Any, expression: str, seconds: float = 20.0) -> None:
    """Wait until an expression is true; `page.wait_for_function` needs eval, which the policy of our pages forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        if time.monotonic() > end:
            raise TimeoutError(f"not true within {seconds:.0f} s: {expression}")
        page.wait_for_timeout(50)


def _look_at_deck(page: Any, seen: Seen, shots: Path | None) -> None:
    until(page, "document.documentElement.dataset.tarvizDeck === 'ready'")
    last = ""
    while (at := page.evaluate("JSON.stringify(Reveal.getIndices())")) != last:
        last = at
        while page.evaluate("Reveal.availableFragments().next"):
            page.evaluate("Reveal.nextFragment()")
            page.wait_for_timeout(250)
        seen.slides += 1
        if widgets := page.locator(".present [data-tarviz-widget]:visible").count():
            seen.widgets += widgets
            until(page, "document.querySelectorAll('.present [data-tarviz-widget]:not([data-tarviz-drawn])').length === 0")
            page.wait_for_timeout(600)
        room = page.evaluate_handle("Reveal.getCurrentSlide().querySelector('.page')")
        name = f"slide {seen.slides}"
        seen.cut += [f"{name}: {text}" for text in room.evaluate(_CUT)]
        if room.evaluate("(room) => room.scrollHeight - room.clientHeight") > 2:
            seen.cut.append(f"{name}: taller than the slide")
        if float(scale := room.evaluate("(room) => room.dataset.scale || 1")) < 1:
            seen.shrunk.append(f"{name}: {scale}")
        seen.unpainted += [f"{name}: {source}" for source in room.evaluate(_UNPAINTED)]
        if shots:
            shots.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=shots / f"{seen.path.stem}-{seen.slides:02d}.png")
        page.evaluate("Reveal.next()")


def _look_at_page(page: Any, seen: Seen, shots: Path | None) -> None:
    seen.slides = 1
    page.wait_for_load_state("load")
    for widget in page.query_selector_all("[data-tarviz-widget]"):
        seen.widgets += 1
        widget.scroll_into_view_if_needed()
        until(page, f"document.querySelectorAll('[data-tarviz-drawn]').length >= {seen.widgets}")
        page.wait_for_timeout(400)
    page.evaluate("window.scrollTo(0, 0)")
    if seen.path.name == "search.html":
        page.goto(f"{seen.path.absolute().as_uri()}?q=shard")
        until(page, "document.querySelectorAll('#search-results li').length > 3")
    room = page.query_selector("article") or page.query_selector("main") or page.query_selector("html")
    seen.unpainted += room.evaluate(_UNPAINTED)
    seen.cut += room.evaluate(_CUT)
    if (spilled := page.evaluate(_SPILLED)) > 1:
        seen.cut.append(f"the page is {spilled} pixels wider than the window")
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=shots / f"{seen.path.stem}.png", full_page=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--shots", type=Path)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1280)
    wish = parser.parse_args()
    files = [file for path in wish.paths for file in (sorted(path.rglob("*.html")) if path.is_dir() else [path])]
    wrong: list[str] = []
    with browser(dark=wish.dark, width=wish.width) as context:
        for file in files:
            seen = look(context, file, wish.shots)
            wrong += seen.wrong
            shrunk = f", shrunk: {', '.join(seen.shrunk)}" if seen.shrunk else ""
            print(f"{file}: {seen.slides} seen, {seen.widgets} widgets, {len(seen.wrong)} wrong{shrunk}")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
