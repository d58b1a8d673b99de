"""Fields that go along with a picture from here on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tarviz.model.errors import ChainError
from tarviz.model.types import Schema
from tarviz.ops.base import RecordOp
from tarviz.ops.values.geometric import carried_names, share_left


@dataclass(frozen=True, slots=True, init=False)
class Carry(RecordOp):
    """Boxes, masks and key points that go along with the picture `ext` in every op after it that moves pixels: resize, crops, flip, rotate.

    `carry(jpg, json, seg.png)` at the start of a chain is the same as `carry=(json, seg.png)` on each of these ops: see `resize` for the
    fields and forms it takes, and for `visible`. The record itself stays as it is.
    """

    ext: str
    exts: tuple[str, ...]
    visible: float | None = field(default=0.0, kw_only=True)

    name: ClassVar[str] = "carry"

    def __init__(self, ext: str, *exts: str, visible: float | None = 0.0) -> None:
        if not isinstance(ext, str) or not ext or not exts:
            raise ChainError(
                f"{self.name} expects a picture and what lies over it, got {(ext, *exts)!r}.", hint="For example carry(jpg, json)."
            )
        names = carried_names(self.name, ext, exts)
        object.__setattr__(self, "ext", ext)
        object.__setattr__(self, "exts", (names,) if isinstance(names, str) else names)
        object.__setattr__(self, "visible", share_left(self.name, visible))

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        return [self.ext, *self.exts], {} if self.visible == 0.0 else {"visible": self.visible}

    @property
    def carry(self) -> str | tuple[str, ...]:
        """The fields as an op takes them."""
        return self.exts[0] if len(self.exts) == 1 else self.exts

    def apply_record(self, record: dict[str, Any]) -> dict[str, Any]:
        return record

    def apply_tf_record(self, record: dict[str, Any]) -> dict[str, Any]:
        """The same on a dict of tensors."""
        return record

    def infer_record(self, schema: Schema) -> Schema:
        return schema

    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        return wanted
