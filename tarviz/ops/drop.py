"""All fields but these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tarviz.model.types import PLACES
from tarviz.ops.base import PatternOp


@dataclass(frozen=True, slots=True, init=False)
class Drop(PatternOp):
    """Drops the fields named: `Drop("json", "seg.*")`; `*` and `?` match as in file names. What is not there is no error."""

    name: ClassVar[str] = "drop"

    def move(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if name in PLACES or not self.fits(name)}

    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        return wanted
