"""Masks written as run lengths, as COCO writes them: the lengths of runs of 0 and 1 in turn, down one column after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import DataError

_LONGEST = 12  # letters of a number of 60 bits
_MOST_PIXELS = 1 << 28


def is_runs(value: Any) -> bool:
    """Whether a value of a JSON is such a mask: `size` (height, width) and `counts`.

    >>> is_runs({"size": [2, 3], "counts": [1, 2, 3]}), is_runs([[1, 2, 3, 4, 5, 6]])
    (True, False)
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("counts"), list | str | bytes):
        return False
    size = value.get("size")
    return isinstance(size, Sequence) and len(size) == 2 and all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in size)


def lengths(value: Mapping[str, Any]) -> NDArray[np.int64]:
    """The lengths of the runs of a mask, the first of them of 0; of a list or of COCO's text. `DataError` where they do not make `size`.

    >>> lengths({"size": [3, 4], "counts": "243MO"}).tolist()
    [2, 4, 3, 1, 2]
    """
    counts, (height, width) = value["counts"], value["size"]
    if isinstance(counts, list):
        whole = all(isinstance(n, int) and not isinstance(n, bool) for n in counts)
        found = np.array(counts if whole and all(abs(n) < 1 << 60 for n in counts) else [-1], np.int64)
    else:
        found = _read(counts.encode("utf-8", "replace") if isinstance(counts, str) else counts)
    pixels = height * width
    if pixels > _MOST_PIXELS or (found < 0).any() or (found > pixels).any() or int(found.sum()) != pixels:
        raise DataError(f"a run-length mask of {height} x {width} has runs that do not fill it; it is damaged.")
    return found


def decode(value: Mapping[str, Any]) -> NDArray[np.uint8]:
    """The mask [height, width] of 0 and 1.

    >>> decode({"size": [2, 3], "counts": [1, 3, 2]})
    array([[0, 1, 0],
           [1, 1, 0]], dtype=uint8)
    """
    found = lengths(value)
    flat = np.repeat(np.arange(len(found), dtype=np.uint8) & 1, found)
    return np.ascontiguousarray(flat.reshape(value["size"][::-1]).T)


def encode(mask: NDArray[Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """A mask [h, w] (0, or not) as run lengths, in the form of `like`: a list, a text, or bytes; whatever else `like` holds is kept.

    >>> encode(np.array([[0, 1, 0], [1, 1, 0]]), {"size": [9, 9], "counts": ""})
    {'size': [2, 3], 'counts': '132'}
    """
    runs = _runs(np.asarray(mask).astype(bool).T.ravel())
    text = like["counts"]
    counts: Any = runs.tolist() if isinstance(text, list) else _as_text(runs) if isinstance(text, str) else _as_text(runs).encode()
    return {**like, "size": [int(mask.shape[0]), int(mask.shape[1])], "counts": counts}


def thin(value: Mapping[str, Any], side: int = 0) -> tuple[int, ...]:
    """Height, width and runs of a mask, taken from the nearest places where it has more than `side` pixels a side (0: as it is).

    >>> thin({"size": [4, 4], "counts": [4, 8, 4]}, 2)
    (2, 2, 0, 2, 2)
    """
    found, (height, width) = lengths(value), value["size"]
    if side and max(height, width) > side:
        scale = side / max(height, width)
        new_height, new_width = max(1, round(height * scale)), max(1, round(width * scale))
        rows = ((np.arange(new_height) + 0.5) * height / new_height).astype(np.int64)
        columns = ((np.arange(new_width) + 0.5) * width / new_width).astype(np.int64)
        places = (columns[:, None] * height + rows).ravel()
        at = np.searchsorted(np.cumsum(found), places, "right")
        height, width, found = new_height, new_width, _runs(at % 2 == 1)
    return (height, width, *found.tolist())


def _runs(flat: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Lengths of the runs, the first of them of 0, if need be of none."""
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    ends = np.concatenate(([0] if len(flat) and flat[0] else [], changes, [len(flat)])).astype(np.int64)
    return np.diff(ends, prepend=0)


def _read(letters: bytes) -> NDArray[np.int64]:
    """Numbers of COCO's text: 5 bits a letter above 48, the lowest first, 32 where more follow, the last with a sign; each but the first
    three is what it differs by from the one before the last. Source: cocoapi/common/maskApi.c, `rleFrString`."""
    codes = np.frombuffer(letters, np.uint8).astype(np.int64) - 48
    if not len(codes):
        return codes
    last = codes & 32 == 0
    begins = np.flatnonzero(np.concatenate(([True], last[:-1])))
    sizes = np.diff(begins, append=len(codes))
    if (codes < 0).any() or (codes > 63).any() or not last[-1] or sizes.max() > _LONGEST:
        raise DataError("a run-length mask holds a text that is none of COCO's; it is damaged.")
    bits = (codes & 31) << (5 * (np.arange(len(codes)) - np.repeat(begins, sizes)))
    numbers = np.add.reduceat(bits, begins)
    numbers -= np.where(codes[last] & 16, 1 << (5 * sizes), 0)
    numbers[1::2], numbers[2::2] = np.cumsum(numbers[1::2]), np.cumsum(numbers[2::2])
    return numbers


def _as_text(runs: NDArray[np.int64]) -> str:
    made = []
    for at, run in enumerate(runs.tolist()):
        number = run - int(runs[at - 2]) if at > 2 else run
        more = True
        while more:
            code, number = number & 31, number >> 5
            more = number != (-1 if code & 16 else 0)
            made.append(chr(48 + code + 32 * more))
    return "".join(made)
