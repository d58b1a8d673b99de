"""A tar being written: bytes, ranges of files and picked ones in their order, packed by its name, whole or not there."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tarviz.model.errors import ChangedError
from tarviz.model.types import URL
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.tar_output import Picked, Range, TarOutput
from tarviz.read.spans import Batch, HeldTar, shard_batches
from tarviz.read.stream import ReadOptions, ReadReport
from tests.read.tars import END, member

NONE = Inputs([])


def source(make: Callable[..., Path], data: bytes, name: str = "in.tar") -> HeldTar:
    return HeldTar(URL(str(make(data, name))))


class TestPieces:
    def test_bytes_ranges_and_picked_ones_come_in_their_order(self, make: Callable[..., Path], tmp_path: Path):
        data = os.urandom(100_000)
        one = source(make, data)
        with TarOutput(str(tmp_path / "out.tar"), inputs=NONE) as output:
            output.write([b"head", Range(one, 50_000, 99_999), b"-", Picked([one], [5, 70_000], [10, 70_003], 8), memoryview(b"tail")])

        expected = b"head" + data[50_000:99_999] + b"-" + data[5:10] + data[70_000:70_003] + b"tail" + END
        assert expected == (tmp_path / "out.tar").read_bytes()
        assert (len(expected), "") == (output.bytes, output.commit().crc32c)  # nobody asks for the CRC of a tar

    @pytest.mark.parametrize("size", [100, 100_000])
    @pytest.mark.parametrize("count", [1, 3])
    def test_pieces_of_several_tars_are_those_of_each(self, make: Callable[..., Path], tmp_path: Path, size: int, count: int):
        sources = [source(make, bytes([at]) * size, f"{at}.tar") for at in range(count)]
        with TarOutput(str(tmp_path / "out.tar"), inputs=NONE) as output:
            output.pick(sources, np.array([1] * count), np.array([size - 1] * count))

        assert b"".join(bytes([at]) * (size - 2) for at in range(count)) + END == (tmp_path / "out.tar").read_bytes()

    @pytest.mark.parametrize("size", [600, 100_000])
    def test_records_of_a_batch_are_copied_wherever_they_lie(self, make: Callable[..., Path], tmp_path: Path, size: int):
        parts = [member(f"{at:02d}.bin", bytes([at]) * size) for at in range(30)]
        batches: list[Batch] = list(shard_batches(URL(str(make(b"".join(parts) + END, "in.tar"))), ReadOptions(), ReadReport()))
        with TarOutput(str(tmp_path / "out.tar"), inputs=NONE) as output:
            for batch in batches:
                starts = batch.block.members.start
                output.copy(batch, starts[::2], batch.block.members.end[::2])

        assert b"".join(parts[::2]) + END == (tmp_path / "out.tar").read_bytes()


class TestName:
    @pytest.mark.parametrize(
        ("suffix", "unpack"),
        [("tar.gz", gzip.decompress), ("tgz", gzip.decompress), ("tar.bz2", bz2.decompress), ("tar.xz", lzma.decompress)],
    )
    def test_it_is_packed_as_its_name_says(self, make: Callable[..., Path], tmp_path: Path, suffix: str, unpack: Callable[[bytes], bytes]):
        one = source(make, b"range")
        with TarOutput(str(tmp_path / f"out.{suffix}"), inputs=NONE) as output:
            output.write([member("a.txt", b"1"), Range(one, 1, 4)])

        assert member("a.txt", b"1") + b"ang" + END == unpack((tmp_path / f"out.{suffix}").read_bytes())

    def test_it_may_be_as_long_as_names_may_be(self, tmp_path: Path):
        with TarOutput(str(tmp_path / f"{'n' * 251}.tar"), inputs=NONE) as output:
            output.write([member("a.txt", b"1")])

        assert member("a.txt", b"1") + END == (tmp_path / f"{'n' * 251}.tar").read_bytes()

    def test_nothing_has_it_before_the_end(self, tmp_path: Path):
        output = TarOutput(str(tmp_path / "out.tar"), inputs=NONE)
        output.write([member("a.txt", b"1")])
        output.settle()
        assert not (tmp_path / "out.tar").exists()
        output.commit()

        assert len(member("a.txt", b"1") + END) == (tmp_path / "out.tar").stat().st_size

    def test_an_exception_leaves_what_was_there(self, tmp_path: Path):
        (tmp_path / "out.tar").write_bytes(b"before")

        def fail() -> Any:
            with TarOutput(str(tmp_path / "out.tar"), inputs=NONE) as output:
                output.write([b"x" * 1_000_000])
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fail()
        assert b"before" == (tmp_path / "out.tar").read_bytes()
        assert ["out.tar"] == os.listdir(tmp_path)


class TestSources:
    @pytest.mark.parametrize("change", ["cut", "other"])
    @pytest.mark.parametrize("picked", [False, True])
    def test_a_file_that_changes_while_it_is_copied_makes_no_tar(
        self, make: Callable[..., Path], tmp_path: Path, change: str, picked: bool
    ):
        one = source(make, bytes(100_000))
        output = TarOutput(str(tmp_path / "out.tar"), inputs=NONE)
        os.truncate(tmp_path / "in.tar", 50_000 if change == "cut" else 200_000)
        with pytest.raises(ChangedError), output:
            output.write([Picked([one], [0, 49_990], [10, 50_010], 30) if picked else Range(one, 0, 100_000)])

        assert ["in.tar"] == os.listdir(tmp_path)
