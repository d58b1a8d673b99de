"""Keeps notebooks in pairs and runs them: `.md` is what people edit, `.ipynb` the same for Jupyter; both are committed.

`python docs/pairs.py --write` brings each `.ipynb` in step with its `.md` (the younger file wins where both exist); `--check` says which
are out of step and leaves with 1; `--run NOTEBOOK.md -o OUT.ipynb` executes one in a folder of its own and keeps what it showed;
`--keep NOTEBOOK.md` also stores the outputs of cells tagged `keep-output` in the pair. No other output is ever committed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jupytext
import nbformat
from jupytext.combine import combine_inputs_with_outputs
from jupytext.config import load_jupytext_configuration_file

from tarviz.commands.deck import run as deck_run
from tarviz.model.errors import TarvizError

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("notebooks", "slides")
KEEP = "keep-output"
TOLD = "raises-exception"
FAILED = re.compile(r"^(?:tarviz: .*|.*: (?:command )?not found)$", re.MULTILINE)  # a shell's command that failed stops no notebook
CONFIG = load_jupytext_configuration_file(str(ROOT / "jupytext.toml"))


def sources() -> list[Path]:
    """The Markdown of every notebook and deck."""
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.md"))


def parse(text: str) -> Any:
    """A notebook from its Markdown."""
    return jupytext.reads(text, fmt="md", config=CONFIG)


def markdown(notebook: Any) -> str:
    """The Markdown of a notebook, as jupytext writes it."""
    text: str = jupytext.writes(notebook, fmt="md", config=CONFIG)
    return text


def partner(notebook: Any, before: Any | None = None, *, name: str) -> str:
    """The text of the `.ipynb` beside a `.md`: no outputs but those that tagged cells had before, the same bytes at every call."""
    made = nbformat.from_dict(notebook)
    if before is not None:
        made = combine_inputs_with_outputs(made, before)
    for at, cell in enumerate(made.cells):
        cell["id"] = f"{name}-{at:02d}"[-64:]
        if cell.cell_type == "code":
            cell["execution_count"] = None
            cell["outputs"] = [_kept(output) for output in cell.get("outputs", [])] if KEEP in cell.metadata.get("tags", []) else []
    made.metadata.pop("widgets", None)
    made["nbformat"], made["nbformat_minor"] = 4, 5
    return str(nbformat.writes(made)) + "\n"


def _kept(output: Any) -> Any:
    """An output as it is committed: a widget's picture stays, its state, which is large, does not."""
    output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    if "execution_count" in output:
        output["execution_count"] = None
    return output


def stored(path: Path) -> Any | None:
    """The notebook beside a `.md`, if there is one."""
    beside = path.with_suffix(".ipynb")
    return nbformat.read(beside, as_version=4) if beside.is_file() else None


def complaints(path: Path) -> Iterator[str]:
    """What is not as it should be with a pair."""
    name = path.relative_to(ROOT)
    text = path.read_text("utf-8")
    notebook = parse(text)
    if markdown(notebook) != text:
        yield f"{name}: jupytext would write it otherwise: make pairs"
    beside = stored(path)
    if beside is None:
        yield f"{name}: the .ipynb is missing: make pairs"
        return
    if markdown(beside) != text:
        yield f"{name}: the .ipynb is out of step: make pairs"
    for at, cell in enumerate(beside.cells):
        if cell.cell_type == "code" and cell.outputs and KEEP not in cell.metadata.get("tags", []):
            yield f"{name}: cell {at} of the .ipynb has outputs: make pairs"


def write(path: Path) -> bool:
    """Bring a pair in step; whether something was written. The `.ipynb` wins only where it was saved after the `.md`."""
    before = stored(path)
    beside = path.with_suffix(".ipynb")
    text = path.read_text("utf-8")
    if before is not None and beside.stat().st_mtime > path.stat().st_mtime + 1 and markdown(before) != text:
        text = markdown(before)
    notebook = parse(text)
    changed = False
    for target, content in ((path, markdown(notebook)), (beside, partner(notebook, before, name=path.stem))):
        if not target.is_file() or target.read_text("utf-8") != content:
            target.write_text(content, "utf-8")
            changed = True
    return changed


def run(path: Path, output: Path | None, *, keep: bool = False) -> float:
    """Execute a notebook in an empty folder; seconds it took. `output` gets it with all it showed."""
    begin = time.perf_counter()
    notebook = parse(path.read_text("utf-8"))
    with TemporaryDirectory(prefix="tarviz-") as folder:
        deck_run.execute(notebook, Path(folder))
    for at, cell in enumerate(notebook.cells):
        for shown in cell.get("outputs", []):
            if TOLD not in cell.metadata.get("tags", []) and (found := FAILED.search(str(shown.get("text", "")))):
                raise deck_run.failure(notebook, at, found[0])
    took = time.perf_counter() - begin
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, output)
    if keep:
        path.with_suffix(".ipynb").write_text(partner(parse(path.read_text("utf-8")), notebook, name=path.stem), "utf-8")
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    for flag in ("--write", "--check", "--run", "--keep"):
        parser.add_argument(flag, action="store_true")
    wish = parser.parse_args()
    paths = [path.resolve() for path in wish.paths] or sources()
    if wish.run or wish.keep:
        for path in paths:
            try:
                print(f"{path.relative_to(ROOT)}: {run(path, wish.output, keep=wish.keep):.0f} s", flush=True)
            except TarvizError as error:
                print(f"{path.relative_to(ROOT)}: {error}", file=sys.stderr)
                return 1
    if wish.write:
        for path in paths:
            if write(path):
                print(f"{path.relative_to(ROOT)}: written")
    found = [line for path in paths for line in complaints(path)] if wish.check else []
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
