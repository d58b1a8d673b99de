"""Counts the lines of every feature for `docs/growth.md`: `python -m docs.lines --write` writes the table, `--check` says what has grown.

A line counts where it is neither blank nor comment nor docstring. Every file of the package belongs to the first feature that names it.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "growth.md"
PLACE = re.compile(r"(<!-- lines -->\n).*?(<!-- end of lines -->)", re.DOTALL)
SLACK = 0.25  # of a feature, before the table must be written anew, so that somebody looks at what grew


@dataclass(frozen=True, slots=True)
class Feature:
    """What `files` (patterns below `tarviz/`) hold, and the nearest other package that does it with what it needs.

    `peer`: lines of Python in the installed wheel, blank ones and comments included, counted in November 2026.
    """

    name: str
    files: tuple[str, ...]
    peer: str


FEATURES = (
    Feature("webdataset, as a dialect", ("dialects/webdataset/*",), "webdataset 6,231"),
    Feature("tar2tf, go-tfdata, TFRecorder, tarproc's names", ("dialects/*", "tarproc_scripts.py"), "the originals: unmaintained, or Go"),
    Feature("browser", ("widgets/browse/*", "widgets/answers/*", "commands/browse.py"), "FiftyOne 240,000; quak 318"),
    Feature("host and panes of every widget", ("widgets/host/*", "widgets/panes/*", "widgets/lab/*", "widgets/__init__.py"), "–"),
    Feature("map of records", ("widgets/map/*",), "jupyter-scatter: 5,616 in one class"),
    Feature("compare", ("widgets/compare/*", "commands/compare.py"), "–"),
    Feature("bench", ("widgets/bench/*", "commands/bench.py"), "–"),
    Feature("table, conditions, SQL", ("table/*", "commands/sql.py"), "sqlite-utils 11,000; datasette 26,000"),
    Feature("convert", ("commands/convert/*",), "–"),
    Feature("demo, deck, show", ("commands/demo/*", "commands/deck/*", "commands/show/*"), "–"),
    Feature("verify and repair", ("commands/verify.py",), "–"),
    Feature("tar tools", ("tools/*", "commands/*"), "ratarmount 3,200 for its command line"),
    Feature("magics", ("notebook/*",), "–"),
    Feature("command line", ("cli/*", "__main__.py"), "–"),
    Feature("viewers and looks", ("viewers/*", "looks/*"), "supervision 49,000"),
    Feature("ops, chains, selection", ("ops/*", "selection.py"), "grain 16,600, its readers included"),
    Feature("pipeline", ("pipeline.py", "run_keywords.py"), "–"),
    Feature("tf.data", ("runners/tf/*",), "–"),
    Feature("eager, torch and Ray Data loops", ("runners/*",), "torchdata 4,400"),
    Feature("engines: threads, processes, Ray", ("engines/*",), "loky 5,500 for its processes"),
    Feature("remote stores", ("stores/_remote/*", *(f"stores/{name}.py" for name in ("http", "s3", "gs", "az"))), "fsspec 21,000"),
    Feature("other stores, cache", ("stores/*",), "–"),
    Feature("reading", ("read/*",), "ratarmountcore 15,600"),
    Feature("shards from Python", ("writing.py", "outputs/encoded.py"), "–"),
    Feature("writing", ("outputs/*",), "–"),
    Feature("Examples and TFRecord", ("formats/example*", "formats/tfrecord.py", "formats/features.py"), "–"),
    Feature("tar, index, compression", ("formats/*",), "Python's tarfile 2,900"),
    Feature("errors, configuration, plugins", ("model/*", "__init__.py"), "–"),
    Feature("samples", ("samples/*",), "–"),
    Feature("contracts and servers for tests", ("testing/*",), "–"),
)  # fmt: skip


def feature_of(path: str) -> Feature | None:
    """The first feature with a pattern for `path`, which is relative to `tarviz/`."""
    return next((feature for feature in FEATURES if any(fnmatch(path, pattern) for pattern in feature.files)), None)


def python_lines(text: str) -> int:
    """
    >>> python_lines('\"\"\"Says what.\"\"\"\\n\\n# why\\nx = 1  # how\\n')
    1
    """
    lines = text.splitlines()
    dropped = {at for at, line in enumerate(lines, 1) if not line.strip() or line.strip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            dropped |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines) - len(dropped)


def page_lines(text: str) -> int:
    """Lines of JavaScript, a style sheet or HTML that are not blank and no whole-line comment."""
    bare = re.sub(r"^[ \t]*/\*.*?\*/[ \t]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    return sum(bool(line.strip()) and not line.strip().startswith("//") for line in bare.splitlines())


def files() -> Iterator[Path]:
    """What the wheel ships of our own writing."""
    yield from sorted(path for path in (ROOT / "tarviz").rglob("*") if path.suffix in {".py", ".mjs", ".css", ".html", ".j2"})


def counted() -> dict[str, tuple[int, int]]:
    """Feature → lines of Python, lines of JavaScript, style sheets and pages."""
    found = {feature.name: (0, 0) for feature in FEATURES}
    for path in files():
        feature = feature_of(path.relative_to(ROOT / "tarviz").as_posix())
        if feature is None:
            raise LookupError(f"{path.relative_to(ROOT)} belongs to no feature of docs/lines.py")
        text = path.read_text("utf-8")
        python, page = found[feature.name]
        found[feature.name] = (python + python_lines(text), page) if path.suffix == ".py" else (python, page + page_lines(text))
    return found


def table() -> str:
    rows = counted()
    total = tuple(map(sum, zip(*rows.values(), strict=True)))
    tests = sum(python_lines(path.read_text("utf-8")) for path in (ROOT / "tests").rglob("*.py"))
    lines = ["| feature | Python | JavaScript, CSS, HTML | the nearest package needs |", "| --- | --: | --: | --- |"]
    for each in FEATURES:
        python, page = rows[each.name]
        lines.append(f"| {each.name} | {python:,} | {f'{page:,}' if page else ''} | {each.peer} |")
    lines.append(f"| **all** | **{total[0]:,}** | **{total[1]:,}** | tests: {tests:,} |")
    return "\n".join(lines) + "\n"


def written() -> dict[str, int]:
    """Feature → lines of Python that the page says."""
    return {
        name: int(count.replace(",", ""))
        for name, count in re.findall(r"^\| ([^|*]+?) \| ([\d,]+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    }


def grown() -> list[str]:
    """What is not as the page says: features that are longer by more than a quarter, and those that the page lacks."""
    said = written()
    return [
        f"{name}: {python:,} lines of Python, and docs/growth.md says {said.get(name, 0):,}"
        for name, (python, _) in counted().items()
        if python > said.get(name, 0) * (1 + SLACK) + 50
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true")
    what.add_argument("--check", action="store_true")
    if parser.parse_args().write:
        PAGE.write_text(PLACE.sub(lambda place: place[1] + "\n" + table() + "\n" + place[2], PAGE.read_text("utf-8")), "utf-8")
        return 0
    found = grown()
    print("\n".join([*found, "Is it worth that much? python -m docs.lines --write"] if found else []), end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
