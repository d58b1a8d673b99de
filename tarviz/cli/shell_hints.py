"""Hints of errors in the words of the shell: `duplicates="first"` as `--duplicates first`."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

_KEYWORD = re.compile(r"""\b([a-z_]+)=("[^"]*"|'[^']*'|\w+(?:[.-]\w+)*)""")


def in_shell_words(hint: str, parameters: Iterable[click.Parameter]) -> str:
    """The hint with the flags of a command in place of Python's keywords; keywords that are not options of it stay as they are.

    >>> choice = click.Option(["--duplicates"])
    >>> in_shell_words('Choose with duplicates="first" or see x=3.', [choice])
    'Choose with --duplicates first or see x=3.'
    """
    options = {str(each.name): each for each in parameters if isinstance(each, click.Option)}
    names = {alias: options[name] for alias, name in _ALIASES.items() if name in options} | options

    def flag(found: re.Match[str]) -> str:
        option, value = names.get(found[1]), found[2].strip("\"'")
        if option is None:
            return found[0]
        if option.is_flag:
            flags = option.opts if value != "False" else option.secondary_opts
            return flags[-1] if flags else found[0]
        return f"{max(option.opts, key=len)} {value}"

    return _KEYWORD.sub(flag, hint)


_ALIASES = {"num_workers": "workers"}  # what a keyword of the engine is called at the shell
