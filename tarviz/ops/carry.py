"""Fields that go along with a picture from here on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tarviz.model.errors import ChainError
from tarviz.ops.base import NamesOp
from tarviz.ops.values.carrying import carried_names, share_left


@dataclass(frozen=True, slots=True, init=False)
class Carry(NamesOp):
    """Boxes, masks and key points that go along with the picture `ext` in every op after it that moves pixels: resize, crops, flip, rotate.

    `carry(jpg, json, seg.png)` in a chain is the same as `carry=(json, seg.png)` on each of these ops. The record itself stays as it is.

    Bytes or a decoded tree of JSON, VOC's XML and YOLO's lines are rewritten in their own form (COCO, corners, shares, outlines, key
    points, run-length masks: what the browser draws over pictures). An array [h, w] or [h, w, c], a decoded mask, has its values taken
    from the nearest place. A form behind a colon says how boxes are written where their name does not: `"json:xyxy"`; an array [n, 4 or
    more] of boxes needs one (`"boxes.npy:cxcywh"`), points [n, 2 or more] are `"marks.npy:points"`; further columns stay with their row.

    Boxes and outlines are cut at the frame. One of which less than the share `visible` is left is taken out with its label and score,
    at 0 where nothing of it is left; None keeps all of them. Floats are written, in the same places. A rotated box is the smallest
    upright one round what is left of it; points are not renamed by a flip (a left eye stays the first of its list). What looks like
    annotations in a form that is not known is an error (`DataError`).

    >>> from tarviz.ops import parse_chain
    >>> parse_chain("carry(jpg, json)|flip(jpg)")[1].carry
    'json'
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

    def move(self, fields: dict[str, Any]) -> dict[str, Any]:
        return fields

    def needs(self, wanted: frozenset[str] | None) -> frozenset[str] | None:
        return wanted
