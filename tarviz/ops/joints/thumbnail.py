"""A JPEG decoded, cut, resized, mirrored and made fractions with no array between."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import TarvizError
from tarviz.ops.base import Draw, FieldOp, Op
from tarviz.ops.decode import Decode
from tarviz.ops.flip import Flip
from tarviz.ops.joints.scaling import Scaling, fitting, scaling
from tarviz.ops.resize import Resize
from tarviz.ops.values.bands import Mirror
from tarviz.ops.values.geometric import CropOp
from tarviz.ops.values.geometry import Cropped, Mirrored
from tarviz.ops.values.pictures import decode_in_place
from tarviz.ops.values.resizer import resize_in_place

T = TypeVar("T", bound=FieldOp)


_KEPT = 64_000_000  # bytes of memory that a thread keeps for the next picture: 16 Mpx, what telephones take
_ALIGNED = 64
_own = threading.local()


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A decode, at most one crop, a resize, and where they follow a flip, and a convert to fractions with a normalize; of one field."""

    decode: Decode
    crop: CropOp | None
    resize: Resize
    flip: Flip | None = None
    scaling: Scaling | None = None

    @property
    def ops(self) -> int:
        return 2 + (self.crop is not None) + (self.flip is not None) + (0 if self.scaling is None else self.scaling.ops)

    def run(self, record: Mapping[str, Any], draw: Draw | None, room: Mapping[str, NDArray[Any]]) -> dict[str, Any] | None:
        resize = resize_in_place()
        try:
            ext = self.decode.field(record)
            value = record[ext]
            if resize is None or not isinstance(value, bytes | bytearray | memoryview):
                return None
            pixels = decode_in_place(value, self.decode.least, _decoding)
            if pixels is None:
                return None
            if self.crop is not None:
                place = self.crop.geometry(pixels.shape[:2], draw)
                assert isinstance(place, Cropped)
                pixels = pixels[place.top : place.top + place.size[0], place.left : place.left + place.size[1]]
        except TarvizError:
            return None
        shape, mirror = (*self.resize.size, 3), self._mirror(draw)
        if self.scaling is None:
            return {**record, ext: resize(pixels, *self.resize.size, fitting(room.get(ext), shape, "uint8"), mirror)}
        whole = resize(pixels, *self.resize.size, _between(shape), mirror)
        made = self.scaling.scale(whole, room.get(ext))
        return None if made is None else {**record, ext: made}

    def _mirror(self, draw: Draw | None) -> Mirror:
        if self.flip is None:
            return ""
        own = None if draw is None else draw[self.crop.draws if self.crop is not None else 0 :]
        place = self.flip.geometry(self.resize.size, own)
        return place.direction if isinstance(place, Mirrored) else ""


def thumbnail(ops: Sequence[Op]) -> Thumbnail | None:
    """The joint that these ops begin with."""
    if not ops or not isinstance(decode := ops[0], Decode) or decode.kind != "picture" or decode.channels != 3 or decode.orient:
        return None
    crop, ops = _first(decode, ops[1:], CropOp)  # type: ignore[type-abstract]
    resize, ops = _first(decode, ops, Resize)
    if resize is None:
        return None
    flip, ops = _first(decode, ops, Flip)
    scaled = scaling(ops)
    return Thumbnail(decode, crop, resize, flip, scaled if scaled is not None and scaled.convert.ext == decode.ext else None)


def _first(decode: Decode, ops: Sequence[Op], kind: type[T]) -> tuple[T | None, Sequence[Op]]:
    """The first op where it is of this kind and works on what is decoded, and the ops after it."""
    first = ops[0] if ops else None
    return (first, ops[1:]) if isinstance(first, kind) and _plain(decode, first) else (None, ops)


def _plain(decode: Decode, op: FieldOp) -> bool:
    """Whether the op works on what is decoded, and on nothing else."""
    return op.ext == decode.ext and not getattr(op, "carry", ())


def _decoding(height: int, width: int) -> NDArray[np.uint8]:
    """Memory for a picture of four bytes a pixel; the thread's own, for one of ordinary size.

    It begins off the sixteen bytes of alignment: libjpeg-turbo writes aligned rows around the caches (jdcolext, `movntdq`), and the
    resize would wait for memory where it can have them from the cache (0.34 → 0.22 ms for 500×375).
    """
    memory = _memory("decoding", height * width * 4 + 2 * _ALIGNED)
    return memory[-memory.ctypes.data % _ALIGNED + 4 :]


def _between(shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Memory for an image that is worked on at once; the thread's own, for one of ordinary size."""
    need = shape[0] * shape[1] * shape[2]
    return _memory("between", need)[:need].reshape(shape)


def _memory(what: str, need: int) -> NDArray[np.uint8]:
    """At least so many bytes of memory, those of the thread where they suffice."""
    memory: NDArray[np.uint8] | None = getattr(_own, what, None) if need <= _KEPT else None
    if memory is None or len(memory) < need:
        memory = np.empty(need, np.uint8)
        if need <= _KEPT:
            setattr(_own, what, memory)
    return memory
