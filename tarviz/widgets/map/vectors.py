"""A vector a record for the map: an embedding that lies in a field, or what a picture looks like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tarviz import viewers
from tarviz.formats.npy import array_of
from tarviz.looks import likeness
from tarviz.looks.projection import LONGEST
from tarviz.model.errors import DataError, LimitError, TarvizError, UsageError
from tarviz.viewers.image import open_picture
from tarviz.widgets.browse.rows import Rows, Want, payloads

MOST_BYTES = 2 << 30
MOST_PICTURES = 20_000
"""Pictures that are decoded for a map; of more, as many are taken at even steps."""

_CHUNK = 256


@dataclass(frozen=True, slots=True, eq=False)
class MapVectors:
    """float32 [n, d], and the rows they are of."""

    ids: NDArray[np.int64]
    values: NDArray[np.float32]
    note: str
    """What was left out; "" where nothing was."""


def read(rows: Rows, ids: NDArray[np.int64], ext: str, say: Callable[[int, int], None]) -> MapVectors:
    """The vectors of rows: an `npy` field flat as it is, a picture as its `likeness`. `say(done, of)` may raise to end it.

    `UsageError` where arrays differ in shape or are no numbers, or where no record has any; `LimitError` above 2 GiB.
    """
    picture = viewers.choose(ext) == "image"
    notes = []
    if picture and len(ids) > MOST_PICTURES:
        ids = ids[np.linspace(0, len(ids) - 1, MOST_PICTURES).astype(np.int64)]
        notes.append(f"{len(ids):,} records at even steps")
    kept: list[int] = []
    found: NDArray[np.float32] | None = None
    shape: tuple[int, ...] = ()
    first = ""
    missing = bad = 0
    for low in range(0, len(ids), _CHUNK):
        some = [rows.row(row) for row in ids[low : low + _CHUNK].tolist()]
        blobs = payloads(Want(row, ext) for row in some)
        for row, blob in zip(some, blobs, strict=True):
            if isinstance(blob, TarvizError):
                absent = blob.code == "E_MISSING_FIELD"
                missing, bad = missing + absent, bad + (not absent)
                continue
            try:
                vector = _picture_vector(blob, ext) if picture else array_of(blob)
            except (DataError, OSError, SyntaxError, ValueError, EOFError):
                bad += 1
                continue
            if found is None:
                shape, first = _fit(vector, ext, row.key), row.key
                found = np.empty((len(ids), vector.size), np.float32)
                if found.nbytes > MOST_BYTES:
                    raise LimitError(
                        f"{len(ids):,} vectors of {vector.size:,} numbers need {found.nbytes:,} bytes; at most {MOST_BYTES:,}."
                    )
            if vector.shape != shape:
                words = f".{ext} holds arrays of different shapes: {list(shape)} in {first}, {list(vector.shape)} in {row.key}."
                raise UsageError(words, hint="A map needs vectors of one length.")
            found[len(kept)] = vector.ravel()
            kept.append(row.id)
        say(min(low + _CHUNK, len(ids)), len(ids))
    if found is None:
        raise UsageError(f"No record has a .{ext} that can be read.")
    values = found[: len(kept)]
    good = np.isfinite(values).all(axis=1)
    bad += int((~good).sum())
    notes += [f"{count:,} {what}" for count, what in ((missing, "without the field"), (bad, "unreadable")) if count]
    return MapVectors(np.array(kept, np.int64)[good], values[good] if not good.all() else values, ", ".join(notes))


def _fit(vector: NDArray[np.generic], ext: str, key: str) -> tuple[int, ...]:
    """The shape of a first vector, which all others have to have."""
    if vector.dtype.kind not in "fiu" or not vector.size:
        raise UsageError(f".{ext} of {key} is {vector.dtype}{list(vector.shape)}: not a vector of numbers.")
    if vector.size > LONGEST:
        raise UsageError(f".{ext} of {key} has {vector.size:,} numbers: too long for a map, which takes at most {LONGEST:,}.")
    return vector.shape


def _picture_vector(blob: bytes, ext: str) -> NDArray[np.float32]:
    from PIL import Image

    picture = open_picture(memoryview(blob), ext)
    picture.draft("RGB", (2 * likeness.SIDE, 2 * likeness.SIDE))
    small = picture.convert("RGB").resize((likeness.SIDE, likeness.SIDE), Image.Resampling.BOX)
    return likeness.likeness(np.asarray(small))
