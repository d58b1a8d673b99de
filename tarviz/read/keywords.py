"""The read options as keyword arguments: what type checkers and editors see, command lines offer and `ReadOptions` checks."""

from __future__ import annotations

from typing import Literal, TypedDict, get_args, get_origin, get_type_hints

from tarviz.model.types import Duplicates, Grouping, KeySplit, OnError


class CutKeywords(TypedDict, total=False):
    """How records are cut, whichever of them are chosen."""

    strict: bool
    key_split: KeySplit
    group: Grouping
    duplicates: Duplicates
    concatenated: bool
    on_error: OnError
    block_size: int | None
    max_member_bytes: int | None
    max_ratio: int | None


class ReadKeywords(CutKeywords, total=False):
    """What `records`, `index`, `blocks`, `Pipeline` and the verbs take of `ReadOptions`; a test holds the two against each other."""

    where: str
    keys: str | tuple[str, ...]


CHOICES: dict[str, tuple[str, ...]] = {
    name: get_args(kind) for name, kind in get_type_hints(ReadKeywords).items() if get_origin(kind) is Literal
}
"""The words an option may be, by its name; the first is the default."""
