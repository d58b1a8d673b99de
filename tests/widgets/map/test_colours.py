"""Colours of the points of a map."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.table.rows import ChosenRows
from tarviz.widgets.map.axes import AxisValues
from tarviz.widgets.map.colours import colour_points


@pytest.mark.parametrize("value", [-3.0, 0.0, 5.0])
def test_points_of_one_value_have_one_colour_and_those_without_none(value: float):
    nothing = np.zeros(0, np.int64)
    found = colour_points(np.arange(4), AxisValues(ChosenRows((), nothing, nothing), np.array([value, np.nan, value])), np.arange(3))

    assert found.codes[0] == found.codes[2] > 0
    assert [0, 0] == found.codes[[1, 3]].tolist()
    assert (value, value) == found.ends
