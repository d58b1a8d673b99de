"""Templates: bash braces in a URL, counted before they are expanded."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from braceexpand import braceexpand

from tarviz.model.errors import UsageError

LIMIT = 1_000_000
_DEPTH = 16
_INTS = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.-?(\d+))?", re.ASCII)
_CHARS = re.compile(r"[A-Za-z]\.\.[A-Za-z](?:\.\.-?\d+)?")
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
    return list(braceexpand(template))


def count(template: str) -> int:
    """How many names a template stands for, without making them.

    >>> count("{a,b}/{000..999}.tar")
    2000
    """
    depth = deepest = 0
    for _, char in _plain(template):
        depth += (char == "{") - (char == "}")
        deepest = max(deepest, depth)
        if depth < 0:
            break
    if depth:
        missing = "no { before a }" if depth < 0 else "a { without its }"
        raise UsageError(f"the braces of the template {template!r} do not match: {missing}.", hint=r"Write \{ or \} for a brace in a name.")
    if deepest > _DEPTH:
        raise UsageError(f"the braces of the template are nested {deepest} deep, {_DEPTH} is the limit.")
    return _count(template)


def _plain(text: str) -> Iterator[tuple[int, str]]:
    """Position and character of what no backslash protects."""
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        yield at, text[at]
        at += 1


def _count(pattern: str) -> int:
    total, depth, start = 1, 0, 0
    for at, char in _plain(pattern):
        if char == "{":
            depth += 1
            start = at + 1 if depth == 1 else start
        elif char == "}":
            depth -= 1
            if depth == 0:
                total *= _count_braces(pattern[start:at])
    return total


def _count_braces(inner: str) -> int:
    if ints := _INTS.fullmatch(inner):
        first, last, step = int(ints[1]), int(ints[2]), int(ints[3] or 1) or 1
        return abs(last - first) // step + 1
    if _CHARS.fullmatch(inner):
        return len(list(braceexpand("{" + inner + "}")))
    parts, depth, start = [], 0, 0
    for at, char in _plain(inner):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            parts.append(inner[start:at])
            start = at + 1
    return sum(map(_count, [*parts, inner[start:]])) if parts else _count(inner)


def matching(pattern: str) -> re.Pattern[str]:
    """What the names that fit a pattern look like: `*` is any part of a name but for its slashes and a dot that hides it, `**/` any
    folders, and every other sign is itself.

    >>> [bool(matching("s3://b/**/a-*.tar").fullmatch(f"s3://b/{name}")) for name in ("a-1.tar", "x/y/a-?.tar", "a-1/b.tar")]
    [True, True, False]
    """
    return re.compile("".join(_RULES.get(part) or re.escape(part) for part in _STARS.split(pattern)), re.DOTALL)


def natural(name: str) -> list[tuple[int, float, str]]:
    """Sort key that puts `a2` before `a10`.

    >>> sorted(["a10.tar", "a2.tar"], key=natural)
    ['a2.tar', 'a10.tar']
    """
    return [(0, int(part) if len(part) < 300 else math.inf, part) if part.isdigit() else (1, 0, part) for part in _NUMBERS.split(name)]
