"""Values of a record, made ready to be seen."""

from __future__ import annotations

import numpy as np
import pytest

from tarviz.widgets.compare.value_picture import shown


@pytest.mark.parametrize(("count", "text"), [(2, "['w', 'w']"), (64, str(["w"] * 64)), (65, "65 values")])
def test_few_values_that_are_no_numbers_are_listed_and_many_counted(count: int, text: str):
    found = shown(np.full(count, "w"))

    assert text.startswith(str(found.text).rstrip("…"))
    assert found.text
