"""Many numbers a record as two: principal components by NumPy, UMAP where it is installed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tarviz.model.errors import UsageError, require

METHODS = ("pca", "umap")
LONGEST = 8192
"""Numbers of a vector that are taken."""

_CHUNK = 4096


def pca(vectors: NDArray[Any], count: int = 2) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """The first `count` principal components of vectors [n, d] as float32 [n, count], and the share of the variance in each.

    The sign of a component, which is free, is such that its largest weight is positive. Where there are fewer than `count`, the others
    are 0. `UsageError` for vectors of more than 8,192 numbers.

    >>> pca(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]), 1)[1].tolist()
    [1.0]
    """
    if vectors.shape[1] > LONGEST:
        raise UsageError(f"A vector of {vectors.shape[1]:,} numbers is too long for a map: at most {LONGEST:,}.")
    rows, width = vectors.shape
    mean = vectors.mean(axis=0, dtype=np.float64) if rows else np.zeros(width)
    spread = np.zeros((width, width))
    exact = np.float32 if vectors.dtype in (np.float32, np.float16) else np.float64  # float32 takes half the time; sums are float64
    for low in range(0, rows, _CHUNK):
        part: NDArray[Any] = (vectors[low : low + _CHUNK] - mean).astype(exact)
        spread += np.asarray(part.T @ part, np.float64)
    values, weights = np.linalg.eigh(spread)
    weights = weights[:, ::-1][:, :count]
    weights *= np.where(np.take_along_axis(weights, np.abs(weights).argmax(axis=0)[None], axis=0) < 0, -1, 1)
    found = np.zeros((rows, count), np.float32)
    for low in range(0, rows, _CHUNK):
        found[low : low + _CHUNK, : weights.shape[1]] = (vectors[low : low + _CHUNK] - mean) @ weights
    shares = np.zeros(count)
    shares[: weights.shape[1]] = values[::-1][:count].clip(0) / max(float(values.clip(0).sum()), 1e-300)
    return found, shares


def umap(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """UMAP of vectors [n, d] as float32 [n, 2]. `MissingPackageError` where `umap-learn` is not installed."""
    package = require("umap", "UMAP", package="umap-learn")
    with warnings.catch_warnings(action="ignore"):  # numba's and sklearn's words about themselves
        found = package.UMAP(n_components=2, random_state=0).fit_transform(vectors)
    return np.asarray(found, np.float32)


def project(vectors: NDArray[Any], by: str = "pca") -> tuple[NDArray[np.float32], str]:
    """Vectors [n, d] as places float32 [n, 2], and a sentence about them."""
    if by not in METHODS:
        raise UsageError(f"There is no projection {by!r}.", hint=f"There are: {', '.join(METHODS)}.")
    if by == "umap":
        return umap(vectors), "UMAP"
    places, shares = pca(vectors)
    return places, f"PCA, {100 * shares[0]:.0f} % and {100 * shares[1]:.0f} % of the variance"
