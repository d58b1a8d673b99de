"""How shards are read: `ReadOptions`, as people give them and as the walker needs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tarviz.formats.records import Grouper
from tarviz.formats.tar import Scanner
from tarviz.model.config import options as configured
from tarviz.model.errors import UsageError
from tarviz.model.types import Duplicates, Grouping, KeySplit, OnError
from tarviz.read.keywords import CHOICES
from tarviz.read.rules import Payloads, Rules
from tarviz.read.walker import Walker


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How shards are read; the words are those of the decisions in the documentation.

    `strict`: a record that may be incomplete is an error and not yielded; otherwise it is yielded, warned of and
    marked `pending`. `key_split`: `first-dot` or `last-dot`. `group`: `adjacent` members, or all of the `shard`.
    `duplicates`: a field twice in a record is an `error`, or the `first` or `last` holds. `concatenated`: go on
    after the end-of-archive mark. `on_error`: `raise`, or `skip` damage and count what was lost.
    `block_size`, `max_member_bytes` in bytes, `max_ratio` of inflated to compressed bytes: None takes the
    configured value. `where` is a condition of `tarviz.table` (`"cls = 3 and json.w > 300"`), `keys` a list of keys or the
    name of a file that holds them: records are chosen first, and only their bytes are read.
    """

    strict: bool = True
    key_split: KeySplit = "first-dot"
    group: Grouping = "adjacent"
    duplicates: Duplicates = "error"
    concatenated: bool = False
    on_error: OnError = "raise"
    block_size: int | None = None
    max_member_bytes: int | None = None
    max_ratio: int | None = None
    where: Any = ""
    keys: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, values in CHOICES.items():
            if getattr(self, name) not in values:
                raise UsageError(f"{name}={getattr(self, name)!r} is not one of {', '.join(values)}.")

    def refuse_gathering(self, what: str) -> None:
        """`UsageError` for `group="shard"`, by whom says where one record is: such a record is in several places."""
        if self.group == "shard":
            hint = 'tarviz.records(…, group="shard") gathers them in one pass; tarviz sort puts the members of a record side by side.'
            raise UsageError(f'{what} needs the members of a record side by side, which group="shard" does not.', hint=hint)

    def rules(self, *, returning: bool = False, payloads: Payloads = "all") -> Rules:
        """What the walker needs of it, configured values filled in; `payloads`: which members are held against the limit."""
        chosen = configured(block_size=self.block_size, max_member_bytes=self.max_member_bytes)
        size = max(chosen.block_size // 512 * 512, 512)
        roomy = 2 * size if self.block_size is None else size
        return Rules(self.strict, self.on_error == "skip", size, roomy, chosen.max_member_bytes, payloads, returning)

    def walker(self, url: str, *, at: int = 0, first: int = 0, returning: bool = False, payloads: Payloads = "all") -> Walker:
        """A walker over a shard, from byte `at` on, where record `first` begins."""
        scanner = Scanner(url, strict=self.strict, concatenated=self.concatenated)
        scanner.at = at
        grouper = Grouper(url, self.key_split, self.duplicates)
        return Walker(scanner, grouper, self.rules(returning=returning, payloads=payloads), first=first)


def with_changes(options: ReadOptions | None, changes: Mapping[str, Any]) -> ReadOptions:
    """Read options with some replaced; `UsageError` names an option that does not exist."""
    base = ReadOptions() if options is None else options
    known = set(ReadOptions.__dataclass_fields__)
    for name in changes:
        if name not in known:
            raise UsageError(f"reading has no option {name!r}.", hint=f"There are: {', '.join(sorted(known))}.")
    return replace(base, **changes) if changes else base
