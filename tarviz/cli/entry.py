"""Command-line entry point: dispatches to a verb and maps errors to messages and exit codes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import shell_complete

from tarviz import __version__
from tarviz.cli.shell_hints import in_shell_words
from tarviz.cli.verb_base import Door, colour
from tarviz.model import plugins
from tarviz.model.errors import TarvizError, redact, safe

GROUPS = {
    "Look": ("ls", "show", "browse", "sql", "objects", "verify", "diff", "index"),
    "Feed models": ("compare", "bench", "convert"),
    "Reshape": ("cat", "join", "split", "sort", "first", "pcat", "create", "tsv", "proc"),
    "Begin and share": ("demo", "deck", "card", "cache", "config"),
}
LINE = 64  # characters of a verb's line in the list of verbs
INTERRUPTED, BROKEN_PIPE = 130, 141  # as a shell counts SIGINT and SIGPIPE

_DOCSTRING = re.compile(r'\A(?:\s*#[^\n]*\n)*\s*r?"""(.*?)(?:\n\s*\n|""")', re.DOTALL)


def summary(name: str) -> str:
    """The first sentence of a verb's module, read without importing it; a long one up to its first colon or semicolon."""
    folder = Path(__file__).parents[1] / "commands"
    place = next((path for path in (folder / f"{name}.py", folder / name / "__init__.py") if path.is_file()), None)
    if place is None:
        return "from another package"
    match = _DOCSTRING.match(place.read_text("utf-8"))
    sentence = " ".join(match[1].split()).rstrip(".") if match else ""
    return sentence if len(sentence) <= LINE else re.split(r"[:;] ", sentence)[0]


def verb_named(name: str) -> click.Command | None:
    """The command of a verb, imported; None where there is no such verb."""
    if not plugins.is_known("commands", name):
        return None
    command: click.Command = plugins.load("commands", name).command
    return command


class Verbs(click.Group):
    """One verb per file of `tarviz/commands`; a file is imported when its verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(plugins.names("commands"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return verb_named(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and not plugins.is_known("commands", args[0]):
            import difflib

            close = difflib.get_close_matches(args[0], self.list_commands(ctx), 3, cutoff=0.5)
            meant = f"Did you mean {' or '.join(close)}?" if close else "tarviz --help lists what there is."
            raise click.UsageError(f"There is no verb {safe(args[0])!r}. {meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        verbs = set(self.list_commands(ctx))
        others = tuple(sorted(verbs.difference(*GROUPS.values())))
        for title, members in {**GROUPS, "Others": others}.items():
            if rows := [(name, summary(name)) for name in members if name in verbs]:
                with formatter.section(title):
                    formatter.write_dl(rows)


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="tarviz VERB --help says more about a verb. A shard is a path, a folder, a template like 'train-{0000..0003}.tar', a URL, or -.",
)
@click.version_option(__version__, prog_name="tarviz", message="%(prog)s %(version)s")
def group() -> None:
    """See, stream, reshape and convert tar shards of machine-learning data."""


def _run(argv: Sequence[str], door: Door) -> Any:
    # Not group.main(): that answers a closed pipe with exit code 1 before we see it.
    with group.make_context("tarviz", list(argv), obj=door) as context:
        return group.invoke(context)


def invoke(argv: Sequence[str], cell: Any = None) -> Any:
    """The result of one command line, nothing written: the door of magics and notebooks. Errors are raised.

    `cell` is what a verb that asks for it finds in `Door.cell`.
    `--help` writes its text and returns None; a wrong option raises `click.UsageError`.
    """
    try:
        return _run(argv, Door(capture=True, cell=cell))
    except click.exceptions.Exit:
        return None


def _complain(message: str) -> None:
    print(colour(f"tarviz: {message}", sys.stderr), file=sys.stderr)  # noqa: T201 - the one place where the shell door speaks


def load_verb(argv: Sequence[str]) -> click.Command:
    """The verb that a command line names, imported; all verbs together where it names none."""
    return verb_named(next((word for word in argv if not word.startswith("-")), "")) or group


def main(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code: 0 clean, 1 with warnings or skips, 2 failed, 130 interrupted."""
    try:
        if instruction := os.environ.get("_TARVIZ_COMPLETE"):
            return shell_complete(group, {}, "tarviz", "_TARVIZ_COMPLETE", instruction)
        _run(argv or ["--help"], Door())
        sys.stdout.flush()
        return 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.UsageError as error:
        verb = error.ctx.command_path if error.ctx else "tarviz"
        _complain(f"{error.format_message()} Try: {verb} --help")
    except click.ClickException as error:
        _complain(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads any more. Point stdout elsewhere, or the interpreter complains while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    except TarvizError as error:
        with suppress(TarvizError):  # the verb may be what cannot be imported
            error.hint = in_shell_words(error.hint or "", load_verb(argv).params)
        _complain(str(error))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _complain(redact(safe(f"{place}{error.strerror or error}")))
    return 2
