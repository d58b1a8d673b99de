"""What reading met: records and bytes, warnings, what was skipped; and how readers tell it to a report."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tarviz.model.errors import DataError, Fault, TarvizWarning
from tarviz.model.types import OnError
from tarviz.read.walker import Walker
from tarviz.stores import Stat

_KEPT = 1000  # faults of one code kept in a report; beyond that they are only counted


@dataclass(eq=False)
class ReadReport:
    """What reading met so far: records and bytes read, shards finished, warnings, and what was skipped: the first thousand of each code,
    and in `left_out` how many of each.

    `opened` is the version of the shard that was opened last.
    """

    records: int = 0
    bytes: int = 0
    shards: int = 0
    warnings: list[Fault] = field(default_factory=list)
    skipped: list[Fault] = field(default_factory=list)
    opened: Stat | None = None
    left_out: Counter[str] = field(default_factory=Counter)
    _counts: Counter[str] = field(default_factory=Counter)
    _told: int = 0

    def add(self, fault: Fault, *, skipped: bool = False) -> None:
        """Count a fault. The first thousand of a code are kept whole."""
        self._counts[fault.code] += 1
        if skipped:
            self.left_out[fault.code] += 1
        if self._counts[fault.code] <= _KEPT:
            (self.skipped if skipped else self.warnings).append(fault)

    @contextmanager
    def skip_damage(self, url: str, on_error: OnError) -> Iterator[None]:
        """Damage that is met within ends what reads there: it is raised, or counted as skipped, as `on_error` says."""
        try:
            yield
        except DataError as error:
            if on_error == "raise":
                raise
            self.add(error.at(shard=url).fault, skipped=True)

    def merge(self, other: ReadReport) -> None:
        """Count in what another report met."""
        self.records, self.bytes, self.shards = self.records + other.records, self.bytes + other.bytes, self.shards + other.shards
        self._counts.update(other._counts)
        self.left_out.update(other.left_out)
        for mine, others in ((self.warnings, other.warnings), (self.skipped, other.skipped)):
            mine += others[: max(_KEPT - len(mine), 0)]

    def split_off(self) -> ReadReport:
        """What was met since it was asked for last, as a report of its own; this one begins anew, `opened` stays.

        >>> report = ReadReport(records=3)
        >>> report.split_off().records, report.records
        (3, 0)
        """
        found = replace(self, _told=0)
        self.records = self.bytes = self.shards = self._told = 0
        self.warnings, self.skipped, self.left_out, self._counts = [], [], Counter(), Counter()
        return found

    def tell_skipped(self) -> None:
        """Log what was skipped since this was said last: at the end of an epoch, to whoever set `on_error="skip"`."""
        total = sum(self.left_out.values())
        if total > self._told:
            codes = ", ".join(f"{code} ×{count}" for code, count in self.left_out.items())
            import logging  # which takes as long to import as this module's neighbours together

            first = self.skipped[0] if self.skipped else ""
            logging.getLogger(__name__).warning('%d left out so far (on_error="skip"): %s; the first: %s', total, codes, first)
        self._told = total

    def counts(self) -> dict[str, int]:
        """Code → how often."""
        return dict(self._counts)

    def __str__(self) -> str:
        text = f"{self.records} records, {self.bytes} bytes, {self.shards} shards"
        return text + "".join(f", {code} ×{count}" for code, count in self._counts.items())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "records": self.records,
            "bytes": self.bytes,
            "shards": self.shards,
            "counts": self.counts(),
            "warnings": [fault.to_dict() for fault in self.warnings],
            "skipped": [fault.to_dict() for fault in self.skipped],
        }


class Noted:
    """Moves what a walker notes and skips into a report, each fault once, each code once through `warnings`."""

    def __init__(self, report: ReadReport, walker: Walker) -> None:
        self._report, self._walker = report, walker
        self._taken = [0, 0]
        self._bytes = 0

    def take(self, read: int) -> None:
        """What came since; `read`: bytes of the tar so far."""
        self._report.bytes += read - self._bytes
        self._bytes = read
        for which, faults in enumerate((self._walker.notes, self._walker.skipped)):
            for fault in faults[self._taken[which] :]:
                first = fault.code not in self._report.counts()
                self._report.add(fault, skipped=which == 1)
                if first:
                    warnings.warn(str(fault), TarvizWarning, stacklevel=2)
            self._taken[which] = len(faults)
