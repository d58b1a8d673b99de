"""A JPEG decoded, cut and resized with no array between."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import TarvizError
from tarviz.ops.base import Draw, FieldOp, Op
from tarviz.ops.center_crop import CenterCrop
from tarviz.ops.decode import Decode
from tarviz.ops.random_crop import RandomCrop
from tarviz.ops.resize import Resize
from tarviz.ops.values.geometry import Cropped
from tarviz.ops.values.pictures import decode_in_place
from tarviz.ops.values.resizer import resize_in_place

_KEPT = 16_000_000  # bytes of memory that a thread keeps for the next picture: 4 Mpx
_ALIGNED = 64
_own = threading.local()


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A decode, at most one crop, and a resize of one field."""

    decode: Decode
    crop: CenterCrop | RandomCrop | None
    resize: Resize

    @property
    def ops(self) -> int:
        return 2 + (self.crop is not None)

    def run(self, record: Mapping[str, Any], draw: Draw | None) -> dict[str, Any] | None:
        resize = resize_in_place()
        try:
            ext = self.decode.field(record)
            value = record[ext]
            if resize is None or not isinstance(value, bytes | bytearray | memoryview):
                return None
            pixels = decode_in_place(value, self.decode.least, _room)
            if pixels is None:
                return None
            if self.crop is not None:
                place = self.crop.geometry(pixels.shape[:2], draw)
                assert isinstance(place, Cropped)
                pixels = pixels[place.top : place.top + place.size[0], place.left : place.left + place.size[1]]
        except TarvizError:
            return None
        if pixels.shape[:2] == self.resize.size:
            return {**record, ext: pixels[:, :, :3].copy()}
        return {**record, ext: resize(pixels, *self.resize.size)}


def thumbnail(ops: Sequence[Op]) -> Thumbnail | None:
    """The joint that these ops begin with."""
    decode, after, behind = (*ops[:3], None, None, None)[:3]
    if not isinstance(decode, Decode) or decode.kind != "picture" or decode.channels != 3 or decode.orient:
        return None
    crop, last = (after, behind) if isinstance(after, CenterCrop | RandomCrop) else (None, after)
    if not isinstance(last, Resize) or not _plain(decode, last) or (crop is not None and not _plain(decode, crop)):
        return None
    return Thumbnail(decode, crop, last)


def _plain(decode: Decode, op: FieldOp) -> bool:
    """Whether the op works on what is decoded, and on nothing else."""
    return op.ext == decode.ext and not getattr(op, "carry", ())


def _room(height: int, width: int) -> NDArray[np.uint8]:
    """Memory for a picture of four bytes a pixel; the thread's own, for one of ordinary size.

    It begins off the sixteen bytes of alignment: libjpeg-turbo writes aligned rows around the caches (jdcolext, `movntdq`), and the
    resize would wait for memory where it can have them from the cache (0.34 → 0.22 ms for 500×375).
    """
    need = height * width * 4 + 2 * _ALIGNED
    memory: NDArray[np.uint8] | None = getattr(_own, "memory", None) if need <= _KEPT else None
    if memory is None or len(memory) < need:
        memory = np.empty(need, np.uint8)
        if need <= _KEPT:
            _own.memory = memory
    return memory[-memory.ctypes.data % _ALIGNED + 4 :]
