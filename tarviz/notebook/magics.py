"""The magics `%tarviz`, `%tv` and `%%tv`: the shell's verbs in IPython. They hold no logic: words in, a result out.

`@no_var_expand` because IPython would take the braces of a template for Python (`t-{0..3}.tar`). A Python name in place of a URL
or a chain stands for what it holds.
"""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import click
from click.shell_completion import ShellComplete
from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.error import UsageError
from IPython.core.magic import no_var_expand
from IPython.display import display

from tarviz import cli
from tarviz.cli import completion
from tarviz.cli.entry import verb_named
from tarviz.model.errors import TarvizError, TarvizWarning, redact, safe
from tarviz.ops import Chain, Op

NAMES = ("tarviz", "tv")

_MAGIC = re.compile(r"\s*%%?(?:tarviz|tv)\s+(.*)", re.DOTALL)
_OWN_CHAIN = ("-c", "--chain")
_OWN_KEYS = ("-k", "--key", "--from")
_OWN_FIELDS = ("--image", "--label", "--field", "--fields", "--select")
_OPEN_CONDITION = re.compile(r"(?:--where[ =]+|^sql\s+)(['\"])((?:(?!\1).)*)$")
_OPEN_CHAIN = re.compile(r"(?:^|\s)(?:-c|--chain)[ =]+(['\"])([^'\"]*)$")


class Magics:
    """The magics of one shell, and what completes them."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.names: list[str] = []

    @no_var_expand  # type: ignore[untyped-decorator]
    def tarviz(self, line: str, cell: str | None = None) -> None:
        """Look at, measure, compare and convert tar shards: %tv VERB …, the same verbs and options as `tarviz` in a shell.

        %tv --help lists the verbs, %tv VERB --help says more about one. Templates need no quotes: %tv ls train-{0000..0003}.tar.
        A Python name stands for what it holds: URLs, a pipeline's shards, a chain. -o NAME keeps the result under that name, -v in
        front of the verb shows where an error comes from. %%tv compare URL takes one chain per line (name = chain), %%tv bench an
        expression that gives items, %%tv sql URL a query.

        Examples:

            %tv ls data/
            %tv browse train-{0000..0003}.tar --where 'cls = 3 and png.width > 20'
            %tv sql 'SELECT cls, count(*) FROM records GROUP BY cls' data/ -o answer
            %tv bench data/ -c 'decode(png)|resize(png, (224, 224))'

            %%tv compare data/
            small = decode(png)|resize(png, (64, 64))
            turned = decode(png)|resize(png, (64, 64))|rotate(png, 30)
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"{error}: {line}") from None
        verbose = words[:1] in (["-v"], ["--verbose"])
        words = words[1:] if verbose else words
        try:
            self._run(words or ["--help"], cell)
        except (TarvizError, click.ClickException, click.Abort, OSError, SystemExit, KeyboardInterrupt) as error:
            if verbose and isinstance(error, Exception):
                raise
            raise UsageError(error_line(error, words)) from None

    def _run(self, words: list[str], cell: str | None) -> None:
        verb = words[0]
        command = verb_named(verb)
        words, name = target(words, command)
        content = self._content(verb, command, cell)
        result = cli.invoke([verb, *self._resolve(words[1:], command)], content)
        if name is not None:
            self.shell.user_ns[name] = result
        if result is not None:
            display(result)

    def _content(self, verb: str, command: click.Command | None, cell: str | None) -> Any:
        """What stood in the cell, as the verb asks for it."""
        kind = getattr(command, "cell", None)
        if cell is None:
            return None
        if kind == "lines":
            return [self._line(text) for text in cell.splitlines() if text.strip()]
        if kind == "value":
            return self._value(cell)
        if kind == "text":
            return cell
        raise UsageError(f"%%tv {verb} takes nothing below it. Write %tv {verb} …")

    def _line(self, text: str) -> str:
        """A line `name = chain`, where the chain may be a Python name."""
        name, sign, right = text.partition("=")
        for part, before in ((right, name + sign), (text, "")):
            words = self._words(part.strip())
            if words is not None and len(words) == 1:
                return f"{before} {words[0]}".strip()
        return text

    def _value(self, cell: str) -> Any:
        """The value of a cell's last line, its other lines run first."""
        tree = ast.parse(cell)
        if not tree.body or not isinstance(last := tree.body[-1], ast.Expr):
            raise UsageError("%%tv bench times what its last line gives: end the cell with an expression.")
        self.shell.ex(ast.unparse(ast.Module(tree.body[:-1], [])))
        return self.shell.ev(ast.unparse(last.value))

    def _resolve(self, words: Sequence[str], command: click.Command | None) -> list[str]:
        """The words, Python names of URLs and chains replaced by what they hold."""
        found: list[str] = []
        for word, option in options_of(words, command):
            values = self._words(word) if option is None or option in _OWN_CHAIN else None
            found += [word] if values is None else values
        return found

    def _words(self, word: str) -> list[str] | None:
        """What a Python name holds, as words; None where it is none, or a file has that name."""
        if not word.isidentifier() or word not in self.shell.user_ns:
            return None
        value = self.shell.user_ns[word]
        if isinstance(value, Chain | Op):
            return [str(value)]
        value = getattr(value, "controller", value)
        urls = getattr(value, "urls", None)
        if urls is not None and not callable(urls):
            return [str(url) for url in urls]
        if isinstance(value, str | PathLike):
            return None if Path(word).exists() else [str(value)]
        if isinstance(value, list | tuple) and value and all(isinstance(each, str | PathLike) for each in value):
            return [str(each) for each in value]
        return None

    # ---- completion

    @context_matcher()  # type: ignore[untyped-decorator]
    def tarviz_matcher(self, context: CompletionContext) -> dict[str, Any]:
        """What IPython's completer calls."""
        try:
            fragment, found = self._complete(context)
        except (TarvizError, click.ClickException, OSError, ValueError):
            fragment, found = "", []
        shown = [SimpleCompletion(text=text, type=kind) for text, kind in found]
        return {"completions": shown, "matched_fragment": fragment, "suppress": bool(shown), "ordered": True}

    def _complete(self, context: CompletionContext) -> tuple[str, list[tuple[str, str]]]:
        line = context.text_until_cursor
        head = _MAGIC.fullmatch(context.full_text.split("\n", 1)[0])
        if match := _MAGIC.fullmatch(line):
            if head and (asked := _OPEN_CONDITION.search(match[1])):  # the shards may stand behind the query
                return self._condition(asked[2], split(head[1].replace(asked[2], "", 1)))
            return self._complete_line(match[1])
        if context.cursor_line == 0 or head is None or not context.full_text.lstrip().startswith("%%"):
            return "", []
        words = split(head[1])
        if words[:1] == ["sql"]:
            return self._condition(line, words)
        if words[:1] != ["compare"]:
            return "", []
        return self._chain(line, self._urls(words[1:], "compare"))

    def _complete_line(self, text: str) -> tuple[str, list[tuple[str, str]]]:
        words = split(text)
        now = "" if not text or text[-1].isspace() else (words.pop() if words else "")
        urls = self._urls(words[1:], words[0] if words else "")
        if match := _OPEN_CHAIN.search(text):
            return self._chain(match[2], urls)
        before = words[-1] if words else ""
        if before in _OWN_KEYS:
            return now, [(key, "key") for key in completion.keys(urls, now)]
        if before in _OWN_FIELDS:
            return now, [(name, "field") for name in completion.fields(urls) if name.startswith(now)]
        return now, self._of_shell(words, now, before)

    @staticmethod
    def _chain(text: str, urls: list[str]) -> tuple[str, list[tuple[str, str]]]:
        """How a chain goes on."""
        fragment, found = completion.chain(text, urls)
        return fragment, [(name, "op" if name.endswith("(") else "field") for name in found]

    def _condition(self, text: str, words: list[str]) -> tuple[str, list[tuple[str, str]]]:
        """How a condition or a query about the shards among the words goes on."""
        fragment, found = completion.condition(text, self._urls(words[1:], words[0]))
        return fragment, [(name, "column") for name in found]

    def _of_shell(self, words: list[str], now: str, before: str) -> list[tuple[str, str]]:
        """What the shell would complete, with the kind of each; and variables of the notebook where it would name paths."""
        items = ShellComplete(cli.group, {}, "tarviz", "_TARVIZ_COMPLETE").get_completions(words, now)
        names = [item.value for item in items if item.type == "plain"]
        if not words or now.startswith("-") or before.startswith("-"):
            return [(name, "option" if words else "verb") for name in names]
        shown = [(name, "variable") for name in self.shell.user_ns if now and name.startswith(now) and self._words(name) is not None]
        return [*((shlex.quote(name) if " " in name else name, "path") for name in names), *shown]

    def _urls(self, words: Sequence[str], verb: str) -> list[str]:
        """The URLs among the words."""
        plain = [word for word, option in options_of(words, verb_named(verb)) if option is None and word and not word.startswith("-")]
        return [url for word in plain for url in (self._words(word) or [word])]


def split(text: str) -> list[str]:
    """Words of a line that may end within a quote."""
    for tail in ("", "'", '"'):
        try:
            return shlex.split(text + tail)
        except ValueError:
            continue
    return text.split()


def options_of(words: Sequence[str], command: click.Command | None) -> Iterator[tuple[str, str | None]]:
    """Each word, with the option it is the value of; None for options themselves and for arguments."""
    options = [each for each in command.params if isinstance(each, click.Option)] if command is not None else []
    takes = {name for each in options if not each.is_flag for name in each.opts}
    option: str | None = None
    for word in words:
        yield word, option
        option = word if option is None and word in takes else None


def target(words: Sequence[str], command: click.Command | None) -> tuple[list[str], str | None]:
    """The words without `-o NAME`, and the name; a verb with an `-o` of its own keeps it, but for a query's answer (`-o df`)."""
    own = command is not None and any("-o" in each.opts for each in command.params if isinstance(each, click.Option))
    there = [at for at, (word, option) in enumerate(options_of(words, command)) if word == "-o" and option is None]
    at = there[-1] if there else len(words)
    name = next(iter(words[at + 1 :]), "")
    if command is None or not there or (own and not (getattr(command, "cell", None) == "text" and name.isidentifier())):
        return list(words), None
    if not name.isidentifier():
        raise UsageError(f"-o {name} names no variable." if name else "-o needs the name of a variable.")
    return [*words[:at], *words[at + 2 :]], name


def error_line(error: BaseException, words: Sequence[str]) -> str:
    """An error as one line, with the hint."""
    if isinstance(error, TarvizError):
        return str(error)
    if isinstance(error, click.UsageError):
        verb = error.ctx.info_name if error.ctx is not None and error.ctx.parent is not None else ""
        return f"{error.format_message()} Try: %tv {verb + ' ' if verb else ''}--help"
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return f"%tv {words[0] if words else ''} was interrupted."
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return redact(safe(f"{place}{error.strerror or error}"))
    return f"%tv {words[0] if words else ''} wanted to end the session, which stays ({error})."


_loaded: dict[int, Magics] = {}


def load_ipython_extension(shell: Any) -> None:
    """Register `%tarviz` and `%tv`, for lines and cells, and their completion. A magic of that name that is there already stays."""
    unload_ipython_extension(shell)
    magics = Magics(shell)
    known: Mapping[str, Mapping[str, Any]] = shell.magics_manager.magics
    for name in NAMES:
        if name in known["line"] or name in known["cell"]:
            warnings.warn(f"W_MAGIC_TAKEN %{name} is another magic already and stays.", TarvizWarning, stacklevel=2)
            continue
        shell.register_magic_function(magics.tarviz, "line_cell", name)
        magics.names.append(name)
    shell.Completer.custom_matchers.append(magics.tarviz_matcher)
    _loaded[id(shell)] = magics


def unload_ipython_extension(shell: Any) -> None:
    """Take out what was registered, and nothing else."""
    if (magics := _loaded.pop(id(shell), None)) is None:
        return
    for name in magics.names:
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop(name, None)
    with suppress(ValueError):
        shell.Completer.custom_matchers.remove(magics.tarviz_matcher)
