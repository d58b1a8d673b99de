"""What looks or reads alike though its bytes do not: pictures that were mirrored, turned, brightened, cropped; texts of the same words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tarviz.model.errors import MissingPackageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIDE = 32  # pixels of a small picture
_COARSE = 16  # of one half as large, by which pairs are proposed
_PROPOSED = 0.91  # correlation of those from which on a pair is looked at: with 3 % off each side it is 0.917 and more
LIKE = 0.94  # correlation of small pictures, cut alike, from which on they are: of changed ones 0.945 and more, of two pages of text 0.82
_CUT = 0.03  # of each side
_NEAR = 0.28  # how far what all eight turns of a picture share may lie apart: cropping moves it by 0.27
_CONTRAST = 4.0  # grey levels: a flat picture says nothing
_LIGHT = 1.35  # ratio of contrasts from which on it is another picture; brightened by 15 % they are 1.15
_BLOCK = 1 << 23  # products made at a time
_PAIRS = 1 << 13  # pairs compared at a time
SHINGLE = 5  # characters
SAME_WORDS = 0.8  # share of shingles that two texts have in common
_PERMUTATIONS = 128


def _turns(pictures: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """The eight ways a picture can be turned and mirrored."""
    turned = [np.rot90(pictures, times, (-2, -1)) for times in range(4)]
    return [*turned, *(np.flip(each, -1) for each in turned)]


def _of_length_1(pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    values = pictures - pictures.mean((1, 2), keepdims=True)
    lengths = np.sqrt(np.square(values).sum((1, 2), keepdims=True))
    return np.asarray(values / np.maximum(lengths, 1e-6), np.float32)


def _middles(pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    """What is left of pictures without `_CUT` of each side, as large as they were."""
    edges = np.linspace(_CUT, 1 - _CUT, SIDE + 1) * SIDE
    at = np.arange(SIDE)
    shares = np.minimum(edges[1:, None], at + 1) - np.maximum(edges[:-1, None], at)
    shares = (np.maximum(shares, 0) / (1 - 2 * _CUT)).astype(np.float32)
    return np.asarray(shares @ pictures @ shares.T, np.float32)


def same(
    small: NDArray[np.uint8],
    one: NDArray[np.int64],
    other: NDArray[np.int64],
    *,
    turned: bool = False,
    look: Callable[[], None] = lambda: None,
) -> NDArray[np.bool_]:
    """Whether pairs of small pictures are alike as they lie, or `turned` in one of eight ways; either may be the middle of the other."""
    found = [np.zeros(0, bool)]
    for low in range(0, len(one), _PAIRS):
        look()
        a, b = (small[each[low : low + _PAIRS]].astype(np.float32) for each in (one, other))
        most = np.full(len(a), -1, np.float32)
        for x, y in ((a, b), (_middles(a), b), (a, _middles(b))):
            x, y = _of_length_1(x), _of_length_1(y)
            for way in _turns(y) if turned else [y]:
                most = np.maximum(most, np.einsum("nij,nij->n", x, way))
        found.append(most >= LIKE)
    return np.concatenate(found)


def pictures(small: NDArray[np.uint8], *, look: Callable[[], None] = lambda: None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of small grey pictures, (n, `SIDE`, `SIDE`), that are alike in one of their eight turns, each pair once, the lower first.

    All are compared with all by what is the same in every turn (one product of matrices); those that are near by their correlation, first
    of half as many pixels a side, then of all.
    """
    values = small.reshape(-1, _COARSE, SIDE // _COARSE, _COARSE, SIDE // _COARSE).mean((2, 4), dtype=np.float32)
    values -= values.mean((1, 2), keepdims=True)
    contrast = np.sqrt(np.square(values).mean((1, 2)))
    at = np.flatnonzero(contrast >= _CONTRAST)
    contrast = contrast[at]
    values = values[at] / (contrast * _COARSE)[:, None, None]  # of length 1
    shared = np.zeros_like(values)
    for turned in _turns(values):
        shared += turned / 8
    shared = shared.reshape(len(at), -1)
    square = np.square(shared).sum(1)
    one, other = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    rows = max(1, _BLOCK // max(1, len(at)))
    for low in range(0, len(at), rows):
        look()
        part = slice(low, low + rows)
        apart = square[part, None] + square[None, low:] - 2 * (shared[part] @ shared[low:].T)
        near = np.nonzero(np.triu(apart <= _NEAR**2, 1))
        for first in range(0, len(near[0]), _PAIRS):  # of pages of text nearly all
            look()
            a, b = (each[first : first + _PAIRS] + low for each in near)
            light = np.maximum(contrast[a], contrast[b]) <= _LIGHT * np.minimum(contrast[a], contrast[b])
            a, b = a[light], b[light]
            like = np.array([np.einsum("nij,nij->n", values[a], turned) for turned in _turns(values[b])]).max(0) >= _PROPOSED
            a, b = at[a[like]], at[b[like]]
            like = same(small, a, b, turned=True, look=look)
            one.append(a[like])
            other.append(b[like])
    return np.concatenate(one), np.concatenate(other)


def texts(found: Sequence[str], *, look: Callable[[], None] = lambda: None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of texts that share `SAME_WORDS` of their runs of `SHINGLE` characters or more, each pair once, the lower first.

    MinHash proposes them (Broder 1997), the shingles themselves decide. Of texts that are the same each is joined to the first alone.
    `MissingPackageError` without datasketch.
    """
    try:
        from datasketch import MinHash, MinHashLSH
    except ImportError:
        raise MissingPackageError.of("datasketch", "Looking for texts that are alike", "near") from None
    index = MinHashLSH(threshold=SAME_WORDS - 0.1, num_perm=_PERMUTATIONS)
    sets: dict[int, frozenset[bytes]] = {}
    first: dict[str, int] = {}
    one: list[int] = []
    other: list[int] = []
    for at, text in enumerate(found):
        look()
        plain = re.sub(r"\W+", " ", unicodedata.normalize("NFKC", text).casefold()).strip()
        if not plain:
            continue
        if (same := first.setdefault(plain, at)) != at:
            one.append(same)
            other.append(at)
            continue
        if len(plain) < SHINGLE:
            continue
        shingles = frozenset(plain[place : place + SHINGLE].encode() for place in range(len(plain) - SHINGLE + 1))
        code = MinHash(num_perm=_PERMUTATIONS)
        code.update_batch(sorted(shingles))
        for near in sorted(index.query(code)):
            if len(sets[near] & shingles) >= SAME_WORDS * len(sets[near] | shingles):
                one.append(near)
                other.append(at)
        index.insert(at, code)
        sets[at] = shingles
    return np.array(one, np.int64), np.array(other, np.int64)
