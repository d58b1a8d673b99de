"""The console scripts under the names of the tarproc tools: each is a verb of today, old flags translated.

GNU tar ships a `tarcat` of its own (it joins multi-volume archives); `tarscat` is the same verb under the name tarproc gave it later.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tarviz.cli import main


class Flag(NamedTuple):
    """What an old flag is today: its name (None: it is no longer needed and left out), and whether a value follows."""

    now: str | None
    value: bool = True


_VERBOSE = {"-v": Flag(None, False), "-b": Flag(None, False), "--braceexpand": Flag(None, False)}

# old name → (verb, old flag → flag of today); flags that are the same are not listed
VERBS: Mapping[str, tuple[str, Mapping[str, Flag]]] = {
    "tar2tsv": ("tsv", {}),
    "tarcat": ("cat", {**_VERBOSE, "--filelist": Flag("--files")}),
    "tarscat": ("cat", {**_VERBOSE, "--filelist": Flag("--files")}),
    "tarcreate": ("create", {"-f": Flag("--delimiter"), "--delim": Flag("--delimiter")}),
    "tarfirst": ("first", {"-v": Flag(None, False), "-S": Flag("--select")}),
    "tarpcat": ("pcat", {**_VERBOSE, "-p": Flag("--workers"), "-s": Flag("--shuffle"), "--filelist": Flag("--files")}),
    "tarproc": (
        "proc",
        {
            "-v": Flag(None, False),
            "--parallel": Flag("--workers"),
            "-S": Flag("--script"),
            "-e": Flag("--on-error"),
            "--error-handling": Flag("--on-error"),
            "-w": Flag(None),
            "-F": Flag(None),
        },
    ),
    "tarshow": (
        "show",
        {
            "-v": Flag(None, False),
            "--field": Flag("--fields"),
            "-N": Flag(None, False),
            "--normalize": Flag(None, False),
            "-C": Flag(None),
            "--cmap": Flag(None),
            "-d": Flag(None),
            "--delay": Flag(None),
            "--silent": Flag(None, False),
            "--verbatim-keys": Flag(None, False),
            "--use-keyboard": Flag(None, False),
        },
    ),
    "tarsort": (
        "sort",
        {
            "-s": Flag("--by"),
            "--sortkey": Flag("--by"),
            "-S": Flag("--as"),
            "--sorttype": Flag("--as"),
            "-k": Flag(None),
            "--key": Flag(None),
            "-r": Flag(None),
            "--report": Flag(None),
            "-t": Flag(None),
            "--tempfile": Flag(None),
            "--commit": Flag(None),
            "--update": Flag(None, False),
            "--keep": Flag(None, False),
        },
    ),
    "tarsplit": ("split", {"-v": Flag(None, False), "--num-samples": Flag("--count"), "--max-size": Flag("--size")}),
}
_POLICY = {"abort": "raise", "ignore": "skip"}
_BUFFER = "1000"


def translated(name: str, arguments: list[str]) -> list[str]:
    """The arguments of `tarviz` that an old command line stands for.

    >>> translated("tarsort", ["-S", "shuffle", "-r", "100", "small.tar"])
    ['sort', '--shuffle', 'small.tar']
    """
    verb, flags = VERBS[name]
    words: list[str] = [verb]
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += [word, *rest]
            break
        flag, equals, value = word.partition("=")
        if flag not in flags and word[:2] in flags and word[:1] == "-" and word[1:2] != "-":  # -c2
            flag, equals, value = word[:2], "=", word[2:]
        if flag not in flags or (flags[flag].value is False and equals):
            words.append(word)
            continue
        now, takes = flags[flag]
        if takes and not equals:
            value = rest.pop(0) if rest else ""
        if now is not None:
            words += _meant(now, value)
    if verb == "cat" and "--shuffle" in words and not "".join(words[words.index("--shuffle") + 1 :][:1]).isdigit():
        words.insert(words.index("--shuffle") + 1, _BUFFER)  # once a flag without a number
    if verb == "show" and not {"-h", "--help"} & set(words) and _no_input(words[1:]):
        words.append("-")
    return words


def _meant(flag: str, value: str) -> list[str]:
    if flag == "--as":
        return {"shuffle": ["--shuffle"], "None": []}.get(value, [flag, value])
    if flag == "--select" and value == "True":
        return []  # Python's word for every record; an expression would look for it in the keys
    return [flag, _POLICY.get(value, value) if flag == "--on-error" else value]


def _no_input(words: list[str]) -> bool:
    """Whether `show` is given options only: its options are `-c N`, `-f LIST` and the long ones with a value each."""
    values = {"-c", "-n", "--count", "-f", "--fields", "--html", "--png", "--inline"}
    return not any(word == "-" or not word.startswith("-") for at, word in enumerate(words) if at == 0 or words[at - 1] not in values)


def _script(name: str) -> Callable[[], int]:
    return lambda: main(translated(name, sys.argv[1:]))


tar2tsv, tarcat, tarscat, tarcreate, tarfirst, tarpcat, tarproc, tarshow, tarsort, tarsplit = (_script(name) for name in VERBS)
