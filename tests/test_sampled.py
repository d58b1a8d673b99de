"""Of a long table of cases `make test` runs some, evenly spread, and `make test-matrix` the others: none is lost."""

from __future__ import annotations

import pytest

from tests.conftest import sampled


def quick(cases: list[object]) -> list[object]:
    return [case.values[0] for case in cases if not [mark for mark in case.marks if mark.name == "matrix"]]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("count", "expected"), [(0, []), (1, [0]), (2, [0, 9]), (4, [0, 3, 6, 9]), (10, list(range(10))), (50, list(range(10)))]
)
def test_some_are_quick_and_all_are_there(count: int, expected: list[int]):
    found = sampled(range(10), count)

    assert list(range(10)) == [case.values[0] for case in found]
    assert expected == quick(found)


def test_marks_ids_and_tuples_are_kept():
    found = sampled([pytest.param(1, 2, marks=pytest.mark.slow, id="one"), (3, 4)], 1)

    assert [((1, 2), "one", ["slow"]), ((3, 4), None, ["matrix"])] == [
        (case.values, case.id, [mark.name for mark in case.marks]) for case in found
    ]
