"""Points in colour: the values of a column as numbers of a palette, and the words that explain it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tarviz.looks import tones
from tarviz.widgets.browse.rows import places
from tarviz.widgets.map.axes import AxisValues

_NONE = (128, 128, 132)
_OTHER = (168, 160, 148)
_TAIL = 0.5  # percent at both ends that have the colours of the ends


@dataclass(frozen=True, slots=True, eq=False)
class Colours:
    """`codes` uint8 [n] count in `palette` uint8 [256, 3]; 0 is no value. `legend` holds (code, name, count), or for numbers the values
    of the first and the last colour stand in `ends`."""

    codes: NDArray[np.uint8]
    palette: NDArray[np.uint8]
    legend: tuple[tuple[int, str, int], ...] = ()
    ends: tuple[float, float] | None = None


def colour_points(ids: NDArray[np.int64], groups: AxisValues, numbered: NDArray[np.int64]) -> Colours:
    """The colours of points `ids`; `numbered` are the ids that `groups` is of, in its order."""
    at = places(numbered, ids)
    known = at >= 0
    palette = np.zeros((256, 3), np.uint8)
    palette[0] = _NONE
    if groups.values is not None:
        values = np.where(known, groups.values[at], np.nan)
        good = np.isfinite(values)
        low, high = (float(edge) for edge in np.percentile(values[good], (_TAIL, 100 - _TAIL))) if good.any() else (0.0, 1.0)
        share = (np.nan_to_num(values, nan=low, posinf=high, neginf=low) - low) / (high - low if high > low else 1)
        codes = np.where(good, 1 + (share.clip(0, 1) * 254), 0).astype(np.uint8)
        palette[1:] = tones.table("viridis")[np.linspace(0, 255, 255).astype(np.int64)]
        return Colours(codes, palette, (), (low, high))
    assert groups.codes is not None
    codes = np.where(known, groups.codes[at] + 1, 0).astype(np.uint8)
    count = len(groups.names)
    palette[1 : count + 1] = tones.id_colours()[1 : count + 1]
    palette[count + 1] = _OTHER
    sums = np.bincount(codes, minlength=256)
    names = [(code + 1, name) for code, name in enumerate(groups.names)] + [(count + 1, "rarer ones"), (0, "no value")]
    return Colours(codes, palette, tuple((code, name, int(sums[code])) for code, name in names if sums[code]))
