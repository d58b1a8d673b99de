"""Writes the reference as Markdown: the Python side from signatures and docstrings, the shell side from the parser of the verbs."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from tarviz import cli
from tarviz.model import plugins
from tarviz.model.errors import MissingPackageError

BAR = "\\|"  # in a table, a bar between backticks ends the cell too


@dataclass(frozen=True)
class Page:
    """One page of the reference: its title, and the modules it shows, each with the names that are shown (none: all public ones)."""

    title: str
    modules: tuple[tuple[str, str], ...]


def _verbs() -> tuple[tuple[str, str], ...]:
    return tuple((f"tarviz.commands.{name}", name) for group in cli.GROUPS.values() for name in group if name in plugins.names("commands"))


def _runners() -> tuple[tuple[str, str], ...]:
    return (("tarviz.runners.eager", "run Eager"), ("tarviz.runners.tf", "run"), ("tarviz.runners.torch", "run TorchRecords"))


def pages() -> dict[str, Page]:
    """File name → page."""
    return {
        "verbs": Page("The verbs in Python", _verbs()),
        "reading": Page("Reading shards", (("tarviz.read.stream", ""), ("tarviz.model.types", ""))),
        "writing": Page("Shards from Python", (("tarviz.writing", "writer write Writer WrittenShards"),)),
        "pipeline": Page("Pipelines", (("tarviz.pipeline", "Pipeline Plan"), ("tarviz.selection", ""), *_runners())),
        "ops": Page("Ops", (("tarviz.ops", ""),)),
        "samples": Page("Sample shards", (("tarviz.samples", "digits photos zoo write_shard"),)),
        "config": Page("Options", (("tarviz.model.config", "Options options parse_size"),)),
        "errors": Page("Errors", (("tarviz.model.errors", ""),)),
        "stores": Page("Stores", (("tarviz.stores", "of expand join"), ("tarviz.stores.base", "Stat Stream Sink OneSink Store"))),
        "formats": Page(
            "Formats and outputs",
            (("tarviz.formats.example", ""), ("tarviz.formats.tfrecord", ""), ("tarviz.outputs.names", ""), ("tarviz.outputs.outputs", "")),
        ),
        "viewers": Page("Viewers", (("tarviz.viewers", ""),)),
        "widgets": Page(
            "Widgets",
            (
                ("tarviz.widgets.browse.controller", "Browser RecordRef"),
                ("tarviz.widgets.compare.controller", "Compare"),
                ("tarviz.widgets.bench.controller", "BenchRun"),
            ),
        ),
        "testing": Page("For your own tests", tuple((f"tarviz.testing.{name}", "") for name in ("faults", "ops", "stores", "viewers"))),
    }


def markdown(page: Page) -> str:
    """One page of the Python reference."""
    parts = [f"# {page.title}\n"]
    for name, wanted in page.modules:
        try:
            module = importlib.import_module(name)
        except MissingPackageError as error:
            parts.append(f"## `{name}`\n\nLeft out: {error}\n")
            continue
        shown = wanted.split() or list(_public(module))
        if len(page.modules) > 1 and not name.startswith("tarviz.commands"):
            parts.append(f"## `{name.removesuffix('._base')}`\n\n{docstring(module)}\n")
        elif not name.startswith("tarviz.commands"):
            parts.append(f"{docstring(module)}\n")
        place = "tarviz" if name.startswith("tarviz.commands") else name
        parts += [described(place, each, getattr(module, each)) for each in shown]
    return "\n".join(parts)


def _public(module: Any) -> Iterator[str]:
    """The names a module offers: those it lists, else the classes and functions that are its own."""
    listed = getattr(module, "__all__", None)
    for name in listed or vars(module):
        value = getattr(module, name)
        own = listed is not None or getattr(value, "__module__", "") == module.__name__
        if own and not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value)):
            yield name


def described(place: str, name: str, value: Any, depth: int = 3) -> str:
    """A class or function with its signature, docstring and, for a class, its public methods and properties."""
    fence = ":" * (depth + 2)
    kind = "class" if inspect.isclass(value) else "property" if isinstance(value, property) else "function" if "." not in name else "method"
    directive = "exception" if kind == "class" and issubclass(value, BaseException) else kind
    call = "" if kind == "property" else signature(value)
    lines = [f"{fence}{{py:{directive}}} {name}{call}", f":module: {place}", "", docstring(value), ""]
    if kind == "class":
        for member, found in vars(value).items():
            found = found.__func__ if isinstance(found, staticmethod | classmethod) else found
            if member.startswith("_") or not (inspect.isfunction(found) or isinstance(found, property)) or not inspect.getdoc(found):
                continue
            lines += [described(place, f"{name}.{member}", found, depth - 1)]
    return "\n".join([*lines, fence, ""])


def signature(value: Any) -> str:
    """The signature as it is written, without `self`."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(…)"
    given = [each for each in found.parameters.values() if each.name != "self"]
    text = str(found.replace(parameters=given))
    return re.sub(r"<factory>|<object object at [^>]*>|<(?:function|class) [^>]*>", "…", text).replace("'", '"') if text else "()"


def docstring(value: Any) -> str:
    """A docstring as Markdown: what stands after `>>>` and below `::` becomes code."""
    lines, made, fence = (inspect.getdoc(value) or "").splitlines(), [], ""
    for at, line in enumerate(lines):
        if (fence == "pycon" and not line.strip()) or (fence == "text" and line.strip() and not line.startswith("    ")):
            fence = ""
            made += ["```", ""]
        if not fence and line.startswith(">>>"):
            fence = "pycon"
            made += ["", "```pycon"]
        elif not fence and line.startswith("    ") and at > 1 and not lines[at - 1].strip() and lines[at - 2].endswith("::"):
            fence = "text"
            made += ["```text"]
        made.append(line[4:] if fence == "text" else (line[:-1] if line.endswith("::") and not fence else line))
    return "\n".join([*made, "```"] if fence else made)


def shell() -> str:
    """The reference of the command line, from the parser."""
    parts = ["# The shell\n", "Every verb is also a magic (`%tv VERB …` after `%load_ext tarviz`) and a function (`tarviz.VERB(…)`).\n"]
    for title, names in cli.GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [_verb(name, plugins.load("commands", name).command) for name in names if name in plugins.names("commands")]
    return "\n".join(parts)


def _verb(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"tarviz {name}")
    usage = " ".join([f"tarviz {name}", *command.collect_usage_pieces(context)])
    rows = []
    for parameter in command.get_params(context):
        if (record := parameter.get_help_record(context)) is not None:
            flags, text = record
            rows.append(f"| `{flags.replace('|', BAR)}` | {_cell(text)} |")
    example = "\n".join(f"$ {line}" for line in getattr(command, "examples", ()))
    text = inspect.cleandoc(command.help or "")
    table = "\n".join(["| option | |", "|---|---|", *rows])
    return f"### `tarviz {name}`\n\n```text\n{usage}\n```\n\n{text}\n\n{table}\n\n```console\n{example}\n```\n"


def _cell(text: str) -> str:
    return re.sub(r"([|<>*_{}\[\]])", r"\\\1", " ".join(text.split()))
