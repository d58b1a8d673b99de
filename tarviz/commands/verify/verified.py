"""What `verify` found: counted, listed, and shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tarviz.cli import html_page, verb_base
from tarviz.cli.tar_tool_options import Tar
from tarviz.model.errors import Fault, TarvizError, redact, safe
from tarviz.model.redaction import redacted_repr
from tarviz.model.wording import plural

MAX_KEPT = 10_000  # findings of one kind kept whole; beyond that they are counted


@dataclass(frozen=True)
class Salvage:
    """What could be saved of a damaged shard: the tar it is in, its records and bytes."""

    shard: str
    output: str
    records: int
    bytes: int

    __repr__ = redacted_repr

    def __str__(self) -> str:
        return f"{redact(safe(self.shard))} → {Tar(self.output, self.records, self.bytes)}"


@dataclass
class Verified(verb_base.Result):
    """What was read, and every finding as a dict: `code`, `message`, `shard`, `record`, `member`, `offset`, and more where it is known.

    `offset` counts bytes of the uncompressed file; `counts` says how often each code came; `written` is what a repair saved.
    """

    records: int = 0
    bytes: int = 0
    shards: int = 0
    faults: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    written: list[Salvage] = field(default_factory=list)

    def add(self, found: Fault | TarvizError) -> None:
        """File one finding: `W_…` under warnings, the rest under faults."""
        kept = self.warnings if found.code.startswith("W_") else self.faults
        self.counts[found.code] = self.counts.get(found.code, 0) + 1
        if len(kept) < MAX_KEPT:
            places = {name: value for name, value in found.to_dict().items() if name != "key"}
            kept.append({**places, **({"record": found.key} if found.key is not None else {})})

    def merge(self, other: Verified) -> None:
        """File what was found in other shards."""
        self.records, self.bytes, self.shards = self.records + other.records, self.bytes + other.bytes, self.shards + other.shards
        for code, count in other.counts.items():
            self.counts[code] = self.counts.get(code, 0) + count
        for mine, others in ((self.faults, other.faults), (self.warnings, other.warnings)):
            mine += others[: max(MAX_KEPT - len(mine), 0)]

    def _lines(self) -> list[str]:
        return [_text(found) for found in (*self.faults, *self.warnings)]

    def _verdict(self) -> str:
        counts = ", ".join(f"{code} ×{count}" for code, count in sorted(self.counts.items()))
        return f"{plural(self.records, 'record')} in {plural(self.shards, 'file')}: {counts or 'no fault found'}"

    def __str__(self) -> str:
        return "\n".join([*self._lines(), self._verdict(), *map(str, self.written)])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        tone = {0: "good", 1: "", 2: "bad"}[self.exit_code]
        columns = ("code", "shard", "record", "member", "offset", "message")
        rows = [[found.get(name, "") for name in columns] for found in (*self.faults, *self.warnings)[:200]]
        body = f'<p class="{tone}">{html_page.text(self._verdict())}</p>'
        if rows:  # a table that keeps room for what they say, and scrolls where there is too little
            body += f'<div class="findings">{html_page.table(rows, header=columns, right=[4])}</div>'
        return {"text/plain": str(self), "text/html": html_page.fragment(body)}


def _text(found: dict[str, Any]) -> str:
    fault = Fault(found["code"], found["message"], found.get("shard"), found.get("record"), found.get("member"), found.get("offset"))
    return f"{fault} Hint: {found['hint']}" if found.get("hint") else str(fault)
