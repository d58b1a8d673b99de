"""Writes and checks what the documents take from the code: the tables between markers, the commands shown, the links.

`python docs/tables.py --write` puts every table in its place; `--check` says what is stale and leaves with 1.
A place is `<!-- table: NAME -->` … `<!-- end of table -->` in any Markdown file of the repository.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tarviz import cli
from tarviz.model import plugins as model_plugins

ROOT = Path(__file__).resolve().parents[1]
PLACE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
CONSOLE = re.compile(r"^```(?:console|bash|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ESCAPED = re.compile(r"^!(.*tarviz .*)$", re.MULTILINE)  # a cell that calls the shell
MAGIC = re.compile(r"^%{1,2}(?:tv|tarviz) (\w.*)$", re.MULTILINE)


def markdown(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in lines)


def first_sentence(folder: str, name: str) -> str:
    path = ROOT / "tarviz" / folder / f"{name}.py"
    if not path.is_file():
        path = path.with_suffix("") / "__init__.py"
    if not path.is_file():
        return ""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return re.split(r"(?<=[.])\s", " ".join(text.split("\n\n")[0].split()))[0].rstrip(".")


def verbs() -> str:
    there = model_plugins.names("commands")
    groups = {**cli.GROUPS, "Others": tuple(sorted(set(there).difference(*cli.GROUPS.values())))}
    rows = [(title if at == 0 else "", f"`tarviz {name}`", first_sentence("commands", name)) for title, names in groups.items()
            for at, name in enumerate([name for name in names if name in there])]  # fmt: skip
    return markdown(("", "verb", "what it does"), rows)


def plugins(folder: str, what: str) -> str:
    return markdown((what, "what it does"), [(f"`{name}`", first_sentence(folder, name)) for name in model_plugins.names(folder)])


def extras() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {name: [re.split(r"[<>=\[; ]", each)[0] for each in needs] for name, needs in project["optional-dependencies"].items()}
    names["all"] = re.findall(r"\[(.*)\]", project["optional-dependencies"]["all"][0])[0].split(",")
    return markdown(("extra", "brings"), [(f"`{name}`", ", ".join(needs)) for name, needs in names.items()])


def licences() -> str:
    """What each extra asks for by itself, by licence."""
    known = json.loads((ROOT / "docs" / "licences.json").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    rows = []
    for extra, needs in {"": project["dependencies"], **project["optional-dependencies"]}.items():
        by: dict[str, list[str]] = {}
        for name in (re.split(r"[<>=\[; ]", each)[0] for each in needs):
            if name != "tarviz":
                by.setdefault(known[name], []).append(name)
        if by:
            told = "; ".join(f"{text}: {', '.join(names)}" for text, names in sorted(by.items(), key=lambda each: -len(each[1])))
            rows.append((f"`{extra}`" if extra else "(the core)", told))
    return markdown(("extra", "licences"), rows)


def figures() -> str:
    """Every figure, those that fall short first."""
    path = ROOT / "bench" / "results.json"
    if not path.is_file():
        return "Not measured yet: `make bench`.\n"
    content = json.loads(path.read_text("utf-8"))
    rows = [
        (
            each["what"],
            each["against"],
            each["reach"],
            f"**{each['shown']}**" if each["reached"] else each["shown"],
            _measured(each, content["machine"]),
        )
        for each in _lost_first(content["figures"])
    ]
    header = ("what", "against", "to reach", "measured", "lowest to highest; when")
    return f"{content['machine']}\n\n{_verdict(content['figures'])}\n\n{markdown(header, rows)}"


IN_SHORT = (
    "browse: 24 pictures of a 1 GB shard never seen before",
    "iterate records, raw bytes, tiny",
    "tar → TFRecord, one process, tiny",
    "decode + resize 224 + batch, photo, tf, 2 threads",
    "index a shard, tiny",
    "1 GB of photos over loopback, s3, records cut",
    "a table of 1,000,000 records of JSON and captions, the first time",
    "sort by key, tiny",
)


def in_short() -> list[dict[str, Any]]:
    """A few of the figures, each where it first stands in the table of all; those that fall short first."""
    first = {each["what"]: each for each in reversed(_results())}
    return _lost_first([first[what] for what in IN_SHORT if what in first])


def figures_in_short() -> str:
    """How many fall short, and one row for each of a few figures."""
    rows = [(each["what"], each["against"], each["reach"], each["shown"]) for each in in_short()]
    return f"{_verdict(_results())}\n\n{markdown(('what', 'against', 'to reach', 'measured'), rows)}"


def _results() -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = json.loads((ROOT / "bench" / "results.json").read_text("utf-8"))["figures"]
    return lines


def _lost_first(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(lines, key=lambda line: bool(line["reached"]))


def _verdict(lines: list[dict[str, Any]]) -> str:
    return f"Of {len(lines)} figures {sum(not each['reached'] for each in lines)} fall short; they stand first."


def growth() -> str:
    path = ROOT / "bench" / "growth.json"
    if not path.is_file():
        return "Not measured yet: `python -m bench._growth`.\n"
    content = json.loads(path.read_text("utf-8"))
    units = {"records": ("µs a record", 1e6), "shards": ("ms a shard", 1e3)}
    rows = []
    for name, (unit, scale) in units.items():
        for line, points in content[name]["lines"].items():
            costs = (seconds / count * scale for count, seconds in points)
            cells = (f"{cost:.3g}" if cost < 1000 else f"{cost:,.0f}" for cost in costs)
            rows.append((f"`{line}`, {unit}", ", ".join(f"{cell} ({count:,})" for cell, (count, _) in zip(cells, points, strict=True))))
    when = ", ".join(sorted({f"{content[name]['date']}, {content[name]['commit']}" for name in ("records", "shards", "size", "workers")}))
    return f"{content['machine'].rpartition(';')[0]}. Measured {when}.\n\n{markdown(('what', 'cost (of how many)'), rows)}"


def _measured(line: dict[str, Any], machine: str) -> str:
    """How far the rounds were apart, the day and commit of the measurement, what a second one found, and what another processor gives.

    The processor is told where it is not `machine`'s.
    """
    ratios = line.get("ratios")
    spread = f"{min(ratios):.3g} to {max(ratios):.3g}" if ratios else ""
    when = f"{line['date']}, {line['commit']}" if "commit" in line else "before 2026-11-22"
    if (processor := line.get("processor", "")) not in machine:
        when += f", {processor}"
    elsewhere = ""
    if other := line.get("elsewhere"):
        elsewhere = "; ".join(part for part in (f"on {other['processor']} {_shown(other, line)}", _again(other)) if part)
    few = f"one setting: {line['few']}" if line.get("few") else ""
    peers = f"the best of {line['tried']} settings, then {line['runner_up']}" if line.get("tried") else few
    return "; ".join(part for part in (spread, peers, when, _again(line), elsewhere, line.get("note", "")) if part)


def _again(line: dict[str, Any]) -> str:
    return f"again {_shown(line['again'], line)}" if "again" in line else ""


def _shown(line: dict[str, Any], beside: dict[str, Any]) -> str:
    """A value, with the day and commit where they are others than those of the one it stands beside."""
    other = ", ".join(line[key] for key in ("date", "commit") if line[key] != beside.get(key))
    return f"{line['shown']}" + (f" ({other})" if other else "")


def samples(dialect: str) -> str:
    """The code samples of a dialect's texts, and what had to be changed in them."""
    rows = []
    for sample in tomllib.loads((ROOT / "tests" / "dialects" / "samples.toml").read_text("utf-8"))["sample"]:
        if sample["dialect"] != dialect:
            continue
        first, last = sample["lines"]
        changes = [*dict.fromkeys([why for _, _, why in sample.get("edits", []) if why] + sample.get("notes", []))]
        text = {"000": "first text, ", "001": "second text, "}.get(sample["text"], "")
        place = f"{text}line {first}" if first == last else f"{text}lines {first} to {last}"
        rows.append((sample["title"], place, "; ".join(changes) or "none", f"`{sample['name']}`"))
    return markdown(("sample", "in the text", "edits", "test"), rows)


def explained_codes() -> str:
    from docs.codes import rows

    return markdown(("code", "what it means", "what to do"), rows())


def faults() -> str:
    from docs.faults import rows

    return markdown(("", "what goes wrong", "what comes of it", "shown by"), rows())


def scale_costs() -> str:
    from docs import scale

    if not (ROOT / "bench" / "scale.json").is_file():
        return "Not measured yet: `python -m bench._scale`.\n"
    return f"{scale.when()}\n\n{markdown(('what', 'measured'), scale.costs())}"


def scale_model() -> str:
    from docs import scale

    if not (ROOT / "bench" / "scale.json").is_file():
        return "Not measured yet: `python -m bench._scale`.\n"
    return markdown(scale.HEADER, scale.table())


TABLES = {
    **{f"samples:{name}": functools.partial(samples, name) for name in ("tar2tf", "tfdata", "tfrecorder", "webdataset")},
    "verbs": verbs,
    "ops": lambda: plugins("ops", "op"),
    "stores": lambda: plugins("stores", "store"),
    "viewers": lambda: plugins("viewers", "viewer"),
    "dialects": lambda: plugins("dialects", "dialect"),
    "extras": extras,
    "licences": licences,
    "figures": figures,
    "figures_in_short": figures_in_short,
    "growth": growth,
    "codes": explained_codes,
    "faults": faults,
    "scale-costs": scale_costs,
    "scale-model": scale_model,
}


def filled(text: str) -> str:
    return PLACE.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}{match[3]}", text)


def documents() -> list[Path]:
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, check=True
    )
    return [path for name in tracked.stdout.decode().splitlines() if (path := ROOT / name).is_file()]


def dead_links(path: Path, text: str) -> Iterator[str]:
    for target in LINK.findall(text):
        if not re.match(r"[a-z]+:|#", target) and not (path.parent / target.partition("#")[0]).exists():
            yield f"{path.relative_to(ROOT)}: no file at the link {target}"


def wrong_commands(path: Path, text: str) -> Iterator[str]:
    """Verbs and flags in shell examples and cells that tarviz does not have."""
    shells = [line for block in CONSOLE.findall(text) for line in block.splitlines()]
    calls = [(line, words, set()) for line in (*shells, *ESCAPED.findall(text)) for words in _calls(line.removeprefix("$ "))]
    calls += [(line, words, {"-o"}) for line in MAGIC.findall(text) for words in _calls(f"tarviz {line}")]
    for line, words, more in calls:
        verb = words[0] if words else "--help"
        if verb.startswith("-"):
            continue
        if verb not in model_plugins.names("commands"):
            yield f"{path.relative_to(ROOT)}: there is no verb {verb!r}: {line}"
            continue
        command: click.Command = model_plugins.load("commands", verb).command
        flags = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)} | {"--help", "-h"} | more
        for word in words[1:]:
            if re.match(r"--[a-z]|-[a-zA-Z]$", word) and word.partition("=")[0] not in flags:
                yield f"{path.relative_to(ROOT)}: tarviz {verb} has no {word}: {line}"


def _calls(line: str) -> Iterator[list[str]]:
    """The words after each `tarviz` of a command line, up to the next pipe."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return
    while "tarviz" in words:
        words = words[words.index("tarviz") + 1 :]
        stop = next((at for at, word in enumerate(words) if word in ("|", "&&", ";", "||", ">", "&")), len(words))
        yield words[:stop]


def main() -> int:
    from docs import plot

    complaints = []
    if "--write" in sys.argv:
        plot.PLACE.write_text(plot.svg(in_short()), "utf-8")
    elif plot.PLACE.read_text("utf-8") != plot.svg(in_short()):
        complaints.append(f"{plot.PLACE.relative_to(ROOT)}: the picture is stale: make fix")
    for path in documents():
        text = path.read_text("utf-8")
        if "--write" in sys.argv and (new := filled(text)) != text:
            path.write_text(text := new, "utf-8")
        if filled(text) != text:
            complaints.append(f"{path.relative_to(ROOT)}: a table is stale: make fix")
        complaints += [*dead_links(path, text), *wrong_commands(path, text)]
    print(*complaints, sep="\n", end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
