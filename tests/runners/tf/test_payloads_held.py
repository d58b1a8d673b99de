"""Payloads that lie in a file still: read when asked for."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tarviz.model.errors import ChangedError
from tarviz.model.types import URL
from tarviz.read.spans import HeldTar
from tarviz.runners.tf.feed import HeldColumn, loaders


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


class TestLoaders:
    def test_all_shards_share_them(self) -> None:
        assert loaders() is loaders()
        assert 5 == loaders().submit(lambda: 5).result()

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
    def test_a_forked_child_has_its_own(self) -> None:
        assert 5 == loaders().submit(lambda: 5).result()
        if not (child := os.fork()):
            os._exit(7 if loaders().submit(lambda: 7).result(30) == 7 else 1)

        assert 7 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
