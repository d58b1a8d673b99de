"""Records that were chosen, in an order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import UsageError
from tarviz.model.redaction import redacted_repr
from tarviz.model.types import URL


@dataclass(frozen=True, slots=True, eq=False)
class ChosenRows:
    """Records chosen, in an order: `shard[i]` counts in `shards`, `n[i]` is the record's number in it, `score[i]` how well it fits where
    that was asked."""

    shards: list[URL]
    shard: NDArray[np.int32]
    n: NDArray[np.int64]
    score: NDArray[np.float64] | None = None

    __repr__ = redacted_repr

    def __len__(self) -> int:
        return len(self.n)

    def of(self, shard: int) -> NDArray[np.int64]:
        """The numbers of the records of one shard, ascending."""
        return np.sort(self.n[self.shard == shard])


def check_count(count: int | None) -> int | None:
    """How many records are asked for, None for all. `UsageError` for what is no number of them."""
    if count is not None and not (isinstance(count, int | np.integer) and count >= 0):
        raise UsageError(f"count={count!r} is no number of records.", hint="Give 0 or more, or None for all.")
    return count
