"""Only these fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tarviz.model.types import PLACES
from tarviz.ops.base import PatternOp, missing


@dataclass(frozen=True, slots=True, init=False)
class Keep(PatternOp):
    """Keeps the fields named and drops the rest: `Keep("jpg", "cls")`; `*` and `?` match as in file names.

    A plain name that is not there is an error; a pattern may match nothing.
    """

    name: ClassVar[str] = "keep"

    def move(self, fields: dict[str, Any]) -> dict[str, Any]:
        for ext in self.exts:
            if not _is_pattern(ext) and ext not in fields:
                raise missing(self, ext, fields)
        return {name: value for name, value in fields.items() if name in PLACES or self.fits(name)}

    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        if any(map(_is_pattern, self.exts)):
            return None if wanted is None else wanted | {ext for ext in self.exts if not _is_pattern(ext)}
        return frozenset(self.exts)


def _is_pattern(ext: str) -> bool:
    return any(char in ext for char in "*?[")
