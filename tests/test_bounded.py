"""Long suites in a bounded time, tried on a small suite of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_skips import pytest_in

SUITE = "import pytest\n@pytest.mark.parametrize('number', range(20))\ndef test_it(number): print('ran', number)\n"


def order(folder: Path, *options: str) -> list[str]:
    done = pytest_in(folder, SUITE, "-s", *options)
    assert done.returncode in (0, 5), done.stdout
    return re.findall(r"ran (\d+)", done.stdout)


@pytest.mark.matrix
def test_the_seed_draws_the_order(tmp_path: Path):
    first = order(tmp_path, "--minutes", "5", "--seed", "1")

    assert first == order(tmp_path, "--minutes", "5", "--seed", "1")
    assert first != order(tmp_path, "--minutes", "5", "--seed", "2")
    assert sorted(first, key=int) == [str(number) for number in range(20)] == order(tmp_path)


def test_none_begins_after_the_time_and_that_is_said(tmp_path: Path):
    done = pytest_in(tmp_path, SUITE, "-s", "--minutes", "0", "--seed", "7")

    assert not re.search(r"ran \d", done.stdout)
    assert "seed 7; 20 tests are left for another day" in done.stdout
