"""The same as `tests/table/test_random_json.py`, for two thousand sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.table.test_random_json import check


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 10))
def test_random_json_is_what_duckdb_makes_of_it(tmp_path: Path, first: int):
    for seed in range(first, first + 10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        check(folder, seed)
