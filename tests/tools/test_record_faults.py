"""What is wrong with a record: it says where, and is raised or counted."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tarviz.model.errors import DataError
from tarviz.model.types import URL
from tarviz.read.spans import Batch, intake
from tarviz.read.stream import ReadOptions, ReadReport
from tarviz.tools.record_faults import place_error, settle
from tests.read.tars import END, member


@pytest.fixture
def second(make: Any) -> tuple[Path, Batch, int]:
    """A shard, and a batch of it that begins at its second record; the place in the batch of the third."""
    path = make(b"".join(member(f"{key}.{ext}", b"1") for key in "abc" for ext in ("jpg", "cls")) + END)
    with closing(intake([URL(str(path))], ReadOptions(), ReadReport(), start=1)) as batches:
        return path, next(batches), 1


def test_a_place_is_shard_key_byte_and_the_records_before(second: tuple[Path, Batch, int]):
    path, batch, record = second
    error = place_error(DataError("odd."), batch, record)

    assert (str(path), "c", 4 * 1024, 2) == (error.shard, error.key, error.offset, error.records_before)


def test_it_is_raised(second: tuple[Path, Batch, int]):
    report = ReadReport()
    with pytest.raises(DataError, match=r'odd.*record "c"|record "c".*odd'):
        settle(DataError("odd."), *second[1:], report, skip=False)

    assert [] == report.skipped


def test_or_the_record_is_counted_as_left_out(second: tuple[Path, Batch, int]):
    report = ReadReport()
    settle(DataError("odd."), *second[1:], report, skip=True)

    assert [("c", 4096)] == [(fault.key, fault.offset) for fault in report.skipped]
    assert [] == report.warnings
