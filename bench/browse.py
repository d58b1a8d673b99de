"""The first pictures: how long a reader waits after `browse`, in a process that has tarviz imported, as a kernel has."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from bench import Figure, Value
from bench._data import PHOTO, TINY
from bench.convert import out

ROOT = Path(__file__).resolve().parents[1]
GB = 10**9
ROUNDS = 5
LATENCY, BANDWIDTH = 0.04, 12.5e6  # seconds, bytes a second: 100 Mbit/s
MILLIONTH = 1_000_000

_COMMON = """
import json, sys, time
from pathlib import Path
import tarviz.widgets.browse.controller as browse
from tarviz.widgets.host.rpc import answer

def ask(shown, name, **message):
    reply, buffers = answer(shown, {"k": "tvz:req", "id": "1", "name": name, "msg": message})
    return reply["r"], buffers

def tiles(shown):
    return ask(shown, "fetch", query=shown.query.number, start=0, stop=24)[0]["rows"]

def pictures(url):
    shown = browse.Browser(url)
    while sum("buffer" in row["tile"] for row in tiles(shown)) < 24:
        time.sleep(0.002)
    return shown

def finish(shown):
    shown.shards.scan.go_on()
    while not shown.shards.rows.finished:
        time.sleep(0.01)

def since(begin):
    return (time.perf_counter() - begin) * 1000
"""

# argv: shard, whether PIL is imported before, whether to scan to the end. Prints the milliseconds to 24 pictures.
_FIRST = """
if sys.argv[2] == "warm":
    import PIL.Image, PIL.JpegImagePlugin, PIL.PngImagePlugin, PIL.WebPImagePlugin
begin = time.perf_counter()
shown = pictures(sys.argv[1])
print(since(begin))
if sys.argv[3] == "finish":
    finish(shown)
shown.close()
"""

_JUMP = """
import PIL.Image
shown = browse.Browser(sys.argv[1])
finish(shown)
begin = time.perf_counter()
found, _ = ask(shown, "find", text="#" + sys.argv[2])
_, picture = ask(shown, "record", row=found["row"])
took = since(begin)
assert picture and sum(shard.count for shard in shown.shards.rows.shards) > int(sys.argv[2])
print(took)
shown.close()
"""

# In the page: milliseconds from the beginning of its load until 24 pictures are decoded, and drawn in a frame.
_PAINTED = """() => new Promise((done) => {
  const look = () => {
    const there = [...document.querySelectorAll('.tvz-tile img')].filter((picture) => picture.complete && picture.naturalWidth);
    if (there.length < 24) requestAnimationFrame(look);
    else requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
  };
  look();
})"""

_HTTP = """
import PIL.Image, PIL.JpegImagePlugin
from tarviz.testing.faults import FaultServer
with FaultServer(latency=float(sys.argv[2]), bandwidth=float(sys.argv[3])) as server:
    url = server.put("/large.tar", Path(sys.argv[1]))
    begin = time.perf_counter()
    shown = pictures(url)
    print(json.dumps([since(begin), server.sent / 1e6]))
    shown.close()
"""


def run(script: str, *argv: object, cache: Path) -> str:
    """What a script prints in an interpreter of its own, with a cache of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", _COMMON + script, *map(str, argv)], env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


@contextmanager
def place() -> Iterator[Path]:
    """A folder in memory, gone afterwards."""
    folder = out()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def large(data: Path, folder: Path) -> Path:
    """One shard of 1 GB of photographs."""
    target = folder / "large.tar"
    photos = itertools.cycle([data / PHOTO.replace("{0..3}", str(number)) for number in range(4)])
    with target.open("wb") as sink:
        while sink.tell() <= GB:
            members = next(photos).read_bytes().rstrip(b"\0")
            sink.write(members + bytes(-len(members) % 512))
        sink.write(bytes(1024))
    return target


def first(*, pil: str, seen: bool) -> Callable[[Path], float]:
    """The median of several rounds, in milliseconds."""

    def measure(data: Path) -> float:
        with place() as folder:
            shard = large(data, folder)
            if seen:
                run(_FIRST, shard, pil, "finish", cache=folder / "cache")
            caches = [folder / ("cache" if seen else f"cache-{number}") for number in range(ROUNDS)]
            return statistics.median(float(run(_FIRST, shard, pil, "go", cache=cache)) for cache in caches)

    return measure


def painted(data: Path) -> float:
    """Milliseconds from page load to 24 pictures on the screen of headless Chromium, of a shard that nobody has opened; a page a round."""
    from playwright.sync_api import sync_playwright

    from tarviz.widgets.browse.controller import Browser
    from tarviz.widgets.host.page import ControllerPage

    waits = []
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, headless=True, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(ROUNDS + 1):
            with ControllerPage(Browser(str(data / PHOTO), cache=False)).start() as page:
                tab = chromium.new_page(viewport={"width": 1440, "height": 900})
                tab.goto(page.url, wait_until="commit")
                waits.append(float(tab.evaluate(_PAINTED)))
                tab.close()
        chromium.close()
    return statistics.median(waits[1:])


@cache
def far(data: Path) -> tuple[float, float]:
    """Milliseconds to 24 pictures over a slow line, and megabytes that the server sent by then."""
    with place() as folder:
        shard = large(data, folder)
        rounds = [json.loads(run(_HTTP, shard, LATENCY, BANDWIDTH, cache=folder / str(number))) for number in range(ROUNDS)]
    return statistics.median(wait for wait, _ in rounds), max(sent for _, sent in rounds)


def jump(data: Path) -> float:
    """Milliseconds to the picture of record 1 000 000 of a set of two million, indexed before."""
    with place() as folder:
        source = data / TINY.replace("{0..1}", "0")
        for number in range(34):
            (folder / f"s-{number:02d}.tar").symlink_to(source.resolve())
        waits = [float(run(_JUMP, folder / "s-{00..33}.tar", MILLIONTH, cache=folder / "cache")) for _ in range(ROUNDS + 1)]
    return statistics.median(waits[1:])


_NEW = "browse: 24 pictures of a 1 GB shard never seen before"
_FAR = "browse: the same over HTTP, 40 ms latency, 100 Mbit/s"

FIGURES = [
    Figure("browse-new", _NEW, Value(first(pil="warm", seen=False), "ms"), at_most=500, sets=("photo",)),
    Figure("browse-new-pil", f"{_NEW}, import of PIL counted", Value(first(pil="cold", seen=False), "ms"), at_most=500, sets=("photo",)),
    Figure("browse-seen", "browse: the same, seen before", Value(first(pil="warm", seen=True), "ms"), at_most=200, sets=("photo",)),
    Figure("browse-paint", "browse: from page load to 24 pictures painted, headless Chromium", Value(painted, "ms"), at_most=800,
           sets=("photo",), packages=("playwright",)),
    Figure("browse-far", _FAR, Value(lambda data: far(data)[0], "ms"), at_most=1500, sets=("photo",)),
    Figure("browse-far-bytes", f"{_FAR}: bytes read", Value(lambda data: far(data)[1], "MB"), at_most=8, sets=("photo",)),
    Figure("browse-jump", "browse: to the picture of record 1,000,000 of 2,040,000", Value(jump, "ms"), at_most=100, sets=("tiny",)),
]  # fmt: skip
