"""Pictures of every surface for the documents: `make screenshots`, or `python -m tests.browser.screenshots [NAME…]`.

A surface is a function here named `shoot_…`; it gets a `Studio` and saves pictures through it. Look at each one it makes.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser.conftest import ARGUMENTS, ROOT, Lab, chromium_path, running_lab, watch, write_notebook

SCHEMES = ("light", "dark")
WIDTHS = {1280: 800, 600: 760}
HEIGHTS = {1080: 640, 1440: 900}


class Studio:
    """A browser, a folder of sample shards (the working folder, so that pictures show short names), and where pictures go."""

    def __init__(self, chromium: Any, out: Path) -> None:
        self.chromium = chromium
        self.out = out

    def save(self, tab: Any, name: str) -> None:
        """The page as a PNG of 256 colours, which is enough for the documents and a third of the size."""
        from PIL import Image

        tab.wait_for_timeout(400)
        picture = few_colours(Image.open(io.BytesIO(tab.screenshot())).convert("RGB"))
        self.out.mkdir(parents=True, exist_ok=True)
        picture.save(self.out / f"{name}.png", optimize=True)
        sys.stdout.write(f"{name}.png  {(self.out / f'{name}.png').stat().st_size // 1000} kB\n")

    @contextmanager
    def tab(self, scheme: str, width: int, height: int | None = None) -> Iterator[Any]:
        context = self.chromium.new_context(
            viewport={"width": width, "height": height or {**WIDTHS, **HEIGHTS}.get(width, 800)}, color_scheme=scheme
        )
        try:
            yield context.new_page()
        finally:
            context.close()

    @contextmanager
    def page(self, controller: Any, scheme: str, width: int) -> Iterator[Any]:
        """A controller on its stand-alone page, drawn."""
        from tarviz.widgets.host.page import ControllerPage

        with ControllerPage(controller).start() as page, self.tab(scheme, width) as tab:
            found = watch(tab, page.origin)
            tab.goto(page.url)
            tab.wait_for_selector(".tvz")
            yield found
            assert not found.elsewhere, found.elsewhere


def few_colours(picture: Any) -> Any:
    """The picture in 256 colours: the commonest as they are, so that areas stay plain, the others dithered."""
    from PIL import Image

    common = sorted(picture.getcolors(1 << 24), reverse=True)[:64]
    rest = picture.quantize(192, method=Image.Quantize.FASTOCTREE).getpalette()[: 192 * 3]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in common for part in colour] + rest)
    return picture.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG)


def shoot_browse(studio: Studio) -> None:
    """The shard browser, in every scheme and width."""
    from tarviz.widgets.browse.controller import Browser

    for scheme in SCHEMES:
        for width in WIDTHS:
            with studio.page(Browser("photos/photos-{0000..0003}.tar"), scheme, width) as page:
                page.until("document.querySelectorAll('.tvz-tile img').length > 3 && document.querySelector('.tvz-pane canvas')")
                page.tab.locator(".tvz-tile").nth(1).click()
                page.key("Space")
                page.tab.mouse.move(2, 2)
                page.until("document.querySelector('.tvz-facets .tvz-bar')", 20)
                studio.save(page.tab, f"browse-{scheme}-{width}")
    from PIL import Image

    with Image.open(studio.out / "browse-light-1280.png") as picture:  # for the demo's report
        small = picture.convert("RGB").resize((960, 600), Image.Resampling.LANCZOS)
        small.save(ROOT / "tarviz" / "commands" / "demo" / "browse.webp", quality=72, method=6)


def shoot_inspect(studio: Studio) -> None:
    """The record inspector: a record enlarged, its example."""
    from tarviz.widgets.browse.controller import Browser

    for scheme in SCHEMES:
        for width in WIDTHS:
            with studio.page(Browser("photos/photos-{0000..0003}.tar", where="json.width > 0 or cls == 0"), scheme, width) as page:
                page.until("document.querySelector('.tvz-pane canvas')")
                page.tab.locator(".tvz-grid").focus()
                if width > 1000:
                    page.tab.get_by_role("tab", name="tf.Example").click()
                    page.until("document.querySelector('.tvz-fact-table')")
                else:
                    page.key("Enter")
                studio.save(page.tab, f"inspect-{scheme}-{width}")


def shoot_damage(studio: Studio) -> None:
    """A damaged shard: what is left of it, and the finding with its byte."""
    from tarviz.widgets.browse.controller import Browser

    whole = Path("digits/train-0000.tar").read_bytes()
    Path("damaged.tar").write_bytes(whole[: len(whole) // 2])
    with studio.page(Browser(["digits/train-0001.tar", "damaged.tar"], px=96), "light", 1280) as page:
        page.until("document.querySelector('.tvz-finding')")
        studio.save(page.tab, "browse-damage-light-1280")


ZOO = {
    "captions": "", "coco": "", "voc": "", "instances": "", "segmentation": "", "stereo": "", "medical": "", "flac": "",
    "video": "", "chat": "", "text": "t",
    "points": "", "views": "", "robotics": "", "embeddings": "", "damaged": "",
}  # fmt: skip
"""Kinds of the gallery, each with a key that is pressed first."""


def shoot_zoo(studio: Studio) -> None:
    """A page of every kind of data set, for docs/gallery.md."""
    from tarviz import samples
    from tarviz.widgets.browse.controller import Browser

    for kind, path in samples.zoo("zoo", kinds=list(ZOO)).items():
        for scheme in SCHEMES:
            with studio.page(Browser(path), scheme, 1080) as page:
                page.until("document.querySelectorAll('.tvz-tile:not(.tvz-waiting)').length > 3 && document.querySelector('.tvz-pane h2')")
                page.tab.wait_for_timeout(500)
                if ZOO[kind]:
                    page.key(ZOO[kind])
                studio.save(page.tab, f"zoo-{kind}-{scheme}")


PHOTOS = "photos/photos-{0000..0003}.tar"
CHAINS = {
    "train": "decode(jpg)|random_crop(jpg, (300, 300))|resize(jpg, (224, 224))|flip(jpg)|convert(jpg, float32)",
    "turned": "decode(jpg)|rotate(jpg)|resize(jpg, (224, 224))|convert(jpg, float32)|normalize(jpg, (0.5,), (0.25,))",
    "small": "decode(jpg)|center_crop(jpg, (400, 400))|resize(jpg, (32, 32))",
}


BOXES = {
    "along": "decode(jpg)|carry(jpg, json)|rotate(jpg, 15)|random_crop(jpg, (150, 150))|flip(jpg, horizontal, 1)",
    "small": "decode(jpg)|carry(jpg, json)|resize(jpg, (90, 120))|center_crop(jpg, (80, 80))",
    "behind": "decode(jpg)|flip(jpg, horizontal, 1)",
}


def shoot_compare(studio: Studio) -> None:
    """Chains compared: every step, an op that fails, wipe and difference on the stage."""
    from tarviz.widgets.compare.controller import Compare

    for scheme in SCHEMES:
        for width in WIDTHS:
            run = Compare(PHOTOS, CHAINS, records=4)
            run.wait()
            with studio.page(run, scheme, width) as page:
                page.until("document.querySelectorAll('.tvz-ctile img').length > 20")
                page.tab.locator('[data-place*=\'"column":1,"step":1\']').first.click()
                page.key("w" if scheme == "light" else "Escape")
                page.until("/differ/.test(document.querySelector('.tvz-stage-words').textContent)")
                page.tab.mouse.move(2, 2)
                studio.save(page.tab, f"compare-{scheme}-{width}")
    run = Compare(PHOTOS, CHAINS, records=4)
    run.wait()
    with studio.page(run, "light", 1280) as page:
        page.until("document.querySelectorAll('.tvz-ctile img').length > 20")
        page.tab.locator('[data-place*=\'"column":0,"step":2\']').first.click()
        page.key("a", "ArrowRight", "d", "l")
        page.tab.mouse.move(2, 2)
        studio.save(page.tab, "compare-difference-light-1280")


def shoot_compare_boxes(studio: Studio) -> None:
    """Chains that carry boxes, outlines and key points, one that leaves them behind; sliders for the numbers of the first."""
    from tarviz import samples
    from tarviz.widgets.compare.controller import Compare

    for scheme in SCHEMES:
        run = Compare(samples.zoo("zoo", kinds=["coco"])["coco"], BOXES, records=3)
        run.wait()
        with studio.page(run, scheme, 1280) as page:
            page.until("document.querySelectorAll('.tvz-ctile .tvz-over').length > 10")
            page.tab.locator('[data-place*=\'"column":0,"step":3\']').first.click()
            page.key("s")
            page.tab.mouse.move(2, 2)
            studio.save(page.tab, f"compare-boxes-{scheme}-1280")


def shoot_twelve(studio: Studio) -> None:
    """Twelve chains at once."""
    from tarviz import samples
    from tarviz.widgets.compare.controller import Compare

    chains = {f"turn {angle}": f"decode(jpg)|carry(jpg, json)|rotate(jpg, {angle})|resize(jpg, (96, 128))" for angle in range(0, 60, 5)}
    for scheme in SCHEMES:
        run = Compare(samples.zoo("zoo", kinds=["coco"])["coco"], chains, records=3)
        run.wait()
        with studio.page(run, scheme, 1440) as page:
            page.until("document.querySelectorAll('.tvz-ctile .tvz-over').length > 10")
            studio.save(page.tab, f"compare-twelve-{scheme}-1440")


def shoot_hosts(studio: Studio) -> None:
    """The places of docs/hosts.md that have no picture of their own; those whose package is not installed are left out."""
    from importlib.util import find_spec

    from tarviz import samples
    from tests.browser.hosts import HOSTS

    shard = str(Path(samples.zoo("zoo", kinds=["coco"])["coco"]).absolute())
    for name, host in HOSTS.items():
        if name != "vscode" and find_spec(name) is None:
            continue
        context = studio.chromium.new_context(viewport={"width": 1280, "height": 800})
        with tempfile.TemporaryDirectory(prefix="tarviz-host-") as folder:
            Path(folder, "coco.tar").symlink_to(shard)
            with host(Path(folder), "coco.tar" if name != "vscode" else os.path.relpath(shard), context) as page:
                page.tab.wait_for_timeout(500)
                frame = page.tab.frames[-1] if len(page.tab.frames) > 1 else page.tab
                frame.locator(".tvz-tile .tvz-over").nth(5).wait_for(state="attached", timeout=90_000)
                page.tab.wait_for_timeout(1500)
                studio.save(page.tab, f"host-{name}")
        context.close()


def shoot_bench(studio: Studio) -> None:
    """A bench: live, a sweep done, stages."""
    from tarviz.widgets.bench.controller import BenchRun

    chain = "decode(jpg)|resize(jpg, (224, 224))|flip(jpg)|convert(jpg, float32)"
    for scheme in SCHEMES:
        for width in WIDTHS:
            sweep = {"workers": (0, 1, 2), "batch": (8, 16, 32)} if width > 1000 else {"workers": 2}
            run = BenchRun(PHOTOS, chain, select=("jpg", "cls"), seconds=1.5, **sweep)
            run.wait()
            with studio.page(run, scheme, width) as page:
                page.until("document.querySelector('.tvz-stop').textContent === 'done'")
                studio.save(page.tab, f"bench-{scheme}-{width}")
    run = BenchRun(PHOTOS, chain, select=("jpg", "cls"), seconds=60, batch=8)
    with studio.page(run, "light", 1280) as page:
        page.tab.wait_for_timeout(5000)
        studio.save(page.tab, "bench-live-light-1280")
        run.end()


def shoot_lab(studio: Studio) -> None:
    """The browser in a notebook cell, in JupyterLab."""
    with running_lab(Path(tempfile.mkdtemp(prefix="tarviz-lab-"))) as lab:
        for scheme in SCHEMES:
            _shoot_lab(studio, lab, scheme)


def _shoot_lab(studio: Studio, lab: Lab, scheme: str) -> None:
    shards = os.path.relpath(Path.cwd() / "photos", lab.folder)
    (lab.folder / "photos").exists() or (lab.folder / "photos").symlink_to(shards)
    write_notebook(lab.folder / f"{scheme}.ipynb", 'import tarviz\n\ntarviz.browse("photos/photos-{0000..0003}.tar")')
    context = studio.chromium.new_context(viewport={"width": 1280, "height": 860}, color_scheme=scheme)
    page = lab.open(context, f"{scheme}.ipynb")
    if scheme == "dark":
        page.tab.evaluate("jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    page.tab.evaluate("jupyterapp.shell.collapseLeft()")
    page.until("document.querySelectorAll('.tvz-tile img').length > 3 && document.querySelector('.tvz-pane canvas')", 60)
    page.tab.wait_for_timeout(1500)
    studio.save(page.tab, f"lab-browse-{scheme}-1280")
    context.close()
    _shoot_lab_work(studio, lab, scheme)


def _shoot_lab_work(studio: Studio, lab: Lab, scheme: str) -> None:
    """Comparisons and a bench in notebook cells."""
    from tarviz import samples

    compare = "%%tv compare photos/photos-{0000..0003}.tar -n 3\n" + "\n".join(f"{name} = {chain}" for name, chain in CHAINS.items())
    boxes = "%%tv compare zoo/coco.tar -n 2\n" + "\n".join(f"{name} = {chain}" for name, chain in BOXES.items())
    (lab.folder / "zoo").exists() or (lab.folder / "zoo").symlink_to(Path(samples.zoo("zoo", kinds=["coco"])["coco"]).absolute().parent)
    bench = "%tv bench photos/photos-{0000..0003}.tar -c 'decode(jpg)|resize(jpg, (224, 224))' -j 0,1,2 --for 1.5"
    cells = {
        "compare": (compare, ".tvz-ctile img"),
        "compare-boxes": (boxes, ".tvz-ctile .tvz-over"),
        "bench": (bench, ".tvz-heat .tvz-best"),
    }
    for name, (cell, ready) in cells.items():
        write_notebook(lab.folder / f"{name}-{scheme}.ipynb", "%load_ext tarviz", cell)
        context = studio.chromium.new_context(viewport={"width": 1280, "height": 960}, color_scheme=scheme)
        page = lab.open(context, f"{name}-{scheme}.ipynb")
        if scheme == "dark":
            page.tab.evaluate("jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
        page.tab.evaluate("jupyterapp.shell.collapseLeft()")
        page.until(f"document.querySelector('{ready}')", 60)
        page.tab.wait_for_timeout(2500)
        studio.save(page.tab, f"lab-{name}-{scheme}-1280")
        context.close()


def shoot_lab_files(studio: Studio) -> None:
    """Shards opened from JupyterLab's file browser."""
    with running_lab(Path(tempfile.mkdtemp(prefix="tarviz-lab-"))) as lab:
        shutil.copytree("photos", lab.folder / "photos")
        for scheme in SCHEMES:
            with studio.tab(scheme, 1280, 860) as tab:
                tab.goto(f"{lab.url}/lab/tree/photos?token={lab.token}&reset")
                tab.locator(".jp-DirListing-item", has_text="photos-0001.tar").dblclick()
                if scheme == "dark":
                    tab.evaluate("jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
                tab.frame_locator("iframe").locator(".tvz-pane canvas").first.wait_for()
                tab.wait_for_timeout(2500)
                studio.save(tab, f"lab-files-{scheme}-1280")


def main(arguments: list[str]) -> int:
    """Make the pictures named (all of them without a name)."""
    surfaces = {name.removeprefix("shoot_"): work for name, work in globals().items() if name.startswith("shoot_")}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*surfaces, []], help="surfaces; all of them by default")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "screenshots")
    chosen = parser.parse_args(arguments)
    path = chromium_path()
    if path is None:
        sys.stdout.write("chromium is not installed: no pictures were made\n")
        return 0
    from playwright.sync_api import sync_playwright

    from tarviz import samples

    out = chosen.out.absolute()
    with tempfile.TemporaryDirectory(prefix="tarviz-shots-") as folder, sync_playwright() as playwright:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        os.chdir(folder)
        samples.photos("photos", count=60)
        samples.digits("digits")
        chromium = playwright.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS)
        for name in chosen.names or surfaces:
            surfaces[name](Studio(chromium, out))
        chromium.close()
        os.chdir(ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
