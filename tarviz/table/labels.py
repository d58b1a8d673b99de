"""The label doctor: what is labelled against what was predicted, and the mistakes a model is surest of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tarviz.table.sql import quoted_text

if TYPE_CHECKING:
    from tarviz.table.rows import ChosenRows
    from tarviz.table.table import Table

MAX_LABELS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """How often each label was predicted as each: `counts[i][j]` records of label `labels[i]` were taken for `labels[j]`."""

    table: Table
    truth: str
    predicted: str
    labels: list[str]
    counts: list[list[int]]
    where: str = ""

    @property
    def accuracy(self) -> float:
        """The share of records whose label was predicted."""
        total = sum(map(sum, self.counts))
        return sum(self.counts[at][at] for at in range(len(self.labels))) / total if total else 0.0

    def cell(self, label: str, prediction: str) -> str:
        """The condition that chooses the records of one cell: for the browser's filter, or `--where`."""
        return self._also(f"{_as_text(self.truth)} = {quoted_text(label)} and {_as_text(self.predicted)} = {quoted_text(prediction)}")

    def mistakes(self, confidence: str = "", count: int | None = None) -> ChosenRows:
        """The records whose prediction is another than their label, those of the highest `confidence` (`json.conf`) first."""
        where = self._also(f"{_as_text(self.truth)} != {_as_text(self.predicted)}")
        return self.table.rows(where, order=confidence, descending=bool(confidence), count=count)

    def _also(self, condition: str) -> str:
        return f"({self.where}) and {condition}" if self.where.strip() else condition

    def __str__(self) -> str:
        width = max([len(label) for label in self.labels] + [len(str(value)) for row in self.counts for value in row] + [5])
        lines = [" " * width + "".join(f" {label:>{width}}" for label in self.labels)]
        for label, row in zip(self.labels, self.counts, strict=True):
            lines.append(f"{label:>{width}}" + "".join(f" {value:>{width}}" for value in row))
        return "\n".join([*lines, f"accuracy {self.accuracy:.4f}: rows are {self.truth}, columns {self.predicted}"])

    __repr__ = __str__


def confusion(table: Table, truth: str = "cls", predicted: str = "json.pred", where: str = "") -> Confusion:
    """The confusion matrix of two columns. Records that lack one of them are left out. The most frequent labels come first, at most 200."""
    one, other, condition = table.expression(truth), table.expression(predicted), table.condition(where)
    rows = table.fetch(
        f"SELECT CAST({one} AS VARCHAR), CAST({other} AS VARCHAR), count(*) FROM records "
        f"WHERE {condition} AND {one} IS NOT NULL AND {other} IS NOT NULL GROUP BY 1, 2"
    )
    sums: dict[str, int] = {}
    for label, prediction, count in rows:
        sums[label] = sums.get(label, 0) + count
        sums.setdefault(prediction, 0)
    labels = sorted(sorted(sums, key=lambda label: -sums[label])[:MAX_LABELS], key=_order)
    place = {label: at for at, label in enumerate(labels)}
    counts = [[0] * len(labels) for _ in labels]
    for label, prediction, count in rows:
        if label in place and prediction in place:
            counts[place[label]][place[prediction]] = count
    return Confusion(table, truth, predicted, labels, counts, where)


def _order(label: str) -> tuple[float, str]:
    try:
        return float(label), label
    except ValueError:
        return float("inf"), label


def _as_text(column: str) -> str:
    return f"cast({column} as varchar)"
