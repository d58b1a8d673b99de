"""Vectors as places: PCA against NumPy's SVD, and what it refuses."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tarviz.looks import projection
from tarviz.looks.likeness import LENGTH, SIDE, likeness
from tarviz.model.errors import MissingPackageError, UsageError


@pytest.mark.parametrize("shape", [(200, 7), (40_000, 5), (5, 60), (3, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_components_are_those_of_the_singular_value_decomposition_up_to_sign(shape, dtype):
    draw = np.random.default_rng(2)
    vectors = (draw.normal(size=shape) @ np.diag(np.linspace(30, 3, shape[1])) + 100).clip(0, 250).astype(dtype)
    centred = vectors - vectors.mean(axis=0, dtype=np.float64)
    left, strength, _ = np.linalg.svd(centred, full_matrices=False)
    expected = left[:, :2] * strength[:2]

    found, shares = projection.pca(vectors)

    assert np.float32 == found.dtype
    for at in range(2):
        sign = np.sign(expected[:, at] @ found[:, at])
        assert np.abs(expected[:, at] - sign * found[:, at]).max() < 1e-3
    assert np.allclose(strength[:2] ** 2 / (strength**2).sum(), shares, atol=1e-9)


def test_the_same_vectors_in_another_order_have_the_same_signs():
    vectors = np.random.default_rng(1).normal(size=(300, 6))
    order = np.random.default_rng(2).permutation(300)

    assert np.allclose(projection.pca(vectors)[0][order], projection.pca(vectors[order])[0], atol=1e-5)


def test_one_number_a_record_leaves_the_second_axis_empty():
    found, shares = projection.pca(np.arange(4.0)[:, None])

    assert [0, 0, 0, 0] == found[:, 1].tolist()
    assert [1, 0] == shares.tolist()


def test_vectors_that_are_all_the_same_have_one_place():
    found, shares = projection.pca(np.ones((9, 3), np.float32))

    assert not found.any()
    assert not shares.any()


def test_what_cannot_be_projected_is_said():
    with pytest.raises(UsageError, match="too long for a map: at most 8,192"):
        projection.pca(np.zeros((2, 8193), np.float32))
    with pytest.raises(UsageError, match="There is no projection 'tsne'"):
        projection.project(np.zeros((2, 3)), "tsne")


def test_umap_names_its_package_where_it_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)

    with pytest.raises(MissingPackageError, match="umap-learn"):
        projection.project(np.zeros((20, 3)), "umap")


def test_colour_and_shape_tell_pictures_apart():
    red, blue = np.zeros((2, SIDE, SIDE, 3), np.uint8)
    red[..., 0], blue[..., 2] = 200, 200
    across, along = np.zeros((2, SIDE, SIDE, 3), np.uint8)
    across[::4], along[:, ::4] = 255, 255
    found = {name: likeness(picture) for name, picture in {"red": red, "blue": blue, "across": across, "along": along}.items()}

    assert all((LENGTH,) == vector.shape and np.float32 == vector.dtype for vector in found.values())
    assert found["red"] @ found["blue"] == 0  # another colour
    assert found["across"][:64] @ found["along"][:64] > 0.99  # the same colours
    assert found["across"][64:] @ found["along"][64:] < 0.1  # other edges
