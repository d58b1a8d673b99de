"""Make slides of a notebook: one HTML file that opens anywhere, with no network and no kernel, its widgets alive."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import click

from tarviz import stores
from tarviz.cli import verb_base
from tarviz.commands.deck import run
from tarviz.model.config import format_size
from tarviz.model.errors import Fault, StoreError, UsageError, redact, safe

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_PRINTING = 120  # seconds


@dataclass(frozen=True)
class Deck(verb_base.Result):
    """A deck that was written. Exit code 1: it names addresses elsewhere, which a reader without a network does not see."""

    path: str
    size: int
    slides: int
    widgets: int
    seconds: float
    pdf: str | None = None
    warnings: list[Fault] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [f"{self.slides} slides"] + ([f"{self.widgets} widget{'s' * (self.widgets != 1)}"] if self.widgets else [])
        line = f"{redact(safe(self.path))}: {', '.join(parts)}, {format_size(self.size)}, in {self.seconds:.0f} s"
        return "\n".join([line, *([redact(safe(self.pdf))] if self.pdf else []), *map(str, self.warnings)])


def deck(
    file: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    execute: Literal["always", "never"] = "always",
    pdf: bool | str | os.PathLike[str] = False,
    budget: int | str = run.BUDGET,
    timeout: int = 600,
) -> Deck:
    """Slides of a notebook (`.md` in jupytext's form, or `.ipynb`) as one HTML file; `output` is `FILE.html` if not given.

    Cells run in the notebook's folder with this Python; `execute="never"` shows the outputs stored in the `.ipynb`. `pdf`: also print
    it, beside the HTML or to the path given; needs Chromium. `budget`: bytes that each widget may keep, so that records can be opened
    without a kernel. `timeout`: seconds for one cell. Cells with a `slide_type` of slide, subslide, fragment, skip and notes mean what
    they mean in Jupyter. Needs the extras `lab` and `deck`; `DataError` says which cell failed.
    """
    from tarviz.commands.deck import page as deck_page

    if execute not in ("always", "never"):
        raise UsageError(f"execute={execute!r} is neither 'always' nor 'never'.")
    begin = time.perf_counter()
    path = Path(os.fspath(file))
    target = os.fspath(output) if output is not None else str(path.with_suffix(".html"))
    notebook = run.read(path, outputs=execute == "never")
    if execute == "always":
        run.execute(notebook, path.absolute().parent, timeout=timeout, budget=budget)
    made = deck_page.page(notebook, name=path.stem, folder=path.absolute().parent)
    data = made.html.encode("utf-8", "backslashreplace")
    stores.write(target, data)
    printed = None
    if pdf:
        printed = str(Path(target).with_suffix(".pdf") if pdf is True else os.fspath(pdf))
        print_pdf(made.html, Path(printed))
    warnings = [Fault("W_EXTERNAL", f"a reader without a network does not see {address}", shard=str(path)) for address in made.external]
    return Deck(target, len(data), made.slides, made.widgets, round(time.perf_counter() - begin, 2), printed, warnings)


def print_pdf(html: str, path: Path) -> None:
    """Print a deck, a page a slide. Needs Chromium, Chrome or Edge; `StoreError` where it fails."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise UsageError("A PDF needs Chromium, Chrome or Edge.", hint="Install one, on Debian and Ubuntu: sudo apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="tarviz-") as folder:
        page, made = Path(folder) / "deck.html", Path(folder) / "deck.pdf"
        page.write_text(html, "utf-8")
        flags = ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", f"--user-data-dir={folder}/profile"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            flags.append("--no-sandbox")  # Chromium refuses to start as root otherwise; the page is ours and may load nothing
        flags += ["--no-pdf-header-footer", "--virtual-time-budget=20000", f"--print-to-pdf={made}", f"{page.as_uri()}?print-pdf"]
        try:
            done = subprocess.run([browser, *flags], capture_output=True, timeout=_PRINTING, check=False)
        except subprocess.TimeoutExpired as error:
            raise StoreError(f"{browser} did not print within {_PRINTING} s.", code="E_WRITE") from error
        if done.returncode or not made.is_file():
            last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise StoreError(f"{browser} did not print: {safe(last)[:200] or done.returncode}", code="E_WRITE")
        stores.write(path, made.read_bytes())


@verb_base.verb("deck", example=["tarviz deck slides/tarviz-in-ten-minutes.md -o talk.html", "tarviz deck talk.md -o talk.html --pdf"])
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False))
@click.option("-o", "--output", metavar="URL", help="Where to write. [default: FILE.html]")
@verb_base.choice("execute", ("always", "never"), "never: outputs stored in the .ipynb.")
@click.option("--pdf", is_flag=True, help="Also print it, beside the HTML; needs Chromium.")
@click.option(
    "--budget",
    type=verb_base.size,
    default=run.BUDGET,
    show_default=True,
    help="What each widget may keep, to be alive without a kernel.",
)
@click.option("--timeout", type=click.IntRange(min=1), default=600, show_default=True, metavar="SECONDS", help="For one cell.")
@verb_base.result_options
def command(file: str, as_json: bool, **options: Any) -> Any:
    """Make slides of a notebook.

    FILE is a notebook as Markdown (jupytext) or .ipynb, its cells marked slide, subslide, fragment, skip or notes as in Jupyter. It is
    executed, then written as one HTML file that needs nothing else: no network, no server, no kernel. Keys: arrows turn slides, S opens
    the speaker's notes, O shows all, F fills the screen; ?print-pdf after the address prints.
    """
    return verb_base.emit(deck(file, **options), as_json)
