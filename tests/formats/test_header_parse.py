"""Headers that are read with care: long ustar names, old GNU sparse maps of several blocks, what maps may claim, PAX padding, times."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tarviz.formats import pax
from tarviz.model.errors import DataError, TarvizWarning
from tarviz.read import stream
from tarviz.testing.strategies import shard

DEEP = f"{'d' * 90}/{'e' * 50}"


def sparse_tar(folder: Path, pieces: int) -> None:
    """`a.tar` with one old GNU sparse member, `a.bin`, of so many pieces of 4096 bytes, each before a hole of 8192."""
    with (folder / "a.bin").open("wb") as file:
        for number in range(pieces):
            file.seek(number * 12288)
            file.write(b"%06d" % number + b"x" * 4090)
        file.truncate(pieces * 12288 + 4096)
    line = ["tar", "--format=gnu", "--sparse", "--hole-detection=raw", "-cf", "a.tar", "a.bin"]
    subprocess.run(line, cwd=folder, check=True)
    if (folder / "a.tar").read_bytes()[156:157] != b"S":
        pytest.skip("this file system has no holes")


@pytest.mark.parametrize("count", [1, 40])
def test_a_ustar_prefix_and_its_name_are_joined_by_a_slash(tmp_path: Path, count: int):
    content = [(f"{DEEP}/k{number:03d}", {"cls": b"%d" % number}) for number in range(count)]
    (tmp_path / "a.tar").write_bytes(shard(content, format=tarfile.USTAR_FORMAT))

    assert [key for key, _ in content] == [record.key for record in stream.records(tmp_path / "a.tar")]
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert [f"{key}.cls" for key, _ in content] == tar.getnames()


@pytest.mark.skipif(not shutil.which("tar"), reason="no tar here")
@pytest.mark.parametrize("pieces", [3, 4, 5, 25, 26, 47, 120])
def test_every_piece_of_an_old_gnu_sparse_file_is_there(tmp_path: Path, pieces: int):
    content = b"".join(b"%06d" % number + b"x" * 4090 + bytes(8192) for number in range(pieces)) + bytes(4096)
    sparse_tar(tmp_path, pieces)

    [record] = stream.records(tmp_path / "a.tar")

    assert content == bytes(record["bin"])
    assert b"S" == (tmp_path / "a.tar").read_bytes()[156:157]


def test_a_sparse_map_may_not_speak_of_more_than_is_stored():
    pax.pieces_right([(0, 512), (1024, 512)], 2048, 1024)
    with pytest.raises(DataError, match=r"E_SPARSE.*more bytes than the 1023"):
        pax.pieces_right([(0, 512), (1024, 512)], 2048, 1023)


@pytest.mark.skipif(not shutil.which("tar"), reason="no tar here")
def test_nor_may_that_of_a_member(tmp_path: Path):
    sparse_tar(tmp_path, 3)
    data = bytearray((tmp_path / "a.tar").read_bytes())
    data[124:136] = b"%011o\0" % 4096  # one piece is stored, three are spoken of
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    (tmp_path / "a.tar").write_bytes(data)

    with pytest.raises(DataError, match=r"E_SPARSE.*more bytes than the 4096"):
        list(stream.records(tmp_path / "a.tar"))


def test_nuls_may_fill_a_pax_body_and_nothing_may_follow_them():
    assert [(b"size", b"512")] == list(pax.records(b"12 size=512\n" + bytes(20)))
    for rest in (b"\0" * 8 + b"x", b"\0" + b"12 size=999\n"):
        with pytest.raises(DataError, match="E_PAX"):
            list(pax.records(b"12 size=512\n" + rest))


@pytest.mark.parametrize("time", [2.0**40, -(2.0**40)])
@pytest.mark.parametrize("count", [1, 40])
def test_a_time_in_base_256_is_read_with_care(tmp_path: Path, time: float, count: int):
    (tmp_path / "a.tar").write_bytes(shard([(f"k{n:03d}", {"cls": b"1"}) for n in range(count)], format=tarfile.GNU_FORMAT, mtime=time))

    run = stream.records(tmp_path / "a.tar")
    with pytest.warns(TarvizWarning, match="W_MTIME"):
        found = list(run)

    assert count == len(found)
    assert {"W_MTIME": count} == run.report.counts()
