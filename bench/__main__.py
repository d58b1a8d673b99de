"""Measure the figures, each file in a process of its own, and write `bench/results.json`."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import pkgutil
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import bench
from bench import Figure, _data, _figure
from bench._pages import fresh_page
from tarviz.model.processors import processors

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.json"
APART = 0.1  # of a figure, at most, between two measurements of one machine
PEERS = ("tensorflow-cpu", "tensorflow", "torch", "webdataset", "ratarmountcore", "numpy", "pillow")


def names() -> list[str]:
    """The files that hold figures."""
    return sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_"))


def figures(name: str) -> list[Figure]:
    """The figures of one file."""
    found: list[Figure] = importlib.import_module(f"bench.{name}").FIGURES
    return found


def processor() -> str:
    """The processor's model."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    models = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def machine() -> str:
    """The machine and the versions, in a sentence."""
    packages = []
    for name in PEERS:
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    software = ", ".join([f"Python {platform.python_version()}", *packages])
    memory = f"{fresh_page():.1f} µs for a page of fresh memory"
    how = "medians of the rounds' ratios, page cache warm, free memory touched before each turn"
    return f"{processors()} cores of {processor()}, {memory}; {software}; {how}."


def there(package: str) -> bool:
    """Whether a package that a figure needs can be imported."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def commit() -> str:
    """The commit that is measured; with a plus where files other than results differ from it."""
    name = _git("describe", "--always", "--exclude=*")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)bench/*.json")
    return f"{name}+" if name and changed else name or "unknown"


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=FOLDER, capture_output=True, text=True, check=False).stdout.strip()


def run_one(name: str, data: Path, rounds: int, only: str | None) -> tuple[list[dict[str, Any]], bool]:
    """The lines of one file's figures, and whether all of those that could be measured were."""
    lines, sound = [], True
    for figure in figures(name):
        if only and figure.name != only:
            continue
        if absent := [name for name in figure.packages if not there(name)]:
            print(f"{figure.what:58} not measured: {', '.join(absent)} is not installed", file=sys.stderr, flush=True)
            continue
        for each in figure.sets:
            _data.make(data, each)
        begin = time.perf_counter()
        try:
            line = _figure.measure(figure, data, rounds)
        except Exception as error:  # noqa: BLE001  a peer may raise anything; the other figures are still wanted
            print(f"{figure.what:58} not measured: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            sound = False
            continue
        took = time.perf_counter() - begin
        line |= {"commit": commit(), "date": time.strftime("%Y-%m-%d", time.gmtime()), "processor": processor()}
        mark = "reached" if line["reached"] else "LOST"
        print(
            f"{figure.what:58} {line['against']:44} {line['reach']:>10} {line['shown']:>10}  {mark}  ({took:.0f} s)",
            file=sys.stderr,
            flush=True,
        )
        lines.append(line)
    return lines, sound


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"files to measure: {', '.join(names())}; NAME:FIGURE for one figure")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=FOLDER / "data")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument(
        "--again", action="store_true", help="keep what was measured, and put beside it what is measured now, here or on another machine"
    )
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if options.one:
        name, _, only = options.names[0].partition(":")
        lines, sound = run_one(name, options.data, options.rounds, only or None)
        options.results.write_text(json.dumps(lines))
        return 0 if sound else 1
    lines, failed = [], 0
    for name in options.names or names():
        with tempfile.NamedTemporaryFile(suffix=".json") as part:
            argv = [
                sys.executable,
                "-m",
                "bench",
                "--one",
                name,
                "--rounds",
                str(options.rounds),
                "--data",
                str(options.data),
                "--results",
                part.name,
            ]
            failed |= subprocess.run(argv, cwd=FOLDER.parent, check=False).returncode
            lines += json.loads(Path(part.name).read_text() or "[]")
    if options.again:
        add(options.results, lines)
    else:
        merge(options.results, lines)
    print(verdict(lines), file=sys.stderr)
    return int(bool(failed))


def verdict(lines: list[dict[str, Any]]) -> str:
    """What was measured, the figures that fall short first."""
    rows = sorted(lines, key=lambda line: bool(line["reached"]))
    told = [f"{'reached' if line['reached'] else 'LOST':8}{line['what']}: {line['shown']}, to reach {line['reach']}" for line in rows]
    return "\n".join([f"{sum(not line['reached'] for line in lines)} of {len(lines)} figures fall short", *told])


def add(path: Path, lines: list[dict[str, Any]]) -> None:
    """Put what was measured again beside what was measured before, and say which figures are further apart than `APART`.

    Two processors are not held to that: what another one gives stands in a line of its own, `elsewhere`, with its own second time.
    """
    content = json.loads(path.read_text())
    known = {line["name"]: line for line in content["figures"]}
    for line in lines:
        before = known.get(line["name"])
        if before is not None and before.get("processor") != line.get("processor"):
            if before.get("elsewhere", {}).get("processor") != line.get("processor"):
                before["elsewhere"] = _second(line)
                continue
            before = before["elsewhere"]
        if before is None:
            print(f"{line['name']}: there is nothing to put it beside; measure without --again", file=sys.stderr)
            continue
        before["again"] = _second(line)
        if (apart := abs(line["value"] / before["value"] - 1)) > APART:
            print(f"{line['name']}: {before['shown']} before, {line['shown']} again: {apart:.0%} apart", file=sys.stderr)
    _write(path, content)


def _second(line: dict[str, Any]) -> dict[str, Any]:
    return {key: line[key] for key in ("value", "shown", "date", "commit", "processor") if key in line}


def merge(path: Path, lines: list[dict[str, Any]]) -> None:
    """Put the lines into the results, in the order of the files; figures not measured now stay as they were."""
    old = json.loads(path.read_text())["figures"] if path.is_file() else []
    known = {line["name"]: line for line in [*old, *lines]}
    for name in sorted({line["name"] for line in old} - {line["name"] for line in lines}):
        print(f"{name}: kept as it was measured on {known[name].get('date', 'an earlier day')}", file=sys.stderr)
    order = [figure.name for name in names() for figure in figures(name)]
    _write(path, {"machine": machine(), "figures": [known[name] for name in order if name in known]})


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
