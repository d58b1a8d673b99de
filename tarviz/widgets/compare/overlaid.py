"""What lies over the steps of a chain: boxes, outlines, points and masks where they were carried along, a word where they stayed behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tarviz import viewers
from tarviz.looks import shapes
from tarviz.looks.shapes import Frame, Shape
from tarviz.ops.base import Op, names_of
from tarviz.ops.chains import Chain
from tarviz.ops.resize import Resize
from tarviz.ops.values.geometric import CarryingOp
from tarviz.widgets.panes.overlays import Overlay, Overlays

_SIDE = 320  # pixels a side of a mask
_TWO_SIZES = (1000, 2000)  # of a picture, to see whether annotations grow with it


class Overlaid:
    """Follows what lies over the picture of one record through the steps of a chain.

    `behind` are fields that lay over it before an op moved its pixels and did not carry them: they are drawn no more.
    """

    def __init__(self, overlays: Overlays, chain: Chain) -> None:
        self.overlays = overlays
        self.behind: frozenset[str] = frozenset()
        self._forms = {name: form for op in chain if isinstance(op, CarryingOp) for name, form in op.carries if form}
        self._lying: frozenset[str] = frozenset()

    def over(self, record: Mapping[str, Any], ext: str) -> Overlay | None:
        """What lies over the field `ext` of a record; None where it is no picture, or nothing does."""
        size = _size(record.get(ext), ext)
        if size is None:
            return None
        names = names_of(record)
        sizes = {name: len(value) if isinstance(value := record[name], bytes) else 0 for name in names}
        wanted = [name for name in self.overlays.fields(sizes, ext) if name not in self.behind]
        over = self.overlays.over({name: record[name] for name in wanted}, ext, size[1], size[0], _SIDE)
        rows = [name for name in self._forms if name in record and name not in self.behind]
        more = [shape for name in rows for shape in _shapes(record[name], self._forms[name], size)]
        if more:
            over = Overlay(over.width, over.height, (*over.shapes, *more), over.masks, (*over.fields, *rows))
        for shape in over.shapes:
            self.overlays.colour(shape.name)
        self._lying |= frozenset(over.fields)
        return over or None

    def step(self, op: Op, record: Mapping[str, Any], ext: str) -> str:
        """Take note of an op that was done, whose picture is `ext`; a sentence where it left something behind."""
        if not isinstance(op, CarryingOp) or op.field(record) != ext:
            return ""
        left = sorted(self._lying - self.behind - {name for name, _ in op.carries})
        if isinstance(op, Resize):
            left = [name for name in left if not _in_shares(record[name], name)]
        self.behind |= frozenset(left)
        return f"{', '.join(left)} stayed behind: carry({ext}, {', '.join(left)})" if left else ""


def _in_shares(value: Any, ext: str) -> bool:
    """Whether what a field says of a picture is right for it in any size: shares, or a VOC file that says of which size it speaks."""
    small, large = (
        shapes.read(bytes(value), ext, size, size) if isinstance(value, bytes | bytearray | memoryview) else shapes.find(value, size, size)
        for size in _TWO_SIZES
    )
    scale = _TWO_SIZES[1] / _TWO_SIZES[0]
    return len(small) == len(large) > 0 and all(
        a.kind != "mask" and np.allclose(np.multiply(_places(a), scale), _places(b), atol=0.05) for a, b in zip(small, large, strict=True)
    )


def _places(shape: Shape) -> list[float]:
    return [n for at, n in enumerate(shape.numbers) if shape.kind != "points" or at % 3 != 2]


def _size(value: Any, ext: str) -> tuple[int, int] | None:
    if isinstance(value, np.ndarray):
        return (value.shape[0], value.shape[1]) if value.ndim in (2, 3) and min(value.shape[:2]) > 1 else None
    width, height = viewers.picture_size(memoryview(value), ext) if isinstance(value, bytes | bytearray | memoryview) else (0, 0)
    return (height, width) if width else None


def _shapes(value: Any, form: str, size: tuple[int, int]) -> list[Shape]:
    """Rows of an array whose form was said."""
    if not isinstance(value, np.ndarray) or value.ndim != 2:
        return []
    rows = value[:400].tolist()
    frame = Frame(size[1], size[0], form)
    if form == "points":
        flat = frame.pixels([n for row in rows for n in row[:2]])
        return [Shape("points", tuple(n for x, y in zip(flat[::2], flat[1::2], strict=True) for n in (x, y, 2.0)))] if flat else []
    found = zip(rows, frame.boxes(rows, form), strict=True)
    return [Shape("box", box, f"{row[4]:g}" if len(row) > 4 else "") for row, box in found if box is not None]
