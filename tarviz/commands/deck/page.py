"""A notebook as one HTML file of slides that opens anywhere: reveal.js from an installed package, MathML, widgets from saved state."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tarviz.commands.deck.widgets import DeckWidgets
from tarviz.model.errors import DataError, MissingPackageError

POLICY = "default-src 'self' file: data: blob: 'unsafe-inline'; object-src 'none'; base-uri 'none'; form-action 'none'"
"""What the page may load: what it holds. `file:` and `'self'` are for the speaker's window, which shows the page twice in frames."""

_FOLDER = Path(__file__).with_name("template")
_HOST = Path(__file__).parents[2] / "widgets" / "host" / "host.mjs"
_REVEAL = {"reset.css": "dist", "reveal.css": "dist", "reveal.js": "dist", "notes.js": "plugin/notes"}
_EXTERNAL = re.compile(
    r"""<(?:img|script|link|iframe|video|audio|source|embed)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|url\(["']?(https?://[^"')]+)""",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class DeckPage:
    """A deck: its HTML, how many slides and widgets it has, and the addresses it names that a reader without a network will not see."""

    html: str
    slides: int
    widgets: int
    external: list[str]


def page(notebook: Any, *, name: str, folder: Path) -> DeckPage:
    """The slides of a notebook (`slideshow` metadata as in Jupyter: slide, subslide, fragment, skip, notes) as one page.

    `folder` is where pictures named in Markdown lie; they are put into the page. The notebook is changed: its widgets move out of it.
    """
    try:
        from jinja2 import pass_context
        from nbconvert.exporters.html import HTMLExporter
        from nbconvert.filters.markdown_mistune import MarkdownWithMath
    except ImportError as error:
        raise MissingPackageError.of("nbconvert", "Making a deck", "deck") from error
    from tarviz.commands.deck.math import Renderer

    _drop_hidden(notebook)
    slides = mark(notebook.cells)
    saved = DeckWidgets()
    saved.take(notebook)

    class Exporter(HTMLExporter):  # type: ignore[misc]
        """nbconvert with our Markdown."""

        @pass_context
        def markdown2html(self, context: Any, source: str) -> str:
            attachments = context.get("cell", {}).get("attachments", {})
            renderer = Renderer(escape=False, exclude_anchor_links=True, embed_images=True, path=str(folder), attachments=attachments)
            return str(MarkdownWithMath(renderer=renderer).render(source))

    filters = {"clean_html_svg": _svg, "figure_words": _words}
    exporter = Exporter(extra_template_basedirs=[str(_FOLDER)], template_name="tarviz", filters=filters)
    reveal = reveal_files()
    deck = {
        "title": title(notebook, name),
        "policy": POLICY,
        "style": f"{reveal['reset.css']}\n{reveal['reveal.css']}\n{_read('theme.css')}",
        "scripts": [reveal["reveal.js"], reveal["notes.js"]],
        "widgets": saved.script(),
        "start": f"{_HOST.read_text('utf-8')}\n{_read('start.mjs')}",
    }
    text, _ = exporter.from_notebook_node(notebook, resources={"deck": deck})
    body = text.partition('<div class="slides">')[2].partition("<script")[0]
    external = sorted({found for pair in _EXTERNAL.findall(body) for found in pair if found})
    return DeckPage(text, slides, len(saved.models), external)


def mark(cells: list[Any]) -> int:
    """Note at each cell which stack of slides, slide or fragment begins and ends there; returns how many slides there are.

    A slide is in a stack (`slide_start`, `slide_end`) only where subslides follow it. The first cell that shows begins a
    slide whatever its type is, as in Jupyter.
    """
    kinds = [cell.metadata.get("slideshow", {}).get("slide_type", "-") or "-" for cell in cells]
    shown = [at for at, kind in enumerate(kinds) if kind not in ("skip", "notes")]
    if not shown:
        raise DataError("All cells are skipped: no slides.", code="E_NOTEBOOK", hint="Mark a cell with slide_type slide.")
    kinds[shown[0]] = "slide"
    kinds[: shown[0]] = ["skip"] * shown[0]
    last, fragment, slides, stack = None, False, 0, False
    for at, (cell, kind) in enumerate(zip(cells, kinds, strict=True)):
        cell.metadata["slide_type"] = kind
        if kind in ("slide", "subslide"):
            if last is not None:
                last.metadata.update(fragment_end=fragment, subslide_end=True, slide_end=stack and kind == "slide")
            if kind == "slide":
                stack = next((later == "subslide" for later in kinds[at + 1 :] if later in ("slide", "subslide")), False)
            cell.metadata.update(subslide_start=True, slide_start=stack and kind == "slide")
            fragment, slides = False, slides + 1
        elif kind == "fragment" and last is not None:
            last.metadata["fragment_end"] = fragment
            cell.metadata["fragment_start"] = fragment = True
        if kind != "skip":
            last = cell
    if last is not None:
        last.metadata.update(fragment_end=fragment, subslide_end=True, slide_end=stack)
    return slides


def title(notebook: Any, name: str) -> str:
    """What the page is called: `title` of the metadata, the first heading, or the file's name."""
    if given := notebook.metadata.get("title"):
        return str(given)
    headings = (re.search(r"^#\s+(.+)", cell.source, re.MULTILINE) for cell in notebook.cells if cell.cell_type == "markdown")
    return next((found[1].strip() for found in headings if found), name)


def _drop_hidden(notebook: Any) -> None:
    """Take out what nobody sees: outputs of cells that are skipped."""
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", ())
        if cell.cell_type == "code" and (cell.metadata.get("slideshow", {}).get("slide_type") == "skip" or "remove-output" in tags):
            cell.outputs = []


def _svg(text: str | list[str]) -> str:
    """An SVG as an element, without what belongs before one in a file."""
    return re.sub(r"^.*?(?=<svg)", "", "".join(text), flags=re.DOTALL)


def _words(output: Any) -> str:
    """Alternative text of a figure: what its object says of itself, unless that is an address in memory."""
    text = str(output.data.get("text/plain", "")).partition("\n")[0]
    return html.escape("figure" if not text or " at 0x" in text or text.startswith("<Figure") else text[:200], quote=True)


def _read(name: str) -> str:
    return (_FOLDER / "tarviz" / name).read_text("utf-8")


def reveal_files() -> dict[str, str]:
    """The files of reveal.js by name, from the installed package that carries them."""
    spec = find_spec("sphinx_revealjs")
    for place in (spec.submodule_search_locations or []) if spec else []:
        paths = {name: Path(place) / "_static" / "revealjs" / folder / name for name, folder in _REVEAL.items()}
        if all(path.is_file() for path in paths.values()):
            return {name: path.read_text("utf-8").replace("</script", "<\\/script") for name, path in paths.items()}
    raise MissingPackageError.of("sphinx-revealjs", "A deck (it carries reveal.js)", "deck")
