"""What a bench measured, as a value: rows, stages, verdict, machine; saved, read back, compared with a baseline."""

from __future__ import annotations

import json
import math
import os
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tarviz import stores
from tarviz.model.errors import UsageError, safe
from tarviz.widgets.bench.rate_meter import Figures, half_interval
from tarviz.widgets.bench.stage_groups import Group
from tarviz.widgets.bench.verdict import graph_stages, per_second, verdict
from tarviz.widgets.compare.text import align
from tarviz.widgets.host.contact_sheet import bundle

FORMAT = 1


@dataclass(slots=True)
class TrialRow:
    """One trial: what was measured in each of its runs. `rate` is their mean, `margin` half its 95 % interval."""

    label: str
    kind: str
    setting: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    runs: list[Figures] = field(default_factory=list)
    error: str = ""
    cache: str = ""
    last_op: str = ""

    @property
    def rate(self) -> float:
        """Records per second, first batch and warm-up left out."""
        return _mean([run.rate for run in self.runs])

    @property
    def margin(self) -> float:
        """Half the 95 % interval of `rate`: from the runs where there are several, else from parts of the one."""
        return half_interval([run.rate for run in self.runs]) if len(self.runs) > 1 else self.runs[0].margin if self.runs else math.nan

    def mean(self, name: str) -> float:
        """The mean over the runs of another figure: `megabytes`, `p50`, `first_seconds`, …"""
        return _mean([float(getattr(run, name)) for run in self.runs])

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        plain = {name: getattr(self, name) for name in ("label", "kind", "setting", "note", "error", "cache", "last_op")}
        figures = {name: self.mean(name) for name in ("megabytes", "p50", "p90", "p99", "first_seconds")}
        figures |= {"rate": self.rate, "margin": self.margin}
        known = {name: value if math.isfinite(value) else None for name, value in figures.items()}
        return plain | known | {"runs": [run.to_dict() for run in self.runs]}

    @classmethod
    def of(cls, found: dict[str, Any]) -> TrialRow:
        """The row that `to_dict` wrote."""
        words = {name: str(found.get(name, "")) for name in ("label", "kind", "note", "error", "cache", "last_op")}
        return cls(**words, setting=dict(found["setting"]), runs=[Figures.of(run) for run in found["runs"]])


@dataclass(frozen=True, slots=True)
class Against:
    """One row beside the same row of a baseline: `ratio` of the rates, and whether it is too slow."""

    label: str
    rate: float
    before: float
    ratio: float
    slower: bool

    def __str__(self) -> str:
        mark = "SLOWER" if self.slower else "ok"
        return f"{self.label}: {per_second(self.rate)} records/s, {per_second(self.before)} before: {self.ratio:.2f}×  {mark}"


@dataclass
class BenchResult:
    """What a bench measured.

    `rows` (one a setting or peer), `groups` (what the threads were busy with, of the first setting), `config` (the settings),
    `host` (the machine), `state` (`done`, `stopped`, `failed`).
    """

    config: dict[str, Any]
    host: dict[str, Any]
    rows: list[TrialRow] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    grouped_records: int = 0
    state: str = "running"
    when: str = ""
    against: list[Against] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The sentence that says what the limit is."""
        head, rest = self.clauses
        return f"{head}: {rest}." if rest else f"{head}." if head else ""

    @property
    def clauses(self) -> tuple[str, str]:
        """The verdict, its first clause apart."""
        return verdict(self.rows, self.groups, self.grouped_records, int(self.host.get("cores", 1)))

    @property
    def rate(self) -> float:
        """Records per second of the first row that was measured; NaN when there is none."""
        return next((row.rate for row in self.rows if math.isfinite(row.rate)), math.nan)

    @property
    def exit_code(self) -> int:
        """0 clean; 1 where a trial failed, it was stopped, or a row is slower than the baseline; 2 where nothing was measured."""
        if not any(row.runs for row in self.rows):
            return 2
        return 1 if self.state != "done" or any(row.error for row in self.rows) or any(each.slower for each in self.against) else 0

    def stages(self) -> list[tuple[str, str, float, float]]:
        """(threads, stage, milliseconds a record, share of these threads' time), in the order of the work."""
        if not self.grouped_records:
            whole = sum(seconds for _, seconds in graph_stages(self.rows)) or 1.0
            return [("graph", name, seconds * 1000, seconds / whole) for name, seconds in graph_stages(self.rows)]
        return [
            (group.name, stage, seconds * 1000 / self.grouped_records, seconds / group.capacity if group.capacity else 0.0)
            for group in self.groups
            for stage, seconds in group.busy.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, all of it."""
        return {
            "format": FORMAT,
            "state": self.state,
            "when": self.when,
            "verdict": self.verdict,
            "config": self.config,
            "host": self.host,
            "rows": [row.to_dict() for row in self.rows],
            "groups": [group.to_dict() for group in self.groups],
            "stages": [{"threads": a, "stage": b, "ms": round(c, 6), "share": round(d, 4)} for a, b, c, d in self.stages()],
            "against": [asdict(each) for each in self.against],
            "notes": self.notes,
        }

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        plain = [row.to_dict() for row in self.rows]
        return pd.DataFrame([{**row.pop("setting"), **{name: value for name, value in row.items() if name != "runs"}} for row in plain])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, to be a baseline later. `E_WRITE` where that cannot be: what was there is left as it was."""
        stores.write(path, f"{json.dumps(self.to_dict(), indent=1, ensure_ascii=False)}\n".encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BenchResult:
        """Read what `save` wrote. `UsageError` where the file holds something else."""
        try:
            found = json.loads(Path(path).read_text("utf-8"))
            rows = [TrialRow.of(each) for each in found["rows"]]
            return cls(found["config"], found["host"], rows, [], 0, found["state"], found["when"])
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} holds no result of a bench.", hint="tarviz bench … --save FILE writes one.") from error

    def compare(self, base: BenchResult | str | os.PathLike[str], fail_below: float = 0.9) -> list[Against]:
        """Rates beside those of a baseline, by label; `slower` where the ratio is below `fail_below`. Kept in `against`."""
        base = base if isinstance(base, BenchResult) else BenchResult.load(base)
        known = {row.label: row.rate for row in base.rows}
        self.against = [
            Against(row.label, row.rate, known[row.label], row.rate / known[row.label], row.rate / known[row.label] < fail_below)
            for row in self.rows
            if row.label in known and math.isfinite(row.rate) and math.isfinite(known[row.label]) and known[row.label] > 0
        ]
        if not self.against:
            raise UsageError("The baseline has no row of the same name.", hint=f"It has {', '.join(known) or 'none'}.")
        if base.host.get("cores") != self.host.get("cores") or base.host.get("system") != self.host.get("system"):
            self.notes.append("The baseline is of another machine.")
        return self.against

    def __str__(self) -> str:
        head = [("", "records/s", "±", "MB/s", "p50 ms", "p90", "p99", "first batch", "files")]
        rows = [_cells(row) for row in self.rows if row.kind != "stage"]
        parts = [self.verdict] if self.verdict else []
        parts.append("\n".join(align([*head, *rows], right=range(1, 8))))
        if self.stages():
            lines = [("", "stage", "ms a record", "share")]
            before = ""
            for threads, stage, ms, share in self.stages():
                lines.append((threads if threads != before else "", stage, f"{ms:.4f}", f"{share:.1%}".replace("%", " %")))
                before = threads
            parts.append("\n".join(align(lines, right=(2, 3))))
        parts += [f"{row.label}: {row.error}" for row in self.rows if row.error]
        parts += [str(each) for each in self.against]
        parts += self.notes
        parts.append(textwrap.fill(self.facts, shutil.get_terminal_size().columns))
        if self.state not in ("done", "running"):
            parts.append(f"{self.state}: what was measured until then")
        return "\n".join(map(safe, "\n\n".join(parts).split("\n")))

    @property
    def facts(self) -> str:
        """The machine in a line."""
        host = self.host
        versions = ", ".join(f"{name} {each}" for name, each in host.get("versions", {}).items())
        files = " and ".join(host.get("files", []))
        load = "" if host.get("load") is None else f", load {host['load']}"
        cores = f"{host.get('cores', '?')} core{'' if host.get('cores') == 1 else 's'}"
        return f"{cores}{load}{f', files on {files}' if files else ''}; {host.get('system', '')}; {versions}"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from tarviz.widgets.bench.chart import chart

        return bundle(str(self), chart(self))


def _cells(row: TrialRow) -> tuple[str, ...]:
    if not row.runs:
        return (row.label, "failed" if row.error else "…", *[""] * 7)
    figures = [row.mean(name) for name in ("p50", "p90", "p99")]
    return (
        row.label,
        per_second(row.rate) if math.isfinite(row.rate) else "?",
        f"{row.margin / row.rate:.0%}".replace("%", " %") if math.isfinite(row.margin) and row.rate else "",
        f"{row.mean('megabytes'):.1f}" if math.isfinite(row.mean("megabytes")) else "",
        *(f"{value:.3g}" if math.isfinite(value) else "" for value in figures),
        f"{row.mean('first_seconds') * 1000:.0f} ms" if math.isfinite(row.mean("first_seconds")) else "",
        row.cache.partition(" (")[0],  # a line fits a terminal; JSON and page have it whole
    )


def _mean(values: Sequence[float]) -> float:
    good = [value for value in values if math.isfinite(value)]
    return sum(good) / len(good) if good else math.nan
