"""What looks or reads alike though its bytes do not: pictures that were mirrored, turned, brightened, cropped; texts of the same words."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import require

SIDE = 24  # pixels of a small picture
CUTS = 3  # small pictures of each: see `cuts`
_COARSE = 12  # pixels of one half as large, by which pairs are proposed
LIKE = 0.975  # correlation of small pictures from which on they are: of changed ones 0.995 and more, of two pages of text 0.967
_CUT = 0.03  # of each side
_NEAR = 0.13  # how far what all eight turns of a picture share may lie apart: of changed ones 0.05 and less
_CONTRAST = 4.0  # grey levels: a flat picture says nothing
_LIGHT = 1.35  # ratio of contrasts from which on it is another picture; brightened by 15 % they are 1.15
_BLOCK = 1 << 9  # pictures that are compared with as many at a time
_PAIRS = 1 << 13  # pairs compared at a time
SHINGLE = 5  # characters
SAME_WORDS = 0.8  # share of shingles that two texts have in common
_PERMUTATIONS = 128


def _turns(pictures: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """The eight ways a picture can be turned and mirrored."""
    turned = [np.rot90(pictures, times, (-2, -1)) for times in range(4)]
    return [*turned, *(np.flip(each, -1) for each in turned)]


def cuts(width: int, height: int) -> list[tuple[int, int, int, int]]:
    """Left, top, right, bottom of a picture and of its middles, without 3 % of each side, or without as many pixels of the upper and lower
    ones: shrunk from its own pixels, lines of text lie as in one that was cropped so.

    >>> cuts(200, 100)[1:], cuts(200, 3)[2]
    ([(6, 3, 194, 97), (6, 6, 194, 94)], (6, 1, 194, 2))
    """
    x, y = round(_CUT * width), round(_CUT * height)
    even = min(x, (height - 1) // 2)
    return [(edge, top, width - edge, height - top) for edge, top in ((0, 0), (x, y), (x, even))]


def _of_length_1(pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
    values = pictures - pictures.mean((-2, -1), keepdims=True, dtype=np.float32)
    lengths = np.sqrt(np.square(values).sum((-2, -1), keepdims=True))
    return np.asarray(values / np.maximum(lengths, 1e-6), np.float32)


def same(
    small: NDArray[np.uint8], one: NDArray[np.int64], other: NDArray[np.int64], *, look: Callable[[], None] = lambda: None
) -> NDArray[np.bool_]:
    """Whether pairs of pictures are alike as they lie; either may be a middle of the other."""
    found = [np.zeros(0, bool)]
    for low in range(0, len(one), _PAIRS):
        look()
        a, b = (_of_length_1(small[each[low : low + _PAIRS]]) for each in (one, other))
        most = np.maximum(np.einsum("nkij,nij->nk", a, b[:, 0]).max(1), np.einsum("nij,nkij->nk", a[:, 0], b).max(1))
        found.append(most >= LIKE)
    return np.concatenate(found)


def _shared(pictures: NDArray[np.float32]) -> NDArray[np.float32]:
    """What no turn of a picture changes, the mean of all eight, as far as its pixels differ: those of one eighth, weighed so that these
    numbers are as far apart as the means are."""
    row, column = np.triu_indices(_COARSE // 2)
    weight = np.sqrt(np.where(row == column, 4, 8)).astype(np.float32)  # so many pixels of a mean are this one
    mean: NDArray[np.float32] = np.mean([turned[..., row, column] for turned in _turns(pictures)], 0)
    return mean * weight


def pictures(small: NDArray[np.uint8], *, look: Callable[[], None] = lambda: None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of pictures that are alike in one of their eight turns, each pair once, the lower first. `small`: their `cuts` in grey,
    (n, `CUTS`, `SIDE`, `SIDE`).

    All are compared with all, and with the middles of all, by what is the same in every turn: along the direction in which they differ
    most those that lie too far apart are passed over, of the others a product of matrices is the distance. Those that are near are
    compared by their correlation.
    """
    values = small.reshape(-1, CUTS, _COARSE, SIDE // _COARSE, _COARSE, SIDE // _COARSE).mean((3, 5), dtype=np.float32)
    contrast = values[:, 0].std((1, 2))
    at = np.flatnonzero(contrast >= _CONTRAST)
    shared = _shared(_of_length_1(values[at]))
    most = np.linalg.eigh(np.cov(shared[:, 0], rowvar=False, bias=True))[1][:, -1] if len(at) else np.zeros(shared.shape[2])
    places = shared @ most
    order = np.argsort(places[:, 0])
    at, shared, places = at[order], shared[order], places[order]
    contrast = contrast[at]
    square = np.square(shared).sum(2, keepdims=True)
    left = np.concatenate((-2 * shared, square, np.ones_like(square)), 2)
    right = np.concatenate((shared, np.ones_like(square), square), 2)[:, 0].T
    found = [np.zeros(0, np.int64)]
    for low, cut in itertools.product(range(0, len(at), _BLOCK), range(CUTS)):
        rows = slice(low, low + _BLOCK)
        first, last = np.searchsorted(places[:, 0], (places[rows, cut].min() - _NEAR, places[rows, cut].max() + _NEAR))
        for begin in range(first if cut else low, last, _BLOCK):
            look()
            apart = left[rows, cut] @ right[:, begin : min(begin + _BLOCK, last)]
            a, b = np.divmod(np.flatnonzero(apart <= _NEAR**2), apart.shape[1])
            a, b = a + low, b + begin
            good = (a != b if cut else a < b) & (np.maximum(contrast[a], contrast[b]) <= _LIGHT * np.minimum(contrast[a], contrast[b]))
            a, b = at[a[good]], at[b[good]]
            for some in range(0, len(a), _PAIRS):  # of pages of text there are many
                look()
                x, y = a[some : some + _PAIRS], b[some : some + _PAIRS]
                cut_off, ways = _of_length_1(small[x, cut]), _turns(_of_length_1(small[y, 0]))
                like = np.max([np.einsum("nij,nij->n", cut_off, way) for way in ways], 0) >= LIKE
                found.append((np.minimum(x, y) * len(small) + np.maximum(x, y))[like])
    both = np.unique(np.concatenate(found))
    return both // len(small), both % len(small)


def texts(found: Sequence[str], *, look: Callable[[], None] = lambda: None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of texts that share `SAME_WORDS` of their runs of `SHINGLE` characters or more, each pair once, the lower first.

    MinHash proposes them (Broder 1997), the shingles themselves decide. Of texts that are the same each is joined to the first alone.
    `MissingPackageError` without datasketch.
    """
    datasketch = require("datasketch", "Looking for texts that are alike", "near")
    index = datasketch.MinHashLSH(threshold=SAME_WORDS - 0.1, num_perm=_PERMUTATIONS)
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
        code = datasketch.MinHash(num_perm=_PERMUTATIONS)
        code.update_batch(sorted(shingles))
        for near in sorted(index.query(code)):
            if len(sets[near] & shingles) >= SAME_WORDS * len(sets[near] | shingles):
                one.append(near)
                other.append(at)
        index.insert(at, code)
        sets[at] = shingles
    return np.array(one, np.int64), np.array(other, np.int64)
