"""Payloads that lie in a file still: read when asked for, or ahead by threads, in order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tarviz.model.errors import ChangedError, DataError
from tarviz.model.types import URL
from tarviz.read.spans import HeldTar
from tarviz.runners.tf.payloads_held import HeldColumn, loaded
from tests.conftest import wait_until


@pytest.fixture
def column(tmp_path: Path) -> HeldColumn:
    (tmp_path / "a.tar").write_bytes(bytes(range(100)))
    return HeldColumn(HeldTar(URL(str(tmp_path / "a.tar"))), np.array([3, 90, 50]), np.array([6, 100, 50]))


class TestHeldColumn:
    def test_payloads_by_number_and_in_a_row(self, column: HeldColumn) -> None:
        expected = [bytes(range(3, 6)), bytes(range(90, 100)), b""]

        assert expected == [column[0], column[1], column[-1]]
        assert expected == list(column) == column[:]
        assert expected[1:] == column[1:3]
        assert 3 == len(column)
        with pytest.raises(IndexError):
            column[3]

    def test_a_file_that_became_shorter_is_an_error(self, column: HeldColumn, tmp_path: Path) -> None:
        (tmp_path / "a.tar").write_bytes(b"short")

        with pytest.raises(ChangedError):
            column[1]


class TestLoaded:
    def test_order_is_kept_whichever_is_ready_first(self) -> None:
        late = threading.Event()

        def load(number: int) -> int:
            if number == 1:
                late.set()
            elif number == 0:
                assert late.wait(30)  # until the one behind it is done
            return number * number

        assert [0, 1, 4, 9, 16] == list(loaded(iter(range(5)), load))

    def test_what_stands_before_an_error_comes_first(self) -> None:
        def parts() -> Iterator[int]:
            yield from (1, 2)
            raise DataError("damaged", code="E_TRUNCATED")

        made: list[int] = []
        with pytest.raises(DataError):
            made.extend(loaded(parts(), lambda number: number))

        assert [1, 2] == made

    def test_leaving_ends_the_threads(self) -> None:
        before = threading.active_count()
        with closing(loaded(iter(range(1000)), lambda number: number)) as run:
            assert 0 == next(run)
            assert threading.active_count() > before

        wait_until(lambda: threading.active_count() == before)
