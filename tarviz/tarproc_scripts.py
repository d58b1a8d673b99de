"""The console scripts under the names of the tarproc tools: each is a verb of today, old flags translated.

GNU tar ships a `tarcat` of its own (it joins multi-volume archives); `tarscat` is the same verb under the name tarproc gave it later.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tarviz.cli import main
from tarviz.query import expressions
from tarviz.write import piped


class Flag(NamedTuple):
    """What an old flag is today: its name (None: it is no longer needed and left out), and whether a value follows."""

    now: str | None
    value: bool = True


_VERBOSE = {"-v": Flag(None, False), "-b": Flag(None, False), "--braceexpand": Flag(None, False)}

_CAT = {
    **_VERBOSE,
    "--filelist": Flag("--files"),
    "--output-mode": Flag(None),
    "--eof": Flag(None, False),
    "--nodata": Flag("--count=0", False),
}

# old name → (verb, old flag → flag of today); flags that are the same are not listed
VERBS: Mapping[str, tuple[str, Mapping[str, Flag]]] = {
    "tar2tsv": ("tsv", {}),
    "tarcat": ("cat", _CAT),
    "tarscat": ("cat", _CAT),
    "tarcats": ("cat", _CAT),
    "tarcreate": ("create", {"-f": Flag("--delimiter"), "--delim": Flag("--delimiter")}),
    "tarfirst": ("first", {"-v": Flag(None, False), "-S": Flag("--select"), "--select": Flag("--select")}),
    "tarpcat": (
        "pcat",
        {
            **_VERBOSE,
            "-p": Flag("--workers"),
            "-s": Flag("--shuffle"),
            "--filelist": Flag("--files"),
            "--dummy": Flag("--output=/dev/null", False),
        },
    ),
    "tarproc": (
        "proc",
        {
            "-v": Flag(None, False),
            "--parallel": Flag("--workers"),
            "-S": Flag("--script"),
            "-e": Flag("--on-error"),
            "--error-handling": Flag("--on-error"),
            "-w": Flag(None),
            "--working_dir": Flag(None),
            "-F": Flag("--require"),
            "--fieldmode": Flag("--require"),
            "-E": Flag("--exclude"),
            "-I": Flag("--include"),
            "--silent": Flag("--quiet", False),
            "--count": Flag("--count"),
            "-O": Flag(None),
            "--command-output": Flag(None),
            "--direct-output": Flag(None, False),
            "--keepdir": Flag(None, False),
            "--debug": Flag(None, False),
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
    "tarsplit": (
        "split",
        {
            "-v": Flag(None, False),
            "--verbose": Flag(None, False),
            "-n": Flag("--count"),
            "--num-samples": Flag("--count"),
            "--max-size": Flag("--size"),
            "-C": Flag("--command"),
            "--command": Flag("--command"),
            "-z": Flag("+gzip", False),
            "--compress": Flag("+gzip", False),
            "--nodelete": Flag(None, False),
        },
    ),
}
_POLICY = {"abort": ["--on-error", "raise"], "ignore": ["--keep-failed"], "skip": ["--on-error", "skip"]}
_BUFFER = "1000"
_FRAGMENT = re.compile(r"(.+)#(?:0,)?(\d+)")
_COUNTED = {"cat", "pcat", "proc", "show", "tsv"}


def translated(name: str, arguments: list[str]) -> list[str]:
    """The arguments of `tarviz` that an old command line stands for.

    >>> translated("tarsort", ["-S", "shuffle", "-r", "100", "small.tar"])
    ['sort', '--shuffle', 'small.tar']
    """
    verb, flags = VERBS[name]
    if name == "tarproc" and any(word == "-c" or word.startswith(("-c", "--command", "-S")) for word in arguments):
        flags = {**flags, "-s": Flag("--separator")}  # in 2019; a script in 2020
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
            words += _meant(now, value) if takes else now.split("=", 1)
    if verb == "cat" and "--shuffle" in words and not "".join(words[words.index("--shuffle") + 1 :][:1]).isdigit():
        words.insert(words.index("--shuffle") + 1, _BUFFER)  # once a flag without a number
    if verb == "show" and not {"-h", "--help"} & set(words) and _no_input(words[1:]):
        words.append("-")
    if verb == "proc":  # every file was a record, and what -f left out was gone
        words[1:1] = ["--others", *(["--only-fields"] if _value_of(words, "-f", "--fields") else [])]
    if verb == "split":
        _name_shards(words)
    return _counted(words) if verb in _COUNTED else words


def _value_of(words: list[str], short: str, long: str) -> tuple[int, str, str] | None:
    """Where the value of an option stands: the word's place, what stands before the value in that word, and the value."""
    for at, word in enumerate(words[1:], 1):
        if word in (short, long) and at + 1 < len(words):
            return at + 1, "", words[at + 1]
        for head in (f"{long}=", short):
            if word.startswith(head) and not (head == short and word.startswith("--")):
                return at, head, word.removeprefix(head)
    return None


def _name_shards(words: list[str]) -> None:
    """Shards were named temp-000000.tar; packed ones end in .tgz."""
    suffix = ".tgz" if "+gzip" in words else ""
    words[:] = [word for word in words if word != "+gzip"]
    given = _value_of(words, "-o", "--output")
    if given is None:
        words[1:1] = ["--output", f"temp{suffix}"]
    elif "{" not in given[2] and not given[2].startswith("|") and not given[2].endswith((".tgz", ".gz")):
        words[given[0]] = "".join([*given[1:], suffix])


def _counted(words: list[str]) -> list[str]:
    """`a.tar#9` and `a.tar#0,9` were the first ten records of a shard."""
    found = [(at, match) for at, word in enumerate(words) if (match := _FRAGMENT.fullmatch(word)) and not word.startswith("-")]
    if len(found) != 1:
        return words
    (at, match) = found[0]
    return [words[0], "--count", str(int(match[2]) + 1), *words[1:at], match[1], *words[at + 1 :]]


def _meant(flag: str, value: str) -> list[str]:
    match flag:
        case "--as":
            return {"shuffle": ["--shuffle"], "None": []}.get(value, [flag, value])
        case "--select":  # Python: a bare word is a name, never text to look for in keys
            return [flag, f"({value})" if expressions.is_plain(value) else value]
        case "--on-error":
            return _POLICY.get(value, [flag, value])
        case "--require":
            return [] if value == "ignore" else [flag] if value == "error" else [f"{flag}={value}"]
        case "--command":  # got no argument that it did not ask for
            return [flag, value if "{" in value else f"{value}\n"]
        case "--count":
            return [flag, _whole(value)]
    return [flag, value]


def _whole(text: str) -> str:
    """`1e4` as `10000`; anything else is left for the verb to refuse."""
    try:
        return str(int(float(text))) if float(text).is_integer() else text
    except (ValueError, OverflowError):
        return text


def _no_input(words: list[str]) -> bool:
    """Whether `show` is given options only: its options are `-c N`, `-f LIST` and the long ones with a value each."""
    values = {"-c", "-n", "--count", "-f", "--fields", "--html", "--png", "--inline"}
    return not any(word == "-" or not word.startswith("-") for at, word in enumerate(words) if at == 0 or words[at - 1] not in values)


def _script(name: str) -> Callable[[], int]:
    def script() -> int:
        with piped.allowed():
            return main(translated(name, sys.argv[1:]))

    return script


tar2tsv, tarcat, tarscat, tarcats, tarcreate, tarfirst, tarpcat, tarproc, tarshow, tarsort, tarsplit = (_script(name) for name in VERBS)
