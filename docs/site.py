"""Builds the site: README, notebooks as they ran, decks, the reference, what differs in the dialects, the design.

`python docs/site.py NOTEBOOKS SLIDES -o SITE`: the folders hold what `make notebooks` and `make slides` made. Everything a page needs
is in SITE: it opens from the disk, its search too, and asks nobody for anything.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

os.environ.update({"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"})  # the reference loads TensorFlow, which talks

import nbformat

from docs import pairs, reference
from tarviz.commands.deck import page as deck_page
from tarviz.commands.deck.widgets import DeckWidgets

ROOT = Path(__file__).resolve().parents[1]
HOST = ROOT / "tarviz" / "widgets" / "host" / "host.mjs"
FIRST = (
    "install",
    "first",
    "recipes",
    "shell",
    "python",
    "questions",
    "troubleshooting",
    "codes",
    "licences",
)  # the pages that continue the README
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE")
DESIGN = ("design", "figures", "growth", "cost", "scale", "faults")
OPENING = (
    ("browse-light-1280", "10-browse", "Browse: what is in there"),
    ("zoo-coco-light", "12-captions-boxes-sound-text", "Boxes, captions, sound, text"),
    ("compare-boxes-light-1280", "20-op-chains", "Chains, step by step, with their boxes"),
    ("zoo-segmentation-light", "15-ask-your-shards", "Ask: columns, facets, conditions"),
    ("bench-light-1280", "80-throughput", "Where the time goes"),
    ("zoo-embeddings-light", "00-tour", "The tour, in ten minutes"),
)
START = '<script type="application/json" id="tarviz-widgets">{saved}</script>\n<script type="module">{host}\n{call}</script>'
CALL = 'mountAll(JSON.parse(document.getElementById("tarviz-widgets").textContent));'


def toctree(caption: str, names: list[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```", ""])


def assemble(folder: Path, notebooks: Path, slides: Path) -> None:
    """The sources of the site, in a folder laid out as the repository is, so that links between documents hold."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "reference").mkdir(parents=True)
    executed = sorted(notebooks.glob("*.ipynb"))
    decks = sorted(slides.glob("*.html"))
    references = reference.pages()
    for name in PAGES:
        shutil.copy(ROOT / name, folder / name)
    own = [
        ROOT / "docs" / f"{name}.md"
        for name in (*FIRST, "aistore", "cost", "design", "faults", "figures", "gallery", "growth", "hosts", "loops", "scale", "training")
    ]
    for path in [*sorted((ROOT / "docs" / "dialects").glob("*.md")), *own]:
        (folder / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text("utf-8").replace("(../README.md)", "(../index.md)")  # the README is the site's first page
        (folder / path.relative_to(ROOT)).write_text(text, "utf-8")
    for path in executed:
        write_notebook(path, folder / "notebooks" / path.name)
    for name, page in references.items():
        (folder / "reference" / f"{name}.md").write_text(reference.markdown(page), "utf-8")
    (folder / "reference" / "shell.md").write_text(reference.shell(), "utf-8")
    (folder / "slides").mkdir()
    (folder / "slides" / "index.md").write_text(deck_list(decks), "utf-8")
    tree = [
        toctree("First steps", [f"docs/{name}" for name in FIRST]),
        toctree("Gallery", ["docs/gallery", "docs/hosts"]),
        toctree("Training", ["docs/training", "docs/loops", "docs/aistore"]),
        toctree("Notebooks", [f"notebooks/{path.stem}" for path in executed] + ["slides/index"]),
        toctree("Reference", ["reference/shell", *(f"reference/{name}" for name in references)]),
        toctree("Coming from other tools", [f"docs/dialects/{path.stem}" for path in sorted((ROOT / "docs" / "dialects").glob("*.md"))]),
        toctree(
            "Design",
            [
                *(f"docs/{name}" for name in ("design", "figures", "growth", "cost", "scale", "faults")),
                "CONTRIBUTING",
                "SECURITY",
                "CHANGELOG",
            ],
        ),
    ]
    readme = re.sub(r"\((notebooks/[^)]+)\.md\)", r"(\1.ipynb)", (ROOT / "README.md").read_text("utf-8"))
    title, blank, rest = readme.partition("\n\n")
    if pictures := opening(executed):
        film, gap, rest = rest.partition("</picture>\n\n")
        rest = film + gap + pictures + rest
    readme = title + blank + rest
    (folder / "index.md").write_text(readme + "\n" + "\n".join(tree), "utf-8")
    shutil.copytree(ROOT / "docs" / "screenshots", folder / "docs" / "screenshots")


def copy_pictures(page: str, output: Path) -> None:
    """The pictures that a page names in HTML of its own, which Sphinx leaves alone."""
    for name in re.findall(r'(?:src|srcset)="(docs/screenshots/[^"]+)"', page):
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, output / name)


def opening(executed: list[Path]) -> str:
    """Pictures that lead to the notebooks that were run, three in a row."""
    names = {path.stem for path in executed}
    cells = [
        f"[![{words}](docs/screenshots/{picture}.png)](notebooks/{name}.ipynb)<br>[{words}](notebooks/{name}.ipynb)"
        for picture, name, words in OPENING
        if name in names
    ]
    rows = [cells[at : at + 3] for at in range(0, len(cells), 3)]
    lines = ["| " + " | ".join([*row, *[""] * (3 - len(row))]) + " |" for row in rows]
    return "\n".join(["| | | |", "|---|---|---|", *lines, "", ""]) if rows else ""


def write_notebook(source: Path, target: Path) -> None:
    """An executed notebook with its widgets alive from their saved state."""
    notebook = nbformat.read(source, as_version=4)
    saved = DeckWidgets()
    saved.take(notebook)
    if saved.models:
        text = START.format(saved=saved.script(), host=HOST.read_text("utf-8"), call=CALL)
        output = nbformat.v4.new_output("display_data", {"text/html": text})
        notebook.cells.append(
            nbformat.v4.new_code_cell("# what the widgets above hold", outputs=[output], metadata={"tags": ["remove-input"]})
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)


def deck_list(decks: list[Path]) -> str:
    """The page that lists the decks, with their titles."""
    items = []
    for path in decks:
        notebook = pairs.parse((ROOT / "slides" / f"{path.stem}.md").read_text("utf-8"))
        size = path.stat().st_size / 1e6
        title = deck_page.title(notebook, path.stem)
        items.append(f'<a href="{path.name}"><b>{title}</b><span>one file, {size:.1f} MB, opens without a network</span></a>')
    about = "Each deck is a notebook, executed and written as one HTML file by `tarviz deck`. Arrows turn slides, `S` opens the notes."
    return f'# Slides\n\n{about}\n\n<div class="deck-list">\n{chr(10).join(items)}\n</div>\n'


class Links(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


def dead_links(site: Path) -> list[str]:
    """Links between pages of the site that lead nowhere, and everything that would be loaded from elsewhere."""
    pages = {path: Links(re.sub(r"<script.*?</script>", "", path.read_text("utf-8"), flags=re.DOTALL)) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{path.relative_to(site)}: no file at {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors | {"", "furo-main-content"}:
                found.append(f"{path.relative_to(site)}: no place at {link}")
    return found


def main() -> int:
    from sphinx.cmd.build import build_main

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", type=Path)
    parser.add_argument("slides", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    wish = parser.parse_args()
    sources = ROOT / "build" / "site"
    assemble(sources, wish.notebooks, wish.slides)
    shutil.rmtree(wish.output, ignore_errors=True)
    folders = ["-c", str(ROOT / "docs"), "-d", f"{sources}-cache", str(sources), str(wish.output)]
    if code := build_main(["-q", "-W", "--keep-going", "-b", "html", *folders]):
        return code
    for path in wish.slides.glob("*.html"):
        shutil.copy(path, wish.output / "slides" / path.name)
    copy_pictures((wish.output / "index.html").read_text("utf-8"), wish.output)
    dead: Any = dead_links(wish.output)
    print(*dead, sep="\n", end="\n" if dead else "")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
