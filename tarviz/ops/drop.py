"""All fields but these."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from tarviz.model.types import PLACES
from tarviz.ops.base import NamesOp, patterns


@dataclass(frozen=True, slots=True, init=False)
class Drop(NamesOp):
    """Drops the fields named: `Drop("json", "seg.*")`; `*` and `?` match as in file names. What is not there is no error."""

    exts: tuple[str, ...]

    name: ClassVar[str] = "drop"

    def __init__(self, *exts: str) -> None:
        object.__setattr__(self, "exts", patterns(self.name, exts))

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        return list(self.exts), {}

    def moved(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value
            for name, value in fields.items()
            if name in PLACES or not any(fnmatchcase(name, ext) or name == ext for ext in self.exts)
        }

    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        return wanted
