"""Templates: bash braces in a URL, counted before they are expanded."""

from __future__ import annotations

import math
import re

from tarviz.model.errors import UsageError

LIMIT = 1_000_000
_DEPTH = 16
_RANGE = r"\{(?P<first>-?\d+)\.\.(?P<last>-?\d+)(?:\.\.-?(?P<step>\d+))?\}"
_TOKENS = re.compile(rf"\\.|{_RANGE}|(?P<letters>\{{[A-Za-z]\.\.[A-Za-z](?:\.\.-?\d+)?\}})|[{{}},]", re.ASCII | re.DOTALL)
_STARS = re.compile(r"(\*\*/|\*\*|\*)")
_RULES = {"**/": r"(?:(?!\.)[^/]+/)*", "**": r"(?!(?<=/)\.).*", "*": r"(?!(?<=/)\.)[^/]*"}
_NUMBERS = re.compile(r"(\d+)", re.ASCII)


def braces(template: str) -> list[str]:
    """The names a template stands for, in order, duplicates kept.

    A backslash takes the meaning from a brace or comma. `{}` and `{word}` stay as they are. `UsageError` for
    braces that do not match and for more than a million names.

    >>> braces("train-{08..10}.tar")
    ['train-08.tar', 'train-09.tar', 'train-10.tar']
    """
    if "{" not in template and "}" not in template:
        return [template]
    names = count(template)
    if names > LIMIT:
        raise UsageError(f"the template {template!r} stands for {names:,} names, more than {LIMIT:,}.", hint="Use a smaller range.")
    from braceexpand import braceexpand

    return list(braceexpand(template))


def count(template: str) -> int:
    """How many names a template stands for, without making them.

    >>> count("{a,b}/{000..999}.tar")
    2000
    """
    from braceexpand import braceexpand

    counts = [[0, 1]]  # of each brace that is open: the names before its last comma, and those of the part after it
    for token in _TOKENS.finditer(template):
        sign, here = token[0], counts[-1]
        if token["first"]:
            here[1] *= abs(int(token["last"]) - int(token["first"])) // (int(token["step"] or 1) or 1) + 1
        elif token["letters"]:
            here[1] *= len(list(braceexpand(sign)))
        elif sign == "{":
            counts.append([0, 1])
            if len(counts) > _DEPTH + 1:
                raise UsageError(f"the braces of the template are nested more than {_DEPTH} deep.")
        elif sign == "," and len(counts) > 1:
            here[:] = sum(here), 1
        elif sign == "}":
            if len(counts) == 1:
                raise _brace_error(template, "no { before a }")
            counts.pop()
            counts[-1][1] *= sum(here)
    if len(counts) > 1:
        raise _brace_error(template, "a { without its }")
    return counts[0][1]


def _brace_error(template: str, missing: str) -> UsageError:
    return UsageError(f"the braces of the template {template!r} do not match: {missing}.", hint=r"Write \{ or \} for a brace in a name.")


def matching(pattern: str) -> re.Pattern[str]:
    """What the names that fit a pattern look like: `*` is any part of a name but for its slashes and a dot that hides it, `**/` any
    folders, and every other sign is itself.

    >>> [bool(matching("s3://b/**/a-*.tar").fullmatch(f"s3://b/{name}")) for name in ("a-1.tar", "x/y/a-?.tar", "a-1/b.tar")]
    [True, True, False]
    """
    return re.compile("".join(_RULES.get(part) or re.escape(part) for part in _STARS.split(pattern)), re.DOTALL)


def natural(name: str) -> list[tuple[float, str]]:
    """Sort key that puts `a2` before `a10`.

    >>> sorted(["a10.tar", "a2.tar"], key=natural)
    ['a2.tar', 'a10.tar']
    """
    parts = _NUMBERS.split(name)  # text and digits in turn
    return [(int(part) if len(part) < 300 else math.inf, part) if at % 2 else (0, part) for at, part in enumerate(parts)]
