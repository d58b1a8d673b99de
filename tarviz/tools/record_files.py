"""Which files are a record's: names that fields may have, and which of the files a command leaves become fields, and of which record."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from tarviz.model.errors import DataError, UsageError
from tarviz.model.types import to_bytes

EXTENSION = re.compile(r"[\w.\-+@=%~#,^]+")


@dataclass(frozen=True, slots=True)
class Collecting:
    """Which files become fields, and of which record; see the options of `proc`."""

    base: str = "sample"
    others: bool = False
    separator: str = ""
    include: str | None = None
    exclude: str | None = None
    log: str | None = None
    keep_failed: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w[\w\-]*", self.base):
            raise UsageError(f"{self.base!r} cannot be the base name of files.", hint="Letters, digits, - and _.")
        self.lets_through("")  # says what is wrong with a pattern before anything is read
        if self.log is not None and not EXTENSION.fullmatch(self.log):
            raise UsageError(f"{self.log!r} cannot be an extension.", hint="For example log, or cmd.txt.")

    def lets_through(self, name: str) -> bool:
        """Whether the patterns let a file through."""
        if self.exclude is not None and _pattern(self.exclude).search(name):
            return False
        return self.include is None or _pattern(self.include).search(name) is not None

    def place(self, name: str) -> tuple[bytes, str] | None:
        """What stands after the key in the name of a file's record, and the extension; None for a file that is not a field.

        >>> Collecting(separator="_").place("sample7.png"), Collecting().place("note.txt"), Collecting(others=True).place("note.txt")
        ((b'_7', 'png'), None, (b'note', 'txt'))
        """
        stem, _, ext = name.partition(".")
        if not ext or not ((self.others and stem) or stem.startswith(self.base)):
            return None
        suffix = stem.removeprefix(self.base)
        return to_bytes(self.separator + suffix if suffix else ""), ext


@functools.lru_cache(8)
def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{text!r} is not a regular expression: {error}.") from error


def check_names(key: bytes, exts: list[str], *, any_key: bool) -> None:
    """`DataError` E_UNSAFE_NAME for an extension that should not be a file's name, and for a key that leads out of a folder."""
    for ext in exts:
        if not EXTENSION.fullmatch(ext) or len(to_bytes(ext)) > 200:
            raise DataError(f"the extension {ext[:80]!r} is not a safe file name.", code="E_UNSAFE_NAME", hint="tarviz cat -f renames it.")
    if b"\0" in key:
        raise DataError("the key holds a NUL, which no environment variable can.", code="E_UNSAFE_NAME", hint="tarviz cat --key renames.")
    parts = re.split(rb"[/\\]", key)
    if not any_key and (b"\\" in key or parts[0] in (b"", b"~") or b".." in parts or re.match(rb"[A-Za-z]:", parts[0])):
        raise DataError(
            "the key would lead out of a folder if the command took TARVIZ_KEY for a path.",
            code="E_UNSAFE_NAME",
            hint="--any-key runs it nevertheless; tarviz cat --key renames.",
        )
