"""The read options as keyword arguments: the fields of `ReadOptions` under the same names, for type checkers and editors."""

from __future__ import annotations

from typing import Any, TypedDict

from tarviz.model.types import Duplicates, Grouping, KeySplit, OnError


class ReadKeywords(TypedDict, total=False):
    """What `records`, `index`, `blocks` and `Pipeline` take of `ReadOptions`; a test holds the two against each other."""

    strict: bool
    key_split: KeySplit
    group: Grouping
    duplicates: Duplicates
    concatenated: bool
    on_error: OnError
    block_size: int | None
    max_member_bytes: int | None
    max_ratio: int | None
    where: Any
    keys: str | tuple[str, ...]
