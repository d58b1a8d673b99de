"""Which part of a data set a record belongs to: decided by a hash, so that it stays there when shards are added."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, groupby
from math import isfinite

from tarviz.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class Parts:
    """Names of parts, and where each begins between 0 and 1.

    >>> parts = Parts.of("train=0.8,val=0.1,test=0.1")
    >>> parts.names, [parts.names[parts.of_value(b"%d" % n)] for n in range(5)]
    (('train', 'val', 'test'), ['train', 'test', 'train', 'train', 'train'])
    """

    names: tuple[str, ...]
    begins: tuple[float, ...]

    @classmethod
    def of(cls, ratio: str | Mapping[str, float]) -> Parts:
        """`train=0.8,test=0.2`, or a mapping; shares are taken of their sum (8 and 2 are the same)."""
        pairs = list(ratio.items()) if isinstance(ratio, Mapping) else [each.partition("=")[::2] for each in ratio.split(",")]
        try:
            shares = [(name.strip(), float(share)) for name, share in pairs]
        except (TypeError, ValueError):
            shares = []
        names = [name for name, _ in shares]
        if not shares or not all(isfinite(share) and share > 0 for _, share in shares):
            raise UsageError(f"{ratio!r} is no ratio.", hint="For example train=0.8,val=0.1,test=0.1: names and shares above 0.")
        if len(set(names)) < len(names) or not all(names) or any(set(name) & set("/\\{}") for name in names):
            raise UsageError(f"the parts of {ratio!r} need names of their own, without slashes and braces.")
        total = sum(share for _, share in shares)
        return cls(tuple(names), (0.0, *(bound / total for bound in accumulate(share for _, share in shares[:-1]))))

    def of_value(self, value: bytes) -> int:
        """The number of the part that a key, or a value of a column, belongs to: by BLAKE2b of 8 bytes as a fraction of 2⁶⁴."""
        return bisect_right(self.begins, int.from_bytes(blake2b(value, digest_size=8).digest(), "big") / (1 << 64)) - 1

    def runs(self, values: Iterable[bytes]) -> Iterator[tuple[int, int, int]]:
        """Part, first and end of the runs of neighbours that belong together."""
        at = 0
        for part, run in groupby(map(self.of_value, values)):
            count = sum(1 for _ in run)
            yield part, at, at + count
            at += count
