"""What a picture looks like in numbers: which colours, and where its edges run in which direction."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.looks.likeness import LENGTH, SIDE, likeness


def black() -> np.ndarray:
    return np.zeros((SIDE, SIDE, 3), np.uint8)


def test_colours_are_counted_in_64_boxes():
    picture = black()
    picture[:8] = (255, 64, 128)
    found = likeness(picture)

    assert ((LENGTH,), np.float32) == (found.shape, found.dtype)
    assert {0: pytest.approx(0.75**0.5), 3 * 16 + 1 * 4 + 2: pytest.approx(0.25**0.5)} == {
        at: found[at] for at in np.flatnonzero(found[:64])
    }
    assert pytest.approx(1) == np.linalg.norm(found[64:])


@pytest.mark.parametrize(("row", "column"), [(0, 0), (0, 3), (2, 1), (3, 3)])
def test_an_edge_is_in_its_part_of_the_picture(row, column):
    picture = black()
    picture[8 * row + 4, 8 * column + 4] = 255

    assert {4 * row + column} == {at // 8 for at in np.flatnonzero(likeness(picture)[64:])}


def test_edges_are_told_apart_by_the_direction_they_run_in():
    down, across = np.mgrid[:SIDE, :SIDE]
    directions = {}
    for name, ramp in {"upright": across, "level": down, "falling": 3 * across + 2 * down, "rising": 3 * across - 2 * down + 62}.items():
        found = likeness(np.repeat(ramp.astype(np.uint8)[:, :, None], 3, axis=2))[64:].reshape(16, 8)
        directions[name] = np.flatnonzero(found.sum(axis=0)).tolist()

    assert {"upright": [0], "level": [4], "falling": [1], "rising": [6]} == directions
