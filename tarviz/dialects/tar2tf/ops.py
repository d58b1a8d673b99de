"""The ops of tar2tf, both generations: those of `tarviz.ops`, whose first argument is a field (2) or another op (1).

`Func` alone has an argument more: in the first generation it makes one value, under a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tarviz.model.errors import ChainError
from tarviz.model.types import PLACES, Schema
from tarviz.ops import Convert, Decode, Rename, Resize
from tarviz.ops import Rotate as ByAngle
from tarviz.ops.func import Func as RecordFunc
from tarviz.ops.func import as_numpy
from tarviz.selection import Select, SelectAll, SelectDict, SelectJSON, SelectList

__all__ = ["Convert", "Decode", "Func", "Rename", "Resize", "Rotate", "Select", "SelectDict", "SelectJSON", "SelectList"]


@dataclass(frozen=True, slots=True)
class Rotate(ByAngle):
    """Turns by `angle` degrees clockwise; 0, or none given, turns by a random angle, as tar2tf has it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "angle", self.angle or None)
        ByAngle.__post_init__(self)


@dataclass(frozen=True, slots=True)
class Func(RecordFunc):
    """A function of the record: `__key__` and the fields. Without `ext_name` it returns the record; with it, the value of that field."""

    ext_name: str | None = None

    def __post_init__(self) -> None:
        RecordFunc.__post_init__(self)
        if self.ext_name is not None and (not isinstance(self.ext_name, str) or not self.ext_name):
            raise ChainError(f"func needs the name of a field for ext_name, got {self.ext_name!r}.")

    @property
    def made(self) -> str | None:
        return self.ext_name or "func"

    def apply_record(self, record: dict[str, Any]) -> dict[str, Any]:
        if self.ext_name is None:
            return {
                **{name: value for name, value in record.items() if name in PLACES},
                **RecordFunc.apply_record(self, names(record)),
            }
        return {**record, self.ext_name: as_value(self.f(names(record)))}

    def infer_record(self, schema: Schema) -> Schema:
        if self.ext_name is None or self.typed:
            return RecordFunc.infer_record(self, schema)
        return schema


def as_value(value: Any) -> Any:
    """What a function returned, as a field holds it: lists of numbers and tensors become arrays."""
    value = as_numpy(value)
    return np.asarray(value) if isinstance(value, list | tuple) else value


def names(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as tar2tf has it: `__key__` and the fields."""
    found: dict[str, Any] = SelectAll().pick(record)
    return found
