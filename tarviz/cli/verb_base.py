"""What all verbs share at the shell: the result they return, how it is written, common options."""

from __future__ import annotations

import json as _json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce
from typing import Any, TextIO, TypeVar

import click

from tarviz import stores
from tarviz.cli.progress import Progress as Progress
from tarviz.cli.progress import hush as hush
from tarviz.cli.progress import progress as progress
from tarviz.cli.progress import quiet
from tarviz.cli.progress import silent_warnings as silent_warnings
from tarviz.model import config
from tarviz.model.errors import TarvizError, UsageError, redact, safe
from tarviz.read.keywords import CHOICES

F = TypeVar("F", bound=Callable[..., Any])
_CODE = re.compile(r"\b([EW])_[A-Z][A-Z_]+\b")  # of an error or a warning


class Result:
    """What a verb returns: text for the shell, a rich form for notebooks, data for `--json`, an exit code.

    Exit codes: 0 all of it, clean; 1 finished, but something was skipped by policy or warned about; 2 failed.
    """

    @property
    def exit_code(self) -> int:
        """0, 1 or 2, as above: by the result's `faults` and `warnings`, and by what its `report` warns of and left out."""
        report = getattr(self, "report", self)
        if getattr(self, "faults", ()):
            return 2
        return 1 if getattr(report, "warnings", ()) or getattr(report, "skipped", ()) else 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready content of the result: the public fields of a dataclass, values without a JSON form as text."""
        if not is_dataclass(self):
            raise TypeError(f"{type(self).__name__} is not a dataclass: it must define to_dict()")
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self) if not each.name.startswith("_")}

    def lines(self, json: bool = False) -> Iterator[str]:
        """What the shell writes, in pieces that each get a line end; override it to write while working."""
        yield _json.dumps(self.to_dict()) if json else str(self)

    def notes(self) -> Iterator[str]:
        """What was skipped or warned of, written to standard error beside `lines`."""
        yield from ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        import html

        text = str(self)
        return {"text/plain": text, "text/html": f"<pre>{html.escape(text)}</pre>"}


def _plain(value: Any) -> Any:
    """A value as JSON knows them: dataclasses and mappings as objects, other collections as lists, what is left as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return redact(value) if isinstance(value, str) else value
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value) if not each.name.startswith("_")}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    return redact(safe(str(value)))


@dataclass(frozen=True, slots=True)
class Door:
    """How the verb was invoked (shell, magic, notebook); kept as `obj` of click's root context.

    `capture`: a magic or notebook, which gets the result. `cell` is what stood in the cell below a magic: its lines, or the value of
    its last one, or its text, as the verb's command asks for (`command.cell` is "lines", "value" or "text").
    """

    capture: bool = False
    cell: Any = None


def in_notebook() -> bool:
    """Whether this is a notebook, that shows widgets: an IPython with a kernel, or marimo. A terminal's IPython is none."""
    if "marimo" in sys.modules and sys.modules["marimo"].running_in_notebook():
        return True
    if "IPython" not in sys.modules:
        return False
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def door() -> Door:
    """How the verb at work was invoked."""
    context = click.get_current_context(silent=True)
    found = context.find_root().obj if context else None
    return found if isinstance(found, Door) else Door()


def for_widgets() -> bool:
    """Whether who called the verb shows the widget it returns."""
    return door().capture and in_notebook()


def emit(result: Any, json: bool = False, *, err: bool = False) -> Any:
    """End a verb: write the result (to stderr with `err=True`, and where stdout carries data) and leave with its exit code.

    Called through `cli.invoke` (magics, notebooks) nothing is written and the result comes back.
    """
    if door().capture:
        return result
    err = err or getattr(result, "to_stdout", False)
    stream = sys.stderr if err else sys.stdout
    plain = json or not _has_colours(stream)
    flushed = time.monotonic()
    for piece in result.lines(json):
        if not (err and quiet.get()):
            stream.write(f"{piece if plain else colour(piece, stream)}\n")
        if (now := time.monotonic()) > flushed + 0.2:  # what takes long is seen as it comes
            stream.flush()
            flushed = now
    stream.flush()
    if not json and not quiet.get():
        for note in result.notes():
            sys.stderr.write(f"{colour(note, sys.stderr)}\n")
    if result.exit_code:
        raise click.exceptions.Exit(result.exit_code)
    return result


def colour(text: str, stream: TextIO) -> str:
    """The codes in a text, errors' red and warnings' yellow, where `stream` is a terminal and NO_COLOR (no-color.org) is not set."""
    if not _has_colours(stream):
        return text
    return _CODE.sub(lambda code: click.style(code[0], fg="red" if code[1] == "E" else "yellow"), text)


def _has_colours(stream: TextIO) -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


class Verb(click.Command):
    """A command whose help reads like a manual page and ends with an example."""

    def __init__(self, *args: Any, example: str | Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if any(each.name == "urls" for each in self.params):
            self.params.append(_storage_option())
        self.examples = [example] if isinstance(example, str) else list(example)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Example" if len(self.examples) == 1 else "Examples"):
                for line in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{fold_line(line, formatter.width - formatter.current_indent)}\n")
        super().format_epilog(ctx, formatter)


def fold_line(line: str, width: int) -> str:
    """A command line over as many lines as it needs, for a shell to read as one: words, and what stands in quotes, stay whole.

    >>> print(fold_line("tarviz sql 'SELECT count(*) FROM records' data/", 42))
    tarviz sql \\
          'SELECT count(*) FROM records' data/
    """
    lines = [""]
    for word in re.findall(r"(?:'[^']*'|\S)+", line):
        if lines[-1] and len(lines[-1]) + len(word) + 3 > width:  # a space before it, a backslash behind
            lines.append(f"    {word}")
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip() if len(lines) == 1 else f"{lines[-1]} {word}"
    return " \\\n  ".join(lines)


def verb(name: str, *, example: str | Sequence[str], **attributes: Any) -> Callable[[Callable[..., Any]], Verb]:
    """`@verb("ls", example="tarviz ls 'data/train-{0000..0003}.tar'")` over the function that reads the command line."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
    return click.command(name, cls=Verb, example=example, context_settings=settings, **attributes)


def _in_force(ctx: click.Context, name: str, value: str) -> None:
    """Set an environment variable for as long as the verb runs, also for the processes that it starts."""
    before = os.environ.get(name)
    os.environ[name] = value
    ctx.call_on_close(lambda: os.environ.pop(name) if before is None else os.environ.update({name: before}))


def _storage_option() -> click.Option:
    """`--storage-option K=V`; it is in force by itself, and nothing is handed over."""

    def use(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
        if not values:
            return
        table = _json.loads(config.options().storage_options or "{}")
        for each in values:
            key, equals, value = each.partition("=")
            if not (key and equals):
                raise click.BadParameter("write NAME=VALUE.", ctx, param)
            try:
                table[key] = _json.loads(value)
            except ValueError:
                table[key] = value
        _in_force(ctx, "TARVIZ_STORAGE_OPTIONS", _json.dumps(table))

    words = "What the store of the URLs is told: requester_pays=true, key_filename=~/.ssh/id, ..."
    return click.Option(["--storage-option"], multiple=True, metavar="NAME=VALUE", expose_value=False, callback=use, help=words)


def size(value: str | int) -> int:
    """A number of bytes, as the type of an option: `1e9`, `100MB`, `2GiB`."""
    try:
        return config.parse_size(value)
    except TarvizError as error:
        raise click.BadParameter(error.words) from None


def _set_quiet(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    if value:
        ctx.with_resource(hush())
    return value


def complete_shards(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Shards and folders that a URL may go on with, for the shell and for magics."""
    from tarviz.cli import completion

    return completion.shards(incomplete)


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one, in the order of the help."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


# `URL...`: shards as paths, folders, globs, templates or URLs; handed over as the tuple `urls`.
urls_argument = click.argument("urls", nargs=-1, required=True, metavar="URL...", shell_complete=complete_shards)

# `--json`, handed over as `as_json`.
json_option = click.option("--json", "as_json", is_flag=True, help="Write the result as JSON, for scripts.")

# `-q`: no progress, no text beside the result. It is in force by itself; nothing is handed over.
quiet_option = click.option("-q", "--quiet", is_flag=True, expose_value=False, is_eager=True, callback=_set_quiet, help="Only the result.")

result_options = together(json_option, quiet_option)

# `-o URL`, handed over as `output`; None where it is not given.
output_option = click.option("-o", "--output", metavar="URL", help="Where to write; - is standard output.")


def page_option(*names: str, **attributes: Any) -> Callable[[F], F]:
    """An option that names a page to write."""

    def no_shard(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        if value is not None and value.lower().endswith(stores.SHARD_SUFFIXES):  # the shell makes it of `--html *.tar`
            raise click.BadParameter(f"{value!r} has the name of a shard: name the page to write before the shards.", ctx, param)
        return value

    return click.option(*names, metavar="FILE", callback=no_shard, **attributes)


# `-j N`, handed over as `workers`; None where it is not given.
workers_option = click.option("-j", "--workers", type=click.IntRange(min=0), metavar="N", help="Parallel workers; 0: one per processor.")


def choice(name: str, words: Sequence[str], text: str | None = None, *more: str) -> Callable[[F], F]:
    """An option for one of some words, the first of them where it is not given."""
    return click.option(f"--{name}", *more, type=click.Choice(words), default=words[0], show_default=True, help=text)


on_error_option = choice(
    "on-error", CHOICES["on_error"], "What damaged records do: end the work, or be counted and left out (exit code 1)."
)
exists_option = choice("exists", ("replace", "error"), "What happens to outputs that exist.")

# The fields of `read.ReadOptions` that a command line sets, in the order of the help; the tar tools have no `group`.
READ_OPTIONS: dict[str, Callable[..., Any]] = {
    "key_split": choice("key-split", CHOICES["key_split"], "Where a name is split into key and extension."),
    "group": choice("group", CHOICES["group"], "Where the members of a record are: side by side, or anywhere in the shard."),
    "duplicates": choice("duplicates", CHOICES["duplicates"], "Which field counts when one is given twice."),
    "concatenated": click.option("--concatenated", is_flag=True, help="Go on after the end of an archive: `cat a.tar b.tar`."),
}


def _set_tags(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value:
        _in_force(ctx, "TARVIZ_TAGS", os.path.abspath(value))
    return value


# `--tags FILE`: where tags are. It is in force by itself; nothing is handed over.
_TAGS_TEXT = "A file of tags beside the data set, in place of your own."
tags_option = click.option("--tags", metavar="FILE", expose_value=False, is_eager=True, callback=_set_tags, help=_TAGS_TEXT)

# Which records: `--where CONDITION` and `--keys FILE`, handed over as `where` and `keys`; and `tags_option`.
_WHERE_TEXT = "Only these: cls = 3 and json.w > 300, has:json, or words to look for in keys and texts; see tarviz sql."
choice_options = together(
    click.option("--where", default="", metavar="CONDITION", help=_WHERE_TEXT),
    click.option("--keys", default="", metavar="FILE", help="Only the records whose keys a file lists, one per line."),
    tags_option,
)

# How records are cut: `--strict/--lenient` (handed over as `strict`, None: the verb's own way), all of `READ_OPTIONS`, and which.
_STRICT_TEXT = "Refuse, or show with a warning, what may be incomplete."
reading_options = together(
    click.option("--strict/--lenient", "strict", default=None, help=_STRICT_TEXT), *READ_OPTIONS.values(), choice_options
)


def pairs(texts: Sequence[str], option: str, example: str) -> dict[str, Any]:
    """A mapping as it is typed; what its values may be is checked where they are used.

    >>> pairs(["cls=int64, jpg=bytes", "a=b"], "--types", "cls=int64")
    {'cls': 'int64', 'jpg': 'bytes', 'a': 'b'}
    """
    found: dict[str, Any] = {}
    for part in ",".join(texts).split(","):
        name, mark, value = map(str.strip, part.partition("="))
        if not (name and mark and value):
            raise UsageError(f"{option} {part!r} is not a NAME=VALUE.", hint=f"For example {option} {example}.")
        found[name] = value
    return found


def table(rows: Sequence[Sequence[object]], *, right: Sequence[int] = (), header: Sequence[str] = ()) -> str:
    """Text in columns, two spaces apart; columns whose numbers stand in `right` are set flush right. Cells are made safe to print.

    >>> print(table([("a.tar", 3), ("bb.tar", 12)], right=[1], header=["shard", "records"]))
    shard   records
    a.tar         3
    bb.tar       12
    """
    cells = [[safe(str(cell)) for cell in row] for row in ([header, *rows] if header else rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = [">" if at in right else "<" for at in range(len(widths))]
    lines = ("  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)
