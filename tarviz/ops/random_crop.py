"""A piece of an image, its place drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tarviz.ops.base import Draw
from tarviz.ops.values.geometric import CropOp


@dataclass(frozen=True, slots=True)
class RandomCrop(CropOp):
    """A piece of an image [h, w, c], `size` = (height, width) pixels of it, every place as likely.

    An image smaller than `size` is an error: put a resize before it.
    `carry` takes boxes, masks and points along: see the op `carry`.
    """

    name: ClassVar[str] = "random_crop"
    draws = 2

    def begin(self, spare: Any, share: Any) -> Any:
        return (0.5 if share is None else share) * (spare + 1)

    def describe_draw(self, draw: Draw) -> str:
        return f"cut {100 * draw[0]:.0f} % of the way down, {100 * draw[1]:.0f} % across"
