"""A module whose tests are all left out by `-m` is not imported; every other one is."""

from __future__ import annotations

import pytest

from tests.conftest import left_out

TORCH = "import torch\n\npytestmark = pytest.mark.torch\n\n\n@pytest.mark.slow\ndef test_it(): ...\n"
LIST = "pytestmark = [\n    pytest.mark.ray,\n    pytest.mark.timeout(400),\n]\n"
PARTLY = "@pytest.mark.torch\ndef test_it(): ...\n\n\nclass TestMore:\n    pytestmark = pytest.mark.ray\n"


@pytest.mark.parametrize(
    ("text", "marks", "expected"),
    [
        (TORCH, "not (slow or torch or ray)", True),
        (TORCH, "matrix and not (slow or torch)", True),
        (TORCH, "(matrix or hypothesis) and not programs and not (slow or torch)", True),
        (TORCH, "not (slow or ray)", False),
        (TORCH, "torch and not (slow or browser)", False),
        (TORCH, "", False),
        (TORCH, "not (torch and slow)", False),
        (TORCH, "not (torch or slow) or ray", False),
        (TORCH, "ray or not (torch or slow)", False),
        (LIST, "not (slow or torch or ray)", True),
        (LIST, "not (torch)", False),
        (PARTLY, "not (torch or ray)", False),
    ],
)
def test_a_module_is_left_out_when_all_of_it_is(text: str, marks: str, expected: bool):
    assert expected == left_out(text, marks)
