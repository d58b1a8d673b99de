"""The console scripts under the names of the tarproc tools: each is a verb of today, old flags translated.

GNU tar ships a `tarcat` of its own (it joins multi-volume archives); `tarscat` is the same verb under the name tarproc gave it later.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tarviz.cli import main
from tarviz.outputs import piped


class Old(NamedTuple):
    """An old tool: the verb it is today, and what its flags are; flags that are the same are not listed."""

    verb: str
    renamed: str = ""  # "old=new …", and the value follows
    switches: str = ""  # "old=new …" without a value
    dropped: str = ""  # no longer needed, without a value
    dropped_values: str = ""  # no longer needed, with one

    def flags(self) -> dict[str, tuple[str | None, bool]]:
        """Old flag → what it is today (None: it is left out), and whether a value follows."""
        found: dict[str, tuple[str | None, bool]] = {}
        for pairs, takes in ((self.renamed, True), (self.switches, False)):
            found |= {old: (new, takes) for old, _, new in (pair.partition("=") for pair in pairs.split())}
        for names, takes in ((self.dropped, False), (self.dropped_values, True)):
            found |= dict.fromkeys(names.split(), (None, takes))
        return found


_CAT = Old("cat", "--filelist=--files", "--nodata=--count=0", "-v -b --braceexpand --eof", "--output-mode")

VERBS: Mapping[str, Old] = {
    "tar2tsv": Old("tsv"),
    "tarcat": _CAT,
    "tarscat": _CAT,
    "tarcats": _CAT,
    "tarcreate": Old("create", "-f=--delimiter --delim=--delimiter"),
    "tarfirst": Old("first", "-S=--select --select=--select", dropped="-v"),
    "tarpcat": Old("pcat", "-p=--workers -s=--shuffle --filelist=--files", "--dummy=--output=/dev/null", "-v -b --braceexpand"),
    "tarproc": Old(
        "proc",
        "--parallel=--workers -S=--script -e=--on-error --error-handling=--on-error -F=--require --fieldmode=--require "
        "-E=--exclude -I=--include --count=--count",
        "--silent=--quiet",
        "-v --direct-output --keepdir --debug",
        "-w --working_dir -O --command-output",
    ),
    "tarshow": Old("show", "--field=--fields", "", "-v -N --normalize --silent --verbatim-keys --use-keyboard", "-C --cmap -d --delay"),
    "tarsort": Old(
        "sort", "-s=--by --sortkey=--by -S=--as --sorttype=--as", "", "--update --keep", "-k --key -r --report -t --tempfile --commit"
    ),
    "tarsplit": Old(
        "split",
        "-n=--count --num-samples=--count --max-size=--size -C=--command --command=--command",
        "-z=+gzip --compress=+gzip",
        "-v --verbose --nodelete",
    ),
}
_POLICY = {"abort": ["--on-error", "raise"], "ignore": ["--keep-failed"], "skip": ["--on-error", "skip"]}
_BUFFER = "1000"
_FRAGMENT = re.compile(r"(.+)#(?:0,)?(\d+)")


def translate(name: str, arguments: list[str]) -> list[str]:
    """The arguments of `tarviz` that an old command line stands for.

    >>> translate("tarsort", ["-S", "shuffle", "-r", "100", "small.tar"])
    ['sort', '--shuffle', 'small.tar']
    """
    old = VERBS[name]
    flags = old.flags()
    if name == "tarproc" and any(word.startswith(("-c", "--command", "-S")) for word in arguments):
        flags["-s"] = "--separator", True  # in 2019; a script in 2020
    words = [old.verb, *_rename(flags, list(arguments))]
    for mend in _MENDS.get(old.verb, ()):
        words = mend(words)
    return words


def _rename(flags: Mapping[str, tuple[str | None, bool]], rest: list[str]) -> Iterator[str]:
    """The words of a command line, old flags by the names of today."""
    while rest:
        word = rest.pop(0)
        if word == "--":
            yield from (word, *rest)
            return
        flag, equals, value = word.partition("=")
        if flag not in flags and re.match(r"-[^-]", word) and word[:2] in flags:  # -c2
            flag, equals, value = word[:2], "=", word[2:]
        now, takes = flags.get(flag, (word, False))
        if flag not in flags or (equals and not takes):
            yield word
        elif not takes:
            yield from now.split("=", 1) if now else ()
        else:
            value = value if equals else rest.pop(0) if rest else ""
            yield from _option(now, value) if now else ()


def _value_of(words: list[str], short: str, long: str) -> tuple[int, str, str] | None:
    """Where the value of an option stands: the word's place, what stands before the value in that word, and the value."""
    for at, word in enumerate(words[1:], 1):
        if word in (short, long):
            return (at + 1, "", words[at + 1]) if at + 1 < len(words) else None
        for head in (f"{long}=", short):
            if word.startswith(head) and not (head == short and word.startswith("--")):
                return at, head, word.removeprefix(head)
    return None


def _with_buffer(words: list[str]) -> list[str]:
    """`--shuffle` was once a flag without a number."""
    at = words.index("--shuffle") + 1 if "--shuffle" in words else 0
    return [*words[:at], _BUFFER, *words[at:]] if at and not "".join(words[at : at + 1]).isdigit() else words


def _from_stdin(words: list[str]) -> list[str]:
    """`tarshow` without a file read standard input."""
    return words if {"-h", "--help"} & set(words) or not _no_input(words[1:]) else [*words, "-"]


def _every_file(words: list[str]) -> list[str]:
    """Every file was a record, and what -f left out was gone."""
    return [words[0], "--others", *(["--only-fields"] if _value_of(words, "-f", "--fields") else []), *words[1:]]


def _name_shards(words: list[str]) -> list[str]:
    """Shards were named temp-000000.tar; packed ones end in .tgz."""
    suffix = ".tgz" if "+gzip" in words else ""
    words = [word for word in words if word != "+gzip"]
    given = _value_of(words, "-o", "--output")
    if given is None:
        return [words[0], "--output", f"temp{suffix}", *words[1:]]
    if "{" not in given[2] and not given[2].startswith("|") and not given[2].endswith((".tgz", ".gz")):
        words[given[0]] = "".join([*given[1:], suffix])
    return words


def _take_count(words: list[str]) -> list[str]:
    """`a.tar#9` and `a.tar#0,9` were the first ten records of a shard."""
    found = [(at, match) for at, word in enumerate(words) if (match := _FRAGMENT.fullmatch(word)) and not word.startswith("-")]
    if len(found) != 1:
        return words
    (at, match) = found[0]
    return [words[0], "--count", str(int(match[2]) + 1), *words[1:at], match[1], *words[at + 1 :]]


# What else a verb has to be told for it to do what the old tool did.
_MENDS: Mapping[str, Sequence[Callable[[list[str]], list[str]]]] = {
    "cat": (_with_buffer, _take_count),
    "pcat": (_take_count,),
    "proc": (_every_file, _take_count),
    "show": (_from_stdin, _take_count),
    "split": (_name_shards,),
    "tsv": (_take_count,),
}


def _option(flag: str, value: str) -> list[str]:
    match flag:
        case "--as":
            return {"shuffle": ["--shuffle"], "None": []}.get(value, [flag, value])
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
        with piped.allow():
            return main(translate(name, sys.argv[1:]))

    return script


tar2tsv, tarcat, tarscat, tarcats, tarcreate, tarfirst, tarpcat, tarproc, tarshow, tarsort, tarsplit = (_script(name) for name in VERBS)
