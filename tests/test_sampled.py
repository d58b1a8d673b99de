"""Of a long table of cases `make test` runs some, evenly spread, and `make test-matrix` the others: none is lost."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.conftest import CASES, each_case, sampled
from tests.test_skips import pytest_in


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


def test_a_case_that_fails_among_all_of_one_test_is_named():
    tried = []

    @each_case(("at", "even"), [(0, True), (1, True), (2, True)])
    def test(one: int, at: int, even: bool):
        tried.append(one + at)
        assert even == (at % 2 == 0)

    with pytest.raises(AssertionError) as caught:
        test(one=1)

    assert [1, 2] == tried
    assert ["The case is {'at': 1, 'even': True}."] == caught.value.__notes__
    assert ["one"] == list(inspect.signature(test).parameters)


SUITE = """
import pytest

many = pytest.mark.parametrize("at", range(9))

class Contract:
    @many
    def test_one(self, at): pass

class TestA(Contract): pass
class TestB(Contract): pass

@many
@pytest.mark.matrix
def test_long(at): pass

@pytest.mark.parametrize("at", range(2))
def test_two(at): pass
"""


def test_of_many_cases_of_a_test_some_are_quick_in_each_class(tmp_path: Path):
    def chosen(marks: str) -> set[str]:
        lines = pytest_in(tmp_path, SUITE, "--collect-only", "-m", marks, "-W", "ignore").stdout.splitlines()
        return {line.removeprefix("test_it.py::") for line in lines if "::" in line}

    quick, others = chosen("not matrix"), chosen("matrix")

    assert CASES == 3
    assert quick == {f"Test{each}::test_one[{at}]" for each in "AB" for at in (0, 4, 8)} | {"test_two[0]", "test_two[1]"}
    assert len(others) == 2 * 6 + 9
    assert not quick & others
