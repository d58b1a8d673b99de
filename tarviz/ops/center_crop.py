"""The middle of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tarviz.ops.values.geometric import CropOp


@dataclass(frozen=True, slots=True)
class CenterCrop(CropOp):
    """The middle of an image [h, w, c], `size` = (height, width) pixels of it; an odd rest stays at the bottom and right.

    An image smaller than `size` is an error: put a resize before it.
    `carry` takes boxes, masks and points along: see the op `carry`.
    """

    name: ClassVar[str] = "center_crop"

    def begin(self, spare: Any, share: Any) -> Any:
        return spare // 2
