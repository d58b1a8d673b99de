"""A command for a shard that is finished: a line for the shell, the shard's name in its environment, never in its text."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping

from tarviz.model.errors import UsageError
from tarviz.outputs.process import messages, run

PARTS = ("shard", "abspath", "basename", "dirname", "base", "ext")
_PLACE = re.compile(r"\{(" + "|".join(PARTS) + r")\}")
_SIGNS = frozenset(";&|<>()#\n")


def run_for(command: str, shard: str) -> int:
    """Run the command's line in bash (sh where there is none): its exit code, negative for a signal."""
    return run([shutil.which("bash") or "sh", "-c", line(command)], stdout=messages(), env={**os.environ, **environment(shard)})


def line(command: str) -> str:
    """The line for the shell: `{shard}` and its like are variables, quoted as their place asks; a plain command gets the shard's name.

    A shell never reads a name as code, whatever is in it, and a command with signs of the shell gets no argument it does not ask for.

    >>> print(line("cp {shard} '/backup/{base}.done' && ls"))
    cp "${TARVIZ_SHARD}" '/backup/'"${TARVIZ_BASE}"'.done' && ls
    >>> print(line("upload --fast"))
    upload --fast "${TARVIZ_SHARD}"
    """
    if not command.strip():
        raise UsageError("the command is empty.")
    made: list[str] = []
    quote, plain, at = "", True, 0
    while at < len(command):
        sign = command[at]
        if (match := _PLACE.match(command, at)) is not None:
            made.append(_variable(match[1], quote))
            plain, at = False, match.end()
            continue
        if sign == "\\" and quote != "'":
            made.append(command[at : at + 2])
            at += 2
            continue
        if sign == quote:
            quote = ""
        elif not quote and sign in "'\"":
            quote = sign
        plain = plain and (bool(quote) or sign not in _SIGNS)
        made.append(sign)
        at += 1
    if quote:
        raise UsageError(f"the command {command!r} cannot be read: the quote {quote} has no end.")
    return "".join(made) + (f" {_variable('shard', '')}" if plain else "")


def _variable(name: str, quote: str) -> str:
    text = f"${{TARVIZ_{name.upper()}}}"
    return {"": f'"{text}"', '"': text, "'": f"""'"{text}"'"""}[quote]


def environment(shard: str) -> Mapping[str, str]:
    """The parts of a shard's name: `{ext}` with its dot, so that `{base}{ext}` is `{basename}`.

    >>> environment("out/a b.tar.gz")["TARVIZ_BASE"], environment("out/a b.tar.gz")["TARVIZ_EXT"]
    ('a b', '.tar.gz')
    """
    folder, name = os.path.split(shard)
    base, dot, ext = name.partition(".")
    absolute = shard if "://" in shard else os.path.abspath(shard)
    return dict(zip([f"TARVIZ_{part.upper()}" for part in PARTS], (shard, absolute, name, folder or ".", base, dot + ext), strict=True))
