"""What `convert` returns: the paths written, and what a person or a program wants to know of them."""

from __future__ import annotations

import json as _json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tarviz.cli import verb_base
from tarviz.model.config import format_size
from tarviz.model.errors import redact
from tarviz.outputs import Written
from tarviz.read.stream import ReadReport

_SHOWN = 20  # outputs and faults listed as text


class Converted(verb_base.Result, list[str]):
    """The paths written, in order. `outputs` has records, bytes and CRC32C of each, `report` what reading met and skipped."""

    def __init__(self, outputs: Sequence[Written], report: ReadReport, plan: Mapping[str, Any] | None = None) -> None:
        super().__init__(each.url for each in outputs)
        self.outputs = list(outputs)
        self.report = report
        self.plan = plan

    @property
    def records(self) -> int:
        """Records in all outputs."""
        return sum(each.records for each in self.outputs)

    @property
    def bytes(self) -> int:
        """Bytes of all outputs."""
        return sum(each.bytes for each in self.outputs)

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *self.notes()])

    def lines(self, json: bool = False) -> Iterator[str]:
        """What was written, or would be, for the shell."""
        if json:
            yield _json.dumps(self.to_dict())
        else:
            yield from self._plan_lines() if self.plan is not None else self._lines()

    def notes(self) -> Iterator[str]:
        """What was skipped or warned of; a shell has it on standard error."""
        faults = [*self.report.skipped, *self.report.warnings]
        yield from (("skipped " if at < len(self.report.skipped) else "") + str(fault) for at, fault in enumerate(faults[:_SHOWN]))
        if len(faults) > _SHOWN:
            yield "… " + ", ".join(f"{code} ×{count}" for code, count in self.report.counts().items())

    def _plan_lines(self) -> Iterator[str]:
        assert self.plan is not None
        outputs = self.plan["outputs"]
        more = ", …" if len(outputs) > 3 or self.plan["more"] else ""
        yield f"would convert {self.plan['shards']} shard(s) to {', '.join(outputs[:3])}{more}"
        yield verb_base.table(
            [(name, *about) for name, about in self.plan["features"].items()], header=("feature", "kind", "values", "bytes")
        )

    def _lines(self) -> Iterator[str]:
        shown = self.outputs if len(self.outputs) <= _SHOWN else self.outputs[: _SHOWN - 1]
        rows = [(redact(each.url), f"{each.records:,}", format_size(each.bytes), "kept" if each.kept else "") for each in shown]
        if len(self.outputs) > len(shown):
            rows.append((f"… {len(self.outputs) - len(shown)} more", "", "", ""))
        if len(self.outputs) != 1:
            rows.append((f"{len(self.outputs)} files", f"{self.records:,}", format_size(self.bytes), ""))
        yield verb_base.table(rows, right=[1, 2], header=("output", "records", "size", ""))

    def to_dict(self) -> dict[str, Any]:
        if self.plan is not None:
            return {"dry_run": True, **self.plan}
        totals = {"records": self.records, "bytes": self.bytes}
        return {"outputs": [each.to_dict() for each in self.outputs], **totals, "read": self.report.to_dict()}
