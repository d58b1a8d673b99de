"""What a walk over a shard is told, and what it gives: rules, and steps of records that are decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from tarviz.formats.records import Grouped, part

Payloads: TypeAlias = Literal["all", "sparse", "none"]


@dataclass(frozen=True, slots=True)
class Rules:
    """Strictness, limits, and what to do about damage.

    `payloads`: which members the limit is for: all that are read, `sparse` ones only (they alone are unfolded), or none.
    """

    strict: bool
    skip: bool
    block_size: int
    roomy_size: int  # of a block of large payloads: what a block costs is then more than a longer one's way through memory
    max_member_bytes: int
    payloads: Payloads
    returning: bool  # a key may come back later in the shard: whoever reads will gather the pieces


class Decided(NamedTuple):
    """Records that are decided: `pending` is the row of the one that may lack a member (-1: none).

    `first` is the number of the first one in the shard; `data`, whose first byte is byte `base` of the tar, holds their payloads
    where the walker was handed them.
    """

    records: Grouped
    pending: int
    first: int
    data: memoryview
    base: int

    def part(self, low: int, high: int) -> Decided:
        """Records `low`…`high` of it."""
        pending = self.pending - low if low <= self.pending < high else -1
        return self._replace(records=part(self.records, low, high), pending=pending, first=self.first + low)
