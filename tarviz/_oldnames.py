"""The console scripts under the names of the tarproc tools: each is a verb of today, old flags translated.

GNU tar ships a `tarcat` of its own (it joins multi-volume archives); `tarscat` is the same verb under the name tarproc gave it later.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from tarviz.cli import main

# old name → (verb, old flag → flag of today)
VERBS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "tar2tsv": ("tsv", {}),
    "tarcat": ("cat", {}),
    "tarscat": ("cat", {}),
    "tarcreate": ("create", {"-f": "--delimiter", "--delim": "--delimiter"}),
    "tarfirst": ("first", {}),
    "tarpcat": ("pcat", {"-p": "--workers", "-s": "--shuffle"}),
    "tarproc": ("proc", {"--parallel": "--workers"}),
    "tarshow": ("show", {"-c": "--count"}),
    "tarsort": ("sort", {"-s": "--by", "--sortkey": "--by", "-S": "--as", "--sorttype": "--as"}),
    "tarsplit": ("split", {"--num-samples": "--count", "--max-size": "--size"}),
}


def translated(name: str, arguments: list[str]) -> list[str]:
    """The arguments of `tarviz` that an old command line stands for.

    >>> translated("tarshow", ["-c", "2", "small.tar"])
    ['show', '--count', '2', 'small.tar']
    """
    verb, flags = VERBS[name]
    words: list[str] = [verb]
    for at, word in enumerate(arguments):
        if word == "--":
            words += arguments[at:]
            break
        flag, equals, value = word.partition("=")
        if flag in flags:
            words.append(flags[flag] + equals + value)
        elif word[:2] in flags and len(word) > 2 and word[1] != "-":  # -c2
            words += [flags[word[:2]], word[2:]]
        else:
            words.append(word)
    return words


def _script(name: str) -> Callable[[], int]:
    return lambda: main(translated(name, sys.argv[1:]))


tar2tsv, tarcat, tarscat, tarcreate, tarfirst, tarpcat, tarproc, tarshow, tarsort, tarsplit = (_script(name) for name in VERBS)
