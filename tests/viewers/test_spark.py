"""A line as a small picture: the extremes of every column are in it."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tarviz.looks import tones
from tarviz.viewers.spark import sparkline


def pixels(values: list[float] | np.ndarray, size: int = 32) -> np.ndarray:
    with Image.open(io.BytesIO(sparkline(np.asarray(values, np.float64), size))) as image:
        assert (size, size) == image.size
        return np.asarray(image)[:, :, 3] > 0


def test_it_rises_where_values_do():
    drawn = pixels(np.linspace(0, 1, 1000))
    heights = drawn.argmax(axis=0)

    assert heights[0] > heights[-1]
    assert (np.diff(heights) <= 0).all()


def test_a_single_peak_among_thousands_is_seen():
    values = np.zeros(100_000)
    values[70_000] = 1

    assert {22} == set(np.flatnonzero(pixels(values)[:10].any(axis=0)).tolist())


def test_the_line_has_no_gaps():
    drawn = pixels([0, 1] * 16)

    assert drawn.any(axis=0).all()
    assert (drawn.sum(axis=0)[1:] > 20).all()


@pytest.mark.parametrize("values", [[5.0], [5.0] * 100, [np.nan, np.inf, -np.inf, 1.0], [1.0, 2.0]])
def test_few_equal_and_endless_values_are_drawn(values: list[float]):
    assert pixels(values).any()


def test_each_line_has_a_colour_of_its_own():
    with Image.open(io.BytesIO(sparkline(np.array([[0.0, 5.0]] * 50), 32))) as image:
        drawn = np.asarray(image)

    assert 2 == len(np.unique(drawn[drawn[:, :, 3] > 0], axis=0))


def test_a_column_goes_from_where_the_one_before_ended_to_its_own_value():
    with Image.open(io.BytesIO(sparkline(np.array([0.0, 1.0, 2.0, 3.0]), 8))) as image:
        drawn = np.asarray(image)
    rows = ["".join("#" if pixel[3] else "." for pixel in row[::2]) for row in drawn]

    assert ["...#", "...#", "..##", "..##", ".##.", "###.", "##..", "...."] == rows
    assert [[0, 0, 0, 0], [31, 119, 180, 255]] == np.unique(drawn.reshape(-1, 4), axis=0).tolist()
    assert np.array_equal(drawn[:, ::2], drawn[:, 1::2])


def test_lines_have_the_colours_of_classes_and_the_later_are_over_the_earlier():
    with Image.open(io.BytesIO(sparkline(np.array([[0.0, 9.0, 0.0]] * 50), 20))) as image:
        drawn = np.asarray(image)
    colours = [[*colour, 255] for colour in tones.id_colours()[[2, 3]].tolist()]

    assert colours == [drawn[1, 0].tolist(), drawn[18, 0].tolist()]
    assert [0, 1, 17, 18] == np.flatnonzero(drawn[:, 0, 3]).tolist()
